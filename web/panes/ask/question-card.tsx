import { type KeyboardEvent, type ReactNode, useId, useState } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { reload } from '../../data/request.ts'
import { useMay } from '../../data/server.ts'
import { Button } from '../../parts/button.tsx'
import { Icon } from '../../parts/icon.tsx'
import { LongText } from '../../parts/long-text.tsx'
import { Shape } from '../../parts/state.tsx'
import { useTask } from '../../parts/task.ts'
import type { QuestionFacts } from './facts.ts'
import { Waited } from './waited.tsx'

interface QuestionCardProps {
  readonly question: QuestionFacts
  readonly isFlat?: boolean
  /** It no longer waits, and stays until whoever is at it has left. */
  readonly isGone?: boolean
}

/** A question of an agent, with the field for the answer. */
export function QuestionCard({ question, isFlat = false, isGone = false }: QuestionCardProps): ReactNode {
  const { nodeId, path, text, seen, since, expiresAt } = question
  const [answer, setAnswer] = useState('')
  const field = useId()
  const task = useTask()
  const mayAnswer = useMay('approve')
  const isLive = useConnection().kind === 'live'
  const isReady = isLive && !isGone && !task.isBusy && answer.trim() !== ''
  const send = () => {
    if (!isReady) return
    void task.run(() => client.answer(nodeId, { text: answer, seen }), 'Answer sent').then(() => reload('lists '))
  }
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    if (!event.repeat) send()
  }
  const asker = path.at(-1)
  return (
    <section
      className={`ask ${isFlat ? 'ask-flat' : ''} ${isGone ? 'ask-gone' : ''}`}
      data-ask={nodeId}
      data-stay={isFlat ? undefined : seen}
      aria-label={`${asker} asks you`}
    >
      {isFlat ? null : (
        <div className="ask-h">
          <Shape state="needs" isDecoration />
          <p className="cut">
            <b>{asker}</b> asks you
          </p>
          <Waited since={since} expiresAt={expiresAt} then="it goes on without an answer" />
        </div>
      )}
      <div className="ask-b">
        <p className="prose">
          <LongText text={text} />
        </p>
        {mayAnswer ? (
          <>
            <label className="vh" htmlFor={field}>
              Your answer to {asker}
            </label>
            <textarea
              id={field}
              className="in"
              rows={2}
              placeholder="Answer in your own words"
              value={answer}
              onChange={(event) => setAnswer(event.target.value)}
              onKeyDown={press}
            />
          </>
        ) : null}
        {task.error === null ? null : (
          <p className="note note-needs" role="alert">
            <Icon name="person" />
            <span>{task.error.message}</span>
          </p>
        )}
      </div>
      <div className="ask-f">
        {mayAnswer ? (
          <Button look="primary" keyCap="↵" aria-disabled={!isReady} onClick={send}>
            Send answer
          </Button>
        ) : null}
        <span className="meta">
          {isGone
            ? 'It no longer waits for an answer. Your words stay until you leave.'
            : 'The others go on meanwhile.'}
        </span>
      </div>
    </section>
  )
}
