// A request that waits for a person: all of its arguments, the rule that asks, and the answer, where it stands.

import { type ClientError, visible } from 'legate/client'
import { type KeyboardEvent, type ReactNode, useState } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { reload } from '../../data/request.ts'
import { useMay } from '../../data/server.ts'
import { useTask } from '../../data/task.ts'
import { Button } from '../../parts/button.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Shape } from '../../parts/state.tsx'
import { ExplainDrawer } from '../drawers/explain-drawer.tsx'
import { ArgumentFields, Arguments } from './arguments.tsx'
import { type ApprovalFacts, argumentRows, fieldText, fieldValue, wantedOf } from './facts.ts'
import { Waited } from './waited.tsx'

interface ApprovalCardProps {
  readonly approval: ApprovalFacts
  /** In the inbox the line above is its head. */
  readonly isFlat?: boolean
}

type Mode = 'open' | 'changing' | 'denying'

export function ApprovalCard({ approval, isFlat = false }: ApprovalCardProps): ReactNode {
  const [mode, setMode] = useState<Mode>('open')
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const [wrong, setWrong] = useState<ReadonlySet<string>>(new Set())
  const [always, setAlways] = useState(false)
  const [isExplained, setExplained] = useState(false)
  const answer = useAnswer(approval)
  const { nodeId, path, request, input, reason } = approval
  const change = (name: string, text: string) => {
    setTexts((before) => ({ ...before, [name]: text }))
    setWrong((before) => new Set([...before].filter((one) => one !== name)))
  }
  const allow = () => {
    const read = mode === 'changing' ? readFields(input, texts) : { value: undefined, wrong: new Set<string>() }
    setWrong(read.wrong)
    if (read.wrong.size === 0) answer.allow({ always, edit: read.value })
  }
  return (
    <section
      className={`ask ${isFlat ? 'ask-flat' : ''}`}
      data-ask={nodeId}
      aria-label={`${path.at(-1)} wants ${wantedOf(request)}`}
    >
      {isFlat ? null : <AskHead approval={approval} />}
      <div className="ask-b">
        {mode === 'changing' ? (
          <ArgumentFields input={input} texts={texts} wrong={wrong} onChange={change} />
        ) : (
          <Arguments input={input} />
        )}
        <p className="rule">
          <Icon name="shield" />
          <span>{visible(reason)}</span>
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
          hasArguments={argumentRows(input).length > 0}
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

interface AskFootProps {
  readonly mode: Mode
  readonly answer: ReturnType<typeof useAnswer>
  readonly always: boolean
  readonly hasArguments: boolean
  readonly onMode: (mode: Mode) => void
  readonly onAlways: (always: boolean) => void
  readonly onAllow: () => void
}

/** The buttons of a card. */
function AskFoot({ mode, answer, always, hasArguments, onMode, onAlways, onAllow }: AskFootProps): ReactNode {
  if (mode === 'denying') {
    return (
      <div className="ask-f">
        <DenyFields isBusy={answer.isBusy} onDeny={answer.deny} onBack={() => onMode('open')} />
      </div>
    )
  }
  const isChanging = mode === 'changing'
  return (
    <div className="ask-f">
      <Button look="primary" keyCap="A" data-allow disabled={!answer.isReady} onClick={onAllow}>
        {isChanging ? 'Allow with these' : 'Allow once'}
      </Button>
      <Button keyCap="D" data-deny disabled={!answer.isReady} onClick={() => onMode('denying')}>
        Deny
      </Button>
      {hasArguments ? (
        <Button
          look="quiet"
          icon={isChanging ? 'back' : 'edit'}
          disabled={!answer.isReady}
          onClick={() => onMode(isChanging ? 'open' : 'changing')}
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
    </div>
  )
}

/** Reads what a person typed into the fields of the arguments. */
function readFields(input: unknown, texts: Readonly<Record<string, string>>) {
  const wrong = new Set<string>()
  const values: Record<string, unknown> = {}
  for (const [name, before] of argumentRows(input)) {
    try {
      values[name] = fieldValue(texts[name] ?? fieldText(before), before)
    } catch {
      wrong.add(name)
    }
  }
  return { wrong, value: Object.hasOwn(values, '') ? values[''] : values }
}

interface Allowed {
  readonly always: boolean
  readonly edit: unknown
}

function useAnswer({ nodeId, seen }: ApprovalFacts) {
  const task = useTask()
  const isPossible = useMay('approve')
  const mayAlways = useMay('approve:always')
  const isLive = useConnection().kind === 'live'
  const send = (word: Parameters<typeof client.approve>[1], done: string) => {
    void task.run(() => client.approve(nodeId, word), done).then(() => reload('lists '))
  }
  return {
    isPossible,
    mayAlways,
    isBusy: task.isBusy,
    isReady: isLive && !task.isBusy,
    error: task.error,
    allow: ({ always, edit }: Allowed) => {
      const changed = edit === undefined ? {} : { edit: edit as never }
      send(
        { allow: true, seen, ...(always ? { always } : {}), ...changed },
        always ? 'Allowed from now on' : 'Allowed once',
      )
    },
    deny: (reason: string) => send({ allow: false, seen, ...(reason === '' ? {} : { reason }) }, 'Denied'),
  }
}

/** The head of a card: who wants what, since when. */
function AskHead({ approval: { path, request, since, expiresAt } }: Pick<ApprovalCardProps, 'approval'>): ReactNode {
  return (
    <div className="ask-h">
      <Shape state="needs" isDecoration />
      <p className="cut">
        <b>{path.at(-1)}</b> wants{' '}
        <code>
          <b>{wantedOf(request)}</b>
        </code>
      </p>
      <Waited since={since} expiresAt={expiresAt} then="it is denied" />
    </div>
  )
}

interface DenyFieldsProps {
  readonly isBusy: boolean
  readonly onDeny: (reason: string) => void
  readonly onBack: () => void
}

/** One more line, for the reason that the agent will read. */
function DenyFields({ isBusy, onDeny, onBack }: DenyFieldsProps): ReactNode {
  const [reason, setReason] = useState('')
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter') onDeny(reason)
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
      <Button look="primary" disabled={isBusy} onClick={() => onDeny(reason)}>
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
