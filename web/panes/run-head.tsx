import { type ReactNode, useEffect, useMemo } from 'react'
import { client } from '../data/client.ts'
import { useConnection } from '../data/feed.ts'
import { useLook, useTreeUsage } from '../data/run.ts'
import { useMay } from '../data/server.ts'
import { useConversationTree, useTreeSource } from '../data/tree.ts'
import type { TreeStore } from '../data/tree-store.ts'
import type { ConversationAnswer, RunTree } from '../data/types.ts'
import { isFile } from '../file/answers.ts'
import { Button, copy } from '../parts/button.tsx'
import { IdButton, Money, Span } from '../parts/figures.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { Link } from '../parts/link.tsx'
import { Menu, type MenuItem } from '../parts/menu.tsx'
import { Pill } from '../parts/state.tsx'
import { useTask } from '../parts/task.ts'
import { addressOf, pathOfRun } from '../window/router.ts'
import { shortText } from '../words/exact.ts'
import { count, moment, money, tokens, total } from '../words/format.ts'
import { queuedAfter, shownDeep, turnShown } from '../words/shown.ts'
import { WhyLine } from './why-line.tsx'

export type RunView = 'thread' | 'graph' | 'time'

interface RunHeadProps {
  readonly conversation: ConversationAnswer
  readonly store: TreeStore
  readonly view: RunView
}

const MOST_ASKED = 120
const MOST_TITLE = 300

/** The beginning of the first thing that was said to a conversation. */
function askedIn({ events }: TreeStore, conversationId: string): string | null {
  const said = events.find(({ type, conversationId: id }) => type === 'message' && id === conversationId)
  const content = said?.type === 'message' && said.role === 'user' ? said.content : null
  return typeof content === 'string' ? content.slice(0, MOST_ASKED) : null
}

export function RunHead({ conversation, store, view }: RunHeadProps): ReactNode {
  const { isPast } = useTreeSource()
  const tree = useConversationTree(conversation.id)
  const runs = tree?.runs ?? []
  const run = turnShown(runs)
  const queued = queuedAfter(runs)
  const asked = useMemo(() => askedIn(store, conversation.id), [store, conversation.id, tree?.runs[0]?.runId])
  const title = shortText(tree?.title ?? conversation.title ?? asked ?? `Run of ${conversation.agent}`, MOST_TITLE)
  useEffect(() => {
    document.title = `${title} · legate`
  }, [title])
  return (
    <>
      <header className="run-h">
        <div className="run-t">
          {run === undefined ? null : <Pill state={shownDeep(run)} />}
          {queued === 0 ? null : <span className="meta">{queued} queued</span>}
          <h1 className="cut" title={title}>
            {title}
          </h1>
          <IdButton id={run?.runId ?? conversation.id} />
          <div className="acts">
            <RunActions conversation={conversation} />
            {run === undefined || run.state === 'ended' || isPast ? null : <StopButton run={run} />}
          </div>
        </div>
        <RunTabs conversationId={conversation.id} view={view}>
          {run === undefined ? null : <RunFigures run={run} store={store} />}
        </RunTabs>
      </header>
      {run === undefined || isPast ? null : <WhyLine run={run} conversation={conversation} />}
    </>
  )
}

const VIEWS: readonly (readonly [RunView, IconName, string])[] = [
  ['thread', 'thread', 'Thread'],
  ['graph', 'graph', 'Graph'],
  ['time', 'time', 'Time'],
]

interface RunTabsProps {
  readonly conversationId: string
  readonly view: RunView
  readonly children?: ReactNode
}

export function RunTabs({ conversationId, view, children }: RunTabsProps): ReactNode {
  return (
    <nav className="tabs" aria-label="Views of this run">
      {VIEWS.map(([name, icon, label]) => (
        <Link
          key={name}
          to={pathOfRun(conversationId, name === 'thread' ? '' : name)}
          aria-current={name === view ? 'page' : undefined}
        >
          <Icon name={icon} />
          {label}
        </Link>
      ))}
      {isFile ? null : (
        <Link to={`/diff/${conversationId}`}>
          <Icon name="compare" />
          Compare
        </Link>
      )}
      {children}
    </nav>
  )
}

/** The runs of a tree, this one included. */
export function countRuns(run: RunTree): number {
  return run.children.reduce((sum, child) => sum + countRuns(child), 1)
}

function RunFigures({ run, store }: { readonly run: RunTree; readonly store: TreeStore }): ReactNode {
  const { moment: then } = useTreeSource()
  const spent = useTreeUsage(store)?.total.usd
  const usd = then === undefined ? spent : then.usd
  const most = useLook(store.rootId, run.runId)?.spend?.limit.usd
  return (
    <div className="facts">
      <span>
        <b>
          <Span from={run.startedAt} to={run.endedAt ?? then?.at ?? null} />
        </b>{' '}
        {run.startedAt === null ? '' : `since ${moment(run.startedAt)}`}
      </span>
      <span>
        <b>{count(countRuns(run), 'agent')}</b>
      </span>
      <span>
        <b>{tokens(total(run.usage))}</b> tokens
      </span>
      <span>
        <b>
          <Money usd={usd} />
        </b>
        {most === null || most === undefined ? '' : ` of ${money(most)}`}
      </span>
    </div>
  )
}

function StopButton({ run }: { readonly run: RunTree }): ReactNode {
  const task = useTask()
  const mayCancel = useMay('cancel')
  const isLive = useConnection().kind === 'live'
  if (!mayCancel) return null
  const stop = () => task.run(() => client.cancel(run.runId), 'It was asked to stop, with all that it started.')
  return (
    <Button
      isSmall
      icon="stop"
      disabled={task.isBusy || run.cancelRequested || !isLive}
      onClick={() => {
        void stop()
      }}
    >
      {run.cancelRequested ? 'Stopping' : 'Stop'}
    </Button>
  )
}

/** Buttons; on small screens a menu. */
function RunActions({ conversation }: { readonly conversation: ConversationAnswer }): ReactNode {
  const task = useTask()
  const mayExport = useMay('export')
  const name = `run-${conversation.rootId.slice(-8)}.jsonl`
  const link: MenuItem = {
    icon: 'link',
    label: 'Copy link',
    onSelect: () => copy(addressOf(pathOfRun(conversation.id)), 'Link copied'),
  }
  const save: MenuItem = {
    icon: 'save',
    label: 'Export',
    isOff: task.isBusy,
    onSelect: () => {
      void task.run(() => saveTree(conversation.rootId, name), `Saved as ${name}`)
    },
  }
  const actions = [...(isFile ? [] : [link]), ...(mayExport ? [save] : [])]
  if (actions.length === 0) return null
  return (
    <>
      {actions.map(({ icon, label, isOff, onSelect }) => (
        <Button key={label} look="quiet" isSmall icon={icon} className="desk" disabled={isOff} onClick={onSelect}>
          {label}
        </Button>
      ))}
      <span className="phone">
        <Menu label="More about this run" items={() => actions} />
      </span>
    </>
  )
}

/** Saves the whole tree as the server exports it. */
async function saveTree(rootId: string, name: string): Promise<void> {
  const lines = await client.conversation(rootId).export()
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([lines], { type: 'application/x-ndjson' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000)
}
