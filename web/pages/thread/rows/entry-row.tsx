import type { TreeNode } from 'legate/client'
import { memo, type ReactNode, useMemo, useState } from 'react'
import { useConnection } from '../../../data/feed.ts'
import { useNode, useRunState, useTreeSource } from '../../../data/tree.ts'
import { Arguments } from '../../../panes/ask/arguments.tsx'
import { Boundary } from '../../../parts/boundary.tsx'
import { Clock, Span } from '../../../parts/figures.tsx'
import { LongText } from '../../../parts/long-text.tsx'
import { Prose } from '../../../parts/prose.tsx'
import { Shape } from '../../../parts/state.tsx'
import { Chevron } from '../../../parts/states.tsx'
import { jsonIn, textOf } from '../../../words/content.ts'
import { shortText } from '../../../words/exact.ts'
import { initials, modelName, tokens, total } from '../../../words/format.ts'
import type { Shown } from '../../../words/shown.ts'
import { NodeTools } from './node-tools.tsx'
import { WaitingLine } from './waiting-line.tsx'

interface EntryRowProps {
  readonly messageId: string | null
  readonly hasCalls: boolean
  readonly depth: number
  readonly asker: string
  readonly children: ReactNode
}

/** A message: who, with which model, how long; then the words; then the calls. */
export const EntryRow = memo(function EntryRow(props: EntryRowProps): ReactNode {
  return props.messageId === null ? (
    <li className="entry">{props.children}</li>
  ) : (
    <Boundary what="This message">
      <MessageRow {...props} messageId={props.messageId} />
    </Boundary>
  )
})

function MessageRow({
  messageId,
  hasCalls,
  depth,
  asker,
  children,
}: EntryRowProps & { readonly messageId: string }): ReactNode {
  const node = useNode(messageId)
  const agent = useRunState(node?.runId ?? '')?.agent ?? ''
  if (node === undefined) return null
  if (node.state === 'waiting' && node.content === null) return <WaitingLine node={node} agent={agent} depth={depth} />
  if (node.role === 'developer' && node.content !== null) return <ToldRow node={node} isRoot={depth === 0} />
  const isSaid = node.role === 'user' || node.role === 'developer' || node.what === 'user_message'
  const isRoot = depth === 0
  return (
    <li className={`entry ${isRoot ? 'root' : ''}`} id={`n-${messageId}`} data-nav data-node={messageId} tabIndex={-1}>
      <MessageHead node={node} who={isSaid ? asker : agent} isSaid={isSaid} isRoot={isRoot} />
      {node.reasoning === '' ? null : (
        <Thoughts text={node.reasoning} isOpen={node.state === 'running' && node.text === ''} />
      )}
      <MessageWords node={node} isQuiet={isSaid && !isRoot} />
      <EndNote node={node} />
      {children}
      {hasCalls ? null : <Writes node={node} />}
    </li>
  )
}

/** What an agent was given to know before it was asked: folded, because nobody said it to be read. */
function ToldRow({ node, isRoot }: { readonly node: TreeNode; readonly isRoot: boolean }): ReactNode {
  const [isOpen, setOpen] = useState(false)
  return (
    <li
      className={`entry ${isRoot ? 'root' : ''}`}
      id={`n-${node.nodeId}`}
      data-nav
      data-node={node.nodeId}
      tabIndex={-1}
    >
      <div className="entry-h">
        <button type="button" className="row dim" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Chevron />
          Told beforehand
        </button>
        <NodeTools node={node} />
      </div>
      {isOpen ? <MessageWords node={node} isQuiet /> : null}
    </li>
  )
}

interface MessageHeadProps {
  readonly node: TreeNode
  readonly who: string
  readonly isSaid: boolean
  readonly isRoot: boolean
}

