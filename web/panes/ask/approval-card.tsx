// A request that waits for a person: all of its arguments, the rule that asks, and the answer, where it stands.

import type { ClientError } from 'legate/client'
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { reload } from '../../data/request.ts'
import { useMay } from '../../data/server.ts'
import { Button } from '../../parts/button.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Shape } from '../../parts/state.tsx'
import { useTask } from '../../parts/task.ts'
import { say } from '../../parts/toast.tsx'
import { exactText, shortText } from '../../words/exact.ts'
import { ExplainDrawer } from '../drawers/explain-drawer.tsx'
import { ArgumentFields, CallText, useShownCall } from './arguments.tsx'
import { type ApprovalFacts, canEdit, type FieldTexts, readFields, wantedOf } from './facts.ts'
import { type Steady, useSteady } from './steady.ts'
import { Waited } from './waited.tsx'

interface ApprovalCardProps {
  readonly approval: ApprovalFacts
  /** In the inbox the line above is its head. */
  readonly isFlat?: boolean
  /** It was answered or no longer waits, and stays until whoever is at it has left. */
  readonly isGone?: boolean
}

type Mode = 'open' | 'changing' | 'denying'

export function ApprovalCard({ approval, isFlat = false, isGone = false }: ApprovalCardProps): ReactNode {
  const [mode, setMode] = useState<Mode>('open')
  const [texts, setTexts] = useState<FieldTexts>(new Map())
  const [wrong, setWrong] = useState<ReadonlySet<string | null>>(new Set())
  const [always, setAlways] = useState(false)
  const [isExplained, setExplained] = useState(false)
  const card = useRef<HTMLElement>(null)
  const steady = useSteady(card, '[data-allow]')
  const { nodeId, path, request, input, reason, seen } = approval
  const call = useShownCall(input, isLongRequest(request) ? request : '')
  const answer = useAnswer(approval, isGone)
  const change = (name: string | null, text: string) => {
    setTexts((before) => new Map(before).set(name, text))
    setWrong((before) => new Set([...before].filter((one) => one !== name)))
  }
  const allow = () => {
    if (!answer.isReady || !call.isWhole) return
    if (!steady.isNow()) return say('Press again when the card has stood still for a moment.')
    const read = mode === 'changing' ? readFields(input, texts) : { value: undefined, wrong: new Set<string>() }
    setWrong(read.wrong)
    if (read.wrong.size === 0) answer.allow({ always, edit: read.value })
  }
  return (
    <section
      ref={card}
      className={`ask ${isFlat ? 'ask-flat' : ''} ${isGone ? 'ask-gone' : ''}`}
      data-ask={nodeId}
      data-stay={isFlat ? undefined : seen}
      aria-label={`${path.at(-1)} wants ${shortText(wantedOf(request), MOST_HEAD)}`}
      onKeyDown={dropRepeat}
    >
      {isFlat ? null : <AskHead approval={approval} />}
      <div className="ask-b">
        {mode === 'changing' ? (
          <ArgumentFields input={input} texts={texts} wrong={wrong} onChange={change} />
        ) : (
          <CallText call={call} />
        )}
        <p className="rule">
          <Icon name="shield" />
          <span>{exactText(reason)}</span>
          <button type="button" className="link mid" onClick={() => setExplained(true)}>
            Why does it ask?
          </button>
        </p>
        {answer.error === null ? null : <AnswerTrouble error={answer.error} />}
      </div>
      {answer.isPossible ? (
        <AskFoot
          mode={mode}
          answer={answer}
          always={always}
          canChange={canEdit(input)}
          isWhole={call.isWhole}
          steady={steady}
          onMode={setMode}
          onAlways={setAlways}
          onAllow={allow}
        />
      ) : (
        <p className="ask-f dim">Your token may look at this, and not answer it.</p>
      )}
      {isExplained ? (
        <ExplainDrawer nodeId={nodeId} path={path} request={request} onClose={() => setExplained(false)} />
      ) : null}
    </section>
  )
}

/** A key that is held down answers nothing: whoever answers presses once for each card. */
export function dropRepeat(event: KeyboardEvent): void {
  if (event.repeat && (event.key === 'Enter' || event.key === ' ')) event.preventDefault()
}

interface AskFootProps {
  readonly mode: Mode
  readonly answer: ReturnType<typeof useAnswer>
  readonly always: boolean
  readonly canChange: boolean
  /** Whether nothing of the call is held back. */
  readonly isWhole: boolean
  readonly steady: Steady
  readonly onMode: (mode: Mode) => void
  readonly onAlways: (always: boolean) => void
  readonly onAllow: () => void
}

