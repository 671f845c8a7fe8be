import type { Id, Node, Store } from '../../index.ts'
import { type Execution, modelKey, toolKey } from './log.ts'

/** The calls of models and tools that a run's rows hold, by state. */
export interface Calls {
  readonly finished: ReadonlySet<string>
  readonly running: ReadonlySet<string>
}

export interface Report {
  /** Nodes that called a model or a tool, how often that happened in all, and in how many processes. */
  readonly calls: number
  readonly executions: number
  readonly processes: number
  /** Calls that had finished before the kill. */
  readonly kept: number
  /** Of those, the ones that were made again: there must be none. */
  readonly repeated: number
  /** Calls that had begun and not finished, and of those the ones that were made again. */
  readonly interrupted: number
  readonly rerun: number
}

/** Reads a run and all it delegated out of the store. */
export function callsOf(store: Store, runId: Id): Calls {
  const nodes = keyedNodes(store, runId)
  const inState = (state: Node['state']) =>
    new Set(nodes.filter(({ node }) => node.state === state).map(({ key }) => key))
  return { finished: inState('finished'), running: inState('running') }
}

/** Holds what the calls wrote down themselves against what the store said when the process was killed. */
export function reportOf(atKill: Calls, executions: readonly Execution[], killedPid: number): Report {
  const times = new Map<string, number>()
  for (const { key } of executions) times.set(key, (times.get(key) ?? 0) + 1)
  const ranTwice = (key: string) => (times.get(key) ?? 0) > 1
  const begun = new Set(executions.filter(({ pid }) => pid === killedPid).map(({ key }) => key))
  const interrupted = [...begun].filter((key) => !atKill.finished.has(key))
  return {
    calls: times.size,
    executions: executions.length,
    processes: new Set(executions.map(({ pid }) => pid)).size,
    kept: atKill.finished.size,
    repeated: [...atKill.finished].filter(ranTwice).length,
    interrupted: interrupted.length,
    rerun: interrupted.filter(ranTwice).length,
  }
}

interface KeyedNode {
  readonly node: Node
  readonly key: string
}

function keyedNodes(store: Store, turnId: Id): KeyedNode[] {
  const nodes = store.nodesOf(turnId)
  const path = store.conversation(nodes[0]?.conversationId ?? '')?.path ?? []
  const answers = nodes.filter(({ kind }) => kind === 'agent_message')
  const tools = nodes.filter(({ kind, input }) => kind === 'task' && input.delegates !== true)
  return [
    ...answers.map((node, before) => ({ node, key: modelKey(path, before) })),
    ...tools.map((node) => ({ node, key: toolKey(node.id) })),
    ...store.linksOf(turnId).flatMap((link) => keyedNodes(store, link.id)),
  ]
}