function MessageHead({ node, who, isSaid, isRoot }: MessageHeadProps): ReactNode {
  return (
    <>
      {isRoot ? (
        <span className={`av ${isSaid ? 'av-person' : ''}`} aria-hidden="true">
          {initials(who)}
        </span>
      ) : null}
      <div className="entry-h">
        {isSaid && !isRoot ? <span className="dim">asked by</span> : null}
        <b>{who}</b>
        <MessageFacts node={node} isSaid={isSaid} />
        <NodeTools node={node} />
      </div>
    </>
  )
}

function MessageFacts({ node, isSaid }: { readonly node: TreeNode; readonly isSaid: boolean }): ReactNode {
  if (isSaid) {
    return (
      <span className="meta">
        <Clock at={node.startedAt} />
      </span>
    )
  }
  return (
    <span className="meta">
      {node.model === null ? null : `${modelName(node.model)} · `}
      <Span from={node.startedAt} to={node.endedAt} />
      {node.usage === null || total(node.usage) === 0 ? null : ` · ${tokens(total(node.usage))}`}
      {node.attempt > 1 ? ` · attempt ${node.attempt}` : null}
    </span>
  )
}

function MessageWords({ node, isQuiet }: { readonly node: TreeNode; readonly isQuiet: boolean }): ReactNode {
  const isWriting = node.state === 'running'
  const text = useMemo(() => (node.content === null ? node.text : textOf(node.content)), [node.content, node.text])
  const value = useMemo(() => (node.role === 'user' ? jsonIn(text) : undefined), [node.role, text])
  if (text === '' && !isWriting) return null
  if (value !== undefined) return <Arguments input={value} />
  return (
    <div className={isQuiet ? 'mid' : undefined}>
      <Prose text={text} end={isWriting ? <Caret /> : null} />
    </div>
  )
}

/** Stands at the end of text that still comes. */
function Caret(): ReactNode {
  const isLive = useConnection().kind === 'live'
  const { isPast } = useTreeSource()
  return isLive && !isPast ? <span className="caret" aria-hidden="true" /> : null
}

/** The calls that a model is writing, before they are calls. */
function Writes({ node }: { readonly node: TreeNode }): ReactNode {
  if (node.writes.length === 0) return null
  return (
    <ul className="calls">
      {node.writes.map(({ callId, tool, text }) => (
        <li key={callId} className="call">
          <div className="call-r">
            <span className="open">
              <span className="chev" />
              <Shape state="working" />
              <span className="tn">{tool}</span>
              <span className="arg cut">{text.slice(-160)}</span>
            </span>
          </div>
        </li>
      ))}
    </ul>
  )
}

function Thoughts({ text, isOpen: isFirst }: { readonly text: string; readonly isOpen: boolean }): ReactNode {
  const [isOpened, setOpened] = useState<boolean | null>(null)
  const isOpen = isOpened ?? isFirst
  return (
    <div className="thoughts">
      <button type="button" className="row dim" aria-expanded={isOpen} onClick={() => setOpened(!isOpen)}>
        <Chevron />
        Thoughts
      </button>
      {isOpen ? (
        <p>
          <LongText text={text} />
        </p>
      ) : null}
    </div>
  )
}

const MOST_TROUBLE = 4_000

const ENDS: Partial<Readonly<Record<TreeNode['state'], readonly [Shown, string]>>> = {
  errored: ['failed', 'It failed'],
  stopped: ['cancelled', 'It was stopped'],
  uncertain: ['uncertain', 'It is not known how it ended'],
}

function EndNote({ node }: { readonly node: TreeNode }): ReactNode {
  const end = ENDS[node.state]
  if (end === undefined) return null
  const [state, words] = end
  return (
    <p className={`note ${state === 'cancelled' ? 'note-plain' : `note-${state}`}`}>
      <Shape state={state} isDecoration />
      <span>
        {node.trouble === null || node.trouble === ''
          ? `${words}.`
          : `${words}: ${shortText(node.trouble, MOST_TROUBLE)}`}
      </span>
    </p>
  )
}
