// Why a run waits, in one line, with the button that does the advice.

import { approvalsOf, questionsOf } from 'legate/client'
import type { ReactNode } from 'react'
import { useConnection } from '../data/feed.ts'
import { retryRun } from '../data/retry.ts'
import { useWhy } from '../data/run.ts'
import { useMay } from '../data/server.ts'
import { useOfTree } from '../data/tree.ts'
import type { ConversationAnswer, RunTree, WhyReason } from '../data/types.ts'
import { Button, copy } from '../parts/button.tsx'
import { Shape } from '../parts/state.tsx'
import { useTask } from '../parts/task.ts'
import { navigate, pathOfRun } from '../window/router.ts'
import { count, shortId } from '../words/format.ts'
import { outcomeWords, type Shown, shownStatus } from '../words/shown.ts'
import { wantedOf } from './ask/facts.ts'

interface WhyLineProps {
  readonly run: RunTree
  readonly conversation: ConversationAnswer
}

export function WhyLine({ run, conversation }: WhyLineProps): ReactNode {
  const approval = useOfTree((state) => (state.approvals.size === 0 ? undefined : approvalsOf(state)[0]))
  const question = useOfTree((state) => (state.questions.size === 0 ? undefined : questionsOf(state)[0]))
  const waiting = useOfTree((state) => state.approvals.size + state.questions.size)
  const mayAnswer = useMay('approve')
  if (run.state === 'ended') return <EndLine run={run} />
  const asked = approval ?? question
  if (asked === undefined) return <ReasonLine run={run} conversation={conversation} />
  const [host, ...below] = asked.path
  const who = <b>{asked.path.at(-1)}</b>
  return (
    <Line state="needs" conversationId={conversation.id} nodeId={asked.nodeId}>
      <b>{mayAnswer ? 'Waits for you.' : 'Waits for a person.'}</b>{' '}
      {below.length === 0
        ? null
        : `${host} waits for ${below
            .slice(0, -1)
            .map((name) => `${name} › `)
            .join('')}`}
      {who}
      {below.length === 0 ? ' ' : ', which '}
      {approval === undefined ? (
        mayAnswer ? (
          'asks you something.'
        ) : (
          'asks something.'
        )
      ) : (
        <>
          may not <code>{wantedOf(approval.request)}</code> without a yes.
        </>
      )}
      {waiting > 1 ? (
        <span className="dim">
          {' '}
          {count(waiting - 1, 'other thing')} {waiting === 2 ? 'waits' : 'wait'} too.
        </span>
      ) : null}
    </Line>
  )
}

interface LineProps {
  readonly state: Shown
  readonly conversationId: string
  readonly nodeId: string
  readonly children: ReactNode
}

function Line({ state, conversationId, nodeId, children }: LineProps): ReactNode {
  const mayAnswer = useMay('approve')
  return (
    <div className={`why why-${state}`}>
      <Shape state={state} isDecoration />
      <p className="cut grow">{children}</p>
      <Button isSmall look="primary" keyCap="." onClick={() => navigate(pathOfRun(conversationId, '', nodeId))}>
        {mayAnswer ? 'Read and answer' : 'Go to it'}
      </Button>
    </div>
  )
}

/** A run that ended otherwise than completed: why, and the button that tries again. */
function EndLine({ run }: { readonly run: RunTree }): ReactNode {
  const task = useTask()
  const mayRetry = useMay('history')
  const isLive = useConnection().kind === 'live'
  const { outcome } = run
  if (outcome === null || outcome.status === 'completed') return null
  const state = shownStatus(outcome.status)
  const [doubt] = outcome.uncertain
  return (
    <div className={`why why-${state}`}>
      <Shape state={state} isDecoration />
      <p className="grow">
        {outcomeWords(outcome)} {outcome.advice === null ? null : <span className="dim">{outcome.advice}</span>}
      </p>
      {state === 'uncertain' && doubt !== undefined ? (
        <Button isSmall look="primary" onClick={() => navigate(pathOfRun(run.conversationId, '', doubt))}>
          Go to the call
        </Button>
      ) : mayRetry ? (
        <Button
          isSmall
          icon="retry"
          disabled={task.isBusy || !isLive}
          onClick={() => {
            void task.run(() => retryRun(run.runId), 'Only what failed is done again')
          }}
        >
          Retry
        </Button>
      ) : null}
    </div>
  )
}

const QUIET: ReadonlySet<WhyReason['code']> = new Set(['running', 'children', 'worker'])
const LOUD: ReadonlySet<WhyReason['code']> = new Set(['process_gone', 'agent_missing', 'stuck'])

/** A wait that no person must answer: said where it is worth a line. */
function ReasonLine({ run, conversation }: WhyLineProps): ReactNode {
  const isWaiting = run.waitingOn.length > 0 || run.state === 'queued'
  const why = useWhy(conversation.rootId, isWaiting ? run.runId : null)
  const reason = why?.reasons.find(({ code }) => LOUD.has(code)) ?? why?.reasons.find(({ code }) => !QUIET.has(code))
  if (!isWaiting || reason === undefined) return null
  const isLoud = LOUD.has(reason.code)
  const command = reason.advice?.startsWith('legate ') === true ? reason.advice : null
  return (
    <div className={`why ${isLoud ? 'why-stalled' : ''}`}>
      <Shape state={isLoud ? 'stalled' : 'waiting'} isDecoration />
      <p className="cut grow" title={reason.text}>
        <b>{reason.path.join(' › ')}</b> {reason.text}
      </p>
      {command === null ? null : (
        <Button isSmall icon="copy" onClick={() => copy(command, `Copied: ${command}`)}>
          {command.startsWith('legate resume') ? `legate resume ${shortId(run.runId)}` : command}
        </Button>
      )}
    </div>
  )
}
