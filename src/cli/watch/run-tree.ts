// A run and what it delegated, for people: made from the state that `reduceTree` of `legate/client` makes of its events.

import { parseJson } from '../../core/base/json.ts'
import type { RunTree } from '../../doors/rows.ts'
import type { Id, Json, RunEvent } from '../../index.ts'
import {
  emptyTree,
  nodeOf,
  nodesOf,
  reduceTree,
  runOf,
  type TreeNode,
  type TreeState,
  usagesOf,
} from '../../server/client/index.ts'
import { oneLine } from '../terminal/clean.ts'
import { contentWords, spendOf, type TokenCost } from './words.ts'

/** Enough of a stream to show its end on one line. */
const HEARD = 400
/** Enough of the streamed answer to show its last lines. */
const SPOKEN = 1_200

/** Limits that refuse delegations. Others are in the outcome. */
const DELEGATING: ReadonlySet<string> = new Set(['children', 'depth'])

/** The newest streamed words of a run. */
export interface HeardText {
  readonly kind: 'text' | 'reasoning' | 'call' | 'progress'
  readonly text: string
}

/** A run, as its events tell it. */
export interface WatchedRun extends Pick<RunTree, 'agent' | 'state' | 'startedAt' | 'endedAt'> {
  readonly id: Id
  readonly children: readonly WatchedRun[]
  /** The beginning of its first prompt, which distinguishes it from others of its name. */
  readonly task: string
  /** Its status and how it ended, in words. */
  readonly status: string | null
  readonly lastWords: string
  /** The usage of its own model calls, without those of its subagents. */
  readonly spent: readonly TokenCost[]
  /** The text its model is streaming; null if it is silent. */
  readonly hears: HeardText | null
  /** The limits that refused the run, one line for each. */
  readonly limits: readonly string[]
}

interface Refused {
  readonly count: number
  readonly message: string
}

/** A tree of runs, from the events of one run, in order. */
export class WatchedTree {
  readonly rootId: Id
  private tree: TreeState = emptyTree()
  /** The node of each run that was heard last. */
  private readonly heard: Map<Id, Id> = new Map()
  /** The delegations that limits refused, by run and limit. */
  private readonly refused: Map<Id, Map<string, Refused>> = new Map()
  /** A run that did not change is the same object, and so is its view. */
  private readonly views: WeakMap<RunTree, WatchedRun> = new WeakMap()

  constructor(rootId: Id) {
    this.rootId = rootId
  }

  get root(): WatchedRun | undefined {
    const run = runOf(this.tree, this.rootId)
    return run === undefined ? undefined : this.view(run)
  }

  get size(): number {
    const { root } = this
    return root === undefined ? 0 : sizeOf(root)
  }

  /** True for a run that goes on. */
  isRunning(id: Id): boolean {
    return runOf(this.tree, id)?.state === 'running'
  }

  take(event: RunEvent): void {
    this.tree = reduceTree(this.tree, event)
    if (event.type === 'budget' && DELEGATING.has(event.limit)) this.refuse(event)
    if (event.nodeId !== null && !Number.isInteger(event.seq)) this.heard.set(event.runId, event.nodeId)
  }

  private view(run: RunTree): WatchedRun {
    const known = this.views.get(run)
    if (known !== undefined) return known
    const tree = this
    const { runId: id, agent, state, startedAt, endedAt, outcome } = run
    const nodes = nodesOf(this.tree, id)
    const view = {
      ...{ id, agent: oneLine(agent), state, startedAt, endedAt },
      children: run.children.map((child) => this.view(child)),
      task: taskOf(nodes),
      status: outcome?.status ?? null,
      lastWords: outcome?.error == null ? lastWordsOf(nodes) : oneLine(outcome.error.message),
      spent: usagesOf(this.tree, id).map(({ usage, model }) => spendOf(usage, model)),
      get hears() {
        return tree.hears(id)
      },
      get limits() {
        return tree.limitsOf(id)
      },
    }
    this.views.set(run, view)
    return view
  }

  private refuse({ runId, limit, message }: Extract<RunEvent, { type: 'budget' }>): void {
    const limits = this.refused.get(runId) ?? new Map<string, Refused>()
    this.refused.set(runId, limits.set(limit, { count: (limits.get(limit)?.count ?? 0) + 1, message }))
  }

  private limitsOf(runId: Id): readonly string[] {
    return Array.from(this.refused.get(runId)?.values() ?? [], ({ count, message }) =>
      oneLine(count === 1 ? message : `${count} times: ${message}`),
    )
  }

  private hears(runId: Id): HeardText | null {
    const node = nodeOf(this.tree, this.heard.get(runId) ?? '')
    return node?.state === 'running' ? heardFrom(node) : null
  }
}

function sizeOf({ children }: WatchedRun): number {
  return children.reduce((sum, child) => sum + sizeOf(child), 1)
}

/** Models think, then speak, then call. */
function heardFrom({ text, reasoning, writes, progress }: TreeNode): HeardText | null {
  if (progress !== null) return { kind: 'progress', text: progress }
  const call = writes.at(-1)
  if (call !== undefined) return { kind: 'call', text: `${call.tool} ${call.text}`.slice(-SPOKEN) }
  if (text !== '') return { kind: 'text', text: text.slice(-SPOKEN) }
  return reasoning === '' ? null : { kind: 'reasoning', text: reasoning.slice(-SPOKEN) }
}

function lastWordsOf(nodes: readonly TreeNode[]): string {
  for (const { role, content } of nodes.toReversed()) {
    const words = role === 'agent' && content !== null ? oneLine(contentWords(content).slice(0, HEARD)) : ''
    if (words !== '') return words
  }
  return ''
}

/** Shortens the first prompt to a few words; arguments to their values. */
function taskOf(nodes: readonly TreeNode[]): string {
  for (const { role, content } of nodes) {
    const task = role === 'user' && content !== null ? shortTask(contentWords(content)) : ''
    if (task !== '') return task
  }
  return ''
}

function shortTask(text: string): string {
  const value = text.length > HEARD ? undefined : parsed(text)
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
  const words = isRecord ? Object.values(value).map((one) => (typeof one === 'string' ? one : JSON.stringify(one))) : []
  return oneLine((words.length > 0 ? words.join(', ') : text).trim().slice(0, HEARD))
}

function parsed(text: string): Json | undefined {
  const read = text.startsWith('{') ? parseJson(text) : undefined
  return read?.ok === true ? read.value : undefined
}