/** The buttons of a card. Allow keeps the focus while it is off, so that no key goes to another card. */
function AskFoot(props: AskFootProps): ReactNode {
  const { mode, answer, always, canChange, isWhole, steady, onMode, onAlways, onAllow } = props
  if (mode === 'denying') {
    return (
      <div className="ask-f">
        <DenyFields isOff={!answer.isReady} onDeny={answer.deny} onBack={() => onMode('open')} />
        <FootNote said={answer.said} isWhole={isWhole} isBegun={steady.isBegun} />
      </div>
    )
  }
  const isChanging = mode === 'changing'
  return (
    <div className="ask-f">
      <Button
        look="primary"
        keyCap="A"
        data-allow
        aria-disabled={!answer.isReady || !isWhole || !steady.isSteady}
        onClick={onAllow}
      >
        {answer.said === null ? (isChanging ? 'Allow with these' : 'Allow once') : 'Answered'}
      </Button>
      <Button keyCap="D" data-deny aria-disabled={!answer.isReady} onClick={() => answer.isReady && onMode('denying')}>
        Deny
      </Button>
      {canChange ? (
        <Button
          look="quiet"
          icon={isChanging ? 'back' : 'edit'}
          aria-disabled={!answer.isReady || !isWhole}
          onClick={() => answer.isReady && isWhole && onMode(isChanging ? 'open' : 'changing')}
        >
          {isChanging ? 'As it was asked' : 'Change arguments'}
        </Button>
      ) : null}
      {answer.mayAlways && !isChanging ? (
        <label className="check">
          <input type="checkbox" checked={always} onChange={(event) => onAlways(event.target.checked)} />
          and the next ones like it, in this conversation
        </label>
      ) : null}
      <FootNote said={answer.said} isWhole={isWhole} isBegun={steady.isBegun} />
    </div>
  )
}

interface FootNoteProps {
  readonly said: string | null
  readonly isWhole: boolean
  readonly isBegun: boolean
}

/** What became of the card, or why it cannot be allowed yet. */
function FootNote({ said, isWhole, isBegun }: FootNoteProps): ReactNode {
  const missing = isWhole ? 'Look at its beginning before you allow it.' : 'Show all of it before you allow it.'
  const words = said ?? (isWhole && isBegun ? null : missing)
  return words === null ? null : <span className="meta">{words}</span>
}

interface Allowed {
  readonly always: boolean
  readonly edit: unknown
}

function useAnswer({ nodeId, seen }: ApprovalFacts, isGone: boolean) {
  const task = useTask()
  const [word, setWord] = useState<string | null>(null)
  const isPossible = useMay('approve')
  const mayAlways = useMay('approve:always')
  const isLive = useConnection().kind === 'live'
  const isReady = isLive && !task.isBusy && !isGone && word === null
  const send = async (answer: Parameters<typeof client.approve>[1], done: string) => {
    if (!isReady) return
    if (await task.run(() => client.approve(nodeId, answer), done)) setWord(done)
    reload('lists ')
  }
  return {
    isPossible,
    mayAlways,
    isReady,
    error: task.error,
    /** What became of it; null while it waits. */
    said: word ?? (isGone ? 'It no longer waits for an answer.' : null),
    allow: ({ always, edit }: Allowed) => {
      const changed = edit === undefined ? {} : { edit: edit as never }
      void send(
        { allow: true, seen, ...(always ? { always } : {}), ...changed },
        always ? 'Allowed from now on' : 'Allowed once',
      )
    },
    deny: (reason: string) => {
      void send({ allow: false, seen, ...(reason === '' ? {} : { reason }) }, 'Denied')
    },
  }
}

/** Longer requests stand among the arguments. */
const MOST_HEAD = 300

function isLongRequest(request: string): boolean {
  return wantedOf(request).length > MOST_HEAD
}

/** What is wanted, all of it where it fits. */
export function Wanted({ request }: { readonly request: string }): ReactNode {
  return (
    <code>
      <b>{shortText(wantedOf(request), MOST_HEAD)}</b>
    </code>
  )
}

/** The head of a card: who wants what, since when. */
function AskHead({ approval: { path, request, since, expiresAt } }: Pick<ApprovalCardProps, 'approval'>): ReactNode {
  return (
    <div className="ask-h">
      <Shape state="needs" isDecoration />
      <p className="whole">
        <b>{path.at(-1)}</b> wants <Wanted request={request} />
      </p>
      <Waited since={since} expiresAt={expiresAt} then="it is denied" />
    </div>
  )
}

interface DenyFieldsProps {
  readonly isOff: boolean
  readonly onDeny: (reason: string) => void
  readonly onBack: () => void
}

/** One more line, for the reason that the agent will read. */
function DenyFields({ isOff, onDeny, onBack }: DenyFieldsProps): ReactNode {
  const [reason, setReason] = useState('')
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.repeat) onDeny(reason)
    if (event.key === 'Escape') onBack()
  }
  return (
    <>
      <input
        className="in ask-reason"
        aria-label="Why not"
        placeholder="Why not? The agent reads it (optional)"
        // biome-ignore lint/a11y/noAutofocus: whoever denies is asked for the reason next
        autoFocus
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        onKeyDown={press}
      />
      <Button look="primary" aria-disabled={isOff} onClick={() => onDeny(reason)}>
        Deny
      </Button>
      <Button look="quiet" onClick={onBack}>
        Not now
      </Button>
    </>
  )
}

/** Somebody was faster, or it asks for something else now. */
function AnswerTrouble({ error }: { readonly error: ClientError }): ReactNode {
  return (
    <p className={`note ${error.status === 409 ? 'note-needs' : 'note-failed'}`} role="alert">
      <Icon name="person" />
      <span>{error.message}</span>
    </p>
  )
}
