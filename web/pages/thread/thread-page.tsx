import type { TreeState } from 'legate/client'
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import { useConnection } from '../../data/feed.ts'
import { useKept } from '../../data/kept.ts'
import { useRun, useTreeUsage } from '../../data/run.ts'
import { useConversationTree } from '../../data/tree.ts'
import type { TreeStore } from '../../data/tree-store.ts'
import type { ConversationAnswer, RunTree } from '../../data/types.ts'
import { useAskKeys } from '../../panes/ask/ask-keys.ts'
import { RunFrame } from '../../panes/run-frame.tsx'
import { TreePane } from '../../panes/tree-pane.tsx'
import { Button } from '../../parts/button.tsx'
import { SkeletonThread } from '../../parts/states.tsx'
import { useRowKeys } from '../../window/rows.ts'
import { Composer } from './composer.tsx'
import { NodeDialogs } from './dialogs/node-dialogs.tsx'
import { LaneTabs } from './lane-tabs.tsx'
import { NextBar } from './next-bar.tsx'
import { useReveal } from './reveal.ts'
import { Chunks } from './rows/chunks.tsx'
import { RunThread } from './rows/run-thread.tsx'
import { useNodeKeys } from './state/node-actions.ts'
import { ThreadProvider, ThreadState } from './state/thread-state.ts'
import '../../styles/thread.css'

export function ThreadPage({ conversationId }: { readonly conversationId: string }): ReactNode {
  const run = useRun(conversationId)
  return (
    <RunFrame run={run} view="thread">
      {({ conversation, store }) => <ThreadSplit conversation={conversation} store={store} />}
    </RunFrame>
  )
}

interface ThreadProps {
  readonly conversation: ConversationAnswer
  readonly store: TreeStore
}

function ThreadSplit({ conversation, store }: ThreadProps): ReactNode {
  const [thread] = useState(() => new ThreadState(store.isCaughtUp))
  const [scroller, setScroller] = useState<HTMLElement | null>(null)
  const [isPaneOpen, setPaneOpen] = useState(false)
  const isLost = useConnection().kind === 'lost'
  const usage = useTreeUsage(store)
  const place = useMemo(
    () => ({ thread, scroller, usage, owner: conversation.owner, conversationId: conversation.id, renderRun }),
    [thread, scroller, usage, conversation],
  )
  return (
    <ThreadProvider value={place}>
      <div className={`split ${isLost ? 'stale' : ''}`}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys */}
        <section className="threadcol" aria-label="Thread" tabIndex={0} ref={setScroller}>
          <Turns conversation={conversation} store={store} />
          <Composer conversation={conversation} />
        </section>
        <TreePane
          conversation={conversation}
          store={store}
          isOpen={isPaneOpen}
          onClose={() => setPaneOpen(false)}
          onFold={() => thread.foldAll()}
        />
      </div>
      <Button className="narrow pane-button" isSmall icon="tree" onClick={() => setPaneOpen(true)}>
        Agents
      </Button>
      <NextBar />
      <NodeDialogs />
    </ThreadProvider>
  )
}

const NO_RUNS: readonly RunTree[] = []

function renderRun(run: { readonly runId: string; readonly depth: number; readonly asker: string }): ReactNode {
  return <RunThread {...run} />
}

function Turns({ conversation, store }: ThreadProps): ReactNode {
  const tree = useConversationTree(conversation.id)
  useKept(store, conversation, tree?.runs ?? NO_RUNS)
  useRowKeys()
  useAskKeys()
  useNodeKeys()
  useReveal(conversation.id)
  const runs = tree?.runs ?? NO_RUNS
  const asker = conversation.parentRunId === null ? (conversation.owner ?? 'you') : (conversation.path.at(-2) ?? 'host')
  const ids = runs.map(({ runId }) => runId)
  const order = ids.join(' ')
  const render = useCallback(
    (runId: string) => {
      const number = order.split(' ').indexOf(runId) + 1
      const isLast = order.endsWith(runId)
      return <Turn key={runId} number={number} runId={runId} asker={asker} lanes={isLast ? conversation : null} />
    },
    [order, asker, conversation],
  )
  const isIn = useCallback(
    (runId: string, wanted: ReadonlySet<string>) => [...wanted].some((id) => isBelow(store.get(), id, runId)),
    [store],
  )
  if (tree === undefined) return <SkeletonThread />
  return (
    <ol className="thread">
      <Chunks items={ids} size={TURNS} guess={TURN_HEIGHT} render={render} isWanted={isIn} fromEnd />
    </ol>
  )
}

/** Turns come and go one by one, and may be so high. */
const TURNS = 1
const TURN_HEIGHT = 400

/** Does a node, or a run, belong to what a run started? */
function isBelow(state: TreeState, id: string, runId: string): boolean {
  let at: string | null = state.nodes.get(id)?.runId ?? id
  while (at !== null && at !== runId) at = state.runs.get(at)?.hostId ?? null
  return at === runId
}

interface TurnProps {
  readonly number: number
  readonly runId: string
  readonly asker: string
  /** The conversation whose lanes stand at its head; null: none do. */
  readonly lanes: ConversationAnswer | null
}

function Turn({ number, runId, asker, lanes }: TurnProps): ReactNode {
  return (
    <li aria-label={`Turn ${number}`} id={`r-${runId}`}>
      <div className="turn">
        <span>Turn {number}</span>
        <i className="rule-line" />
        {lanes === null ? null : <LaneTabs conversation={lanes} />}
      </div>
      <ol>
        <RunThread runId={runId} depth={0} asker={asker} />
      </ol>
    </li>
  )
}
