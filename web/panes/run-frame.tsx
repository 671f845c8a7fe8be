// The head of a run, over its thread, graph and time. It asks for the run, shows the way while it is asked for, and hands the
// tree to everything inside.

import type { ReactNode } from 'react'
import type { ShownRun } from '../data/run.ts'
import { TreePlace } from '../data/tree.ts'
import type { TreeSource, TreeStore } from '../data/tree-store.ts'
import type { ConversationAnswer } from '../data/types.ts'
import { Problem, SkeletonThread } from '../parts/states.tsx'
import { useKeys } from '../window/keys.ts'
import { navigate, pathOfRun } from '../window/router.ts'
import { RunHead, RunTabs, type RunView } from './run-head.tsx'

interface RunFrameProps {
  readonly run: ShownRun
  readonly view: RunView
  /** The tree as it was at a moment that is over; null or left out: as it is. */
  readonly past?: TreeSource | null
  readonly children: (ready: ReadyRun) => ReactNode
}

/** A run whose tree is known. */
export interface ReadyRun {
  readonly conversation: ConversationAnswer
  readonly store: TreeStore
}

export function RunFrame({ run, view, past = null, children }: RunFrameProps): ReactNode {
  const { conversationId, conversation, store, error } = run
  useKeys({
    '1': () => navigate(pathOfRun(conversationId)),
    '2': () => navigate(pathOfRun(conversationId, 'graph')),
    '3': () => navigate(pathOfRun(conversationId, 'time')),
  })
  if (conversation === undefined && error !== null)
    return <Problem title="This run cannot be shown" error={error} onRetry={run.reload} />
  if (conversation === undefined || store === null) return <LoadingRun conversationId={conversationId} view={view} />
  return (
    <TreePlace value={past ?? store}>
      <RunHead conversation={conversation} store={store} view={view} />
      {children({ conversation, store })}
    </TreePlace>
  )
}

function LoadingRun({ conversationId, view }: { readonly conversationId: string; readonly view: RunView }): ReactNode {
  return (
    <>
      <header className="run-h">
        <div className="run-t">
          <span className="sk sk-h" />
          <h1 className="vh">Loading the run</h1>
        </div>
        <RunTabs conversationId={conversationId} view={view} />
      </header>
      <div className="scroll">
        <SkeletonThread />
      </div>
    </>
  )
}
