// Kinds and states of nodes, and the small questions about a single node that many rules ask.
//
// Owns:      the flags of the built-in kinds, the table of legal state changes, when a wait for children is over, and why a
//            node waits.
// Called by: drafts check every change of state here; rules, stores and the engine ask whether a node is open or runnable.
// Must stay true:
//   - An ended node never leaves its state (I4): the table has no way out of it.
//   - Runnable means pending, no blockers, and `wakeAt` due. Nothing else may start a node.
//   - A user's kind never replaces a built-in one.

import { DefinitionError } from '../base/error.ts'
import type { AgentRef, Edge, Id, Node, NodeState, Turn, Wait } from './rows.ts'

/** The facts about a kind of node that the graph must know. The runtime joins executors to kinds. */
export interface KindFlags {
  /** Only executable kinds may be pending, awaiting approval, running or waiting. */
  readonly executable: boolean
  /** Gives its turn a place in the transcript. */
  readonly anchor: boolean
  /** Whether transcripts show it. */
  readonly transcript: boolean
  /** May be the last node of a turn. */
  readonly leaf: boolean
  /** Whether its content can be edited. */
  readonly editable: boolean
  /** Whether it can be retried after a failure. */
  readonly retriable: boolean
  /** Whether it can run again after it has finished. */
  readonly rerunnable: boolean
  /** How many characters of its result previews show. */
  readonly previewChars: number
}

const MESSAGE: KindFlags = {
  executable: false,
  anchor: false,
  transcript: false,
  leaf: false,
  editable: true,
  retriable: false,
  rerunnable: false,
  previewChars: 200,
}
const SPEAKER: KindFlags = {
  executable: true,
  anchor: true,
  transcript: true,
  leaf: true,
  editable: false,
  retriable: true,
  rerunnable: true,
  previewChars: 2000,
}
const TASK: KindFlags = { ...MESSAGE, executable: true, editable: false, retriable: true }

export type Kinds = ReadonlyMap<string, KindFlags>

export const BUILT_IN_KINDS: Kinds = new Map([
  ['system_message', MESSAGE],
  ['developer_message', MESSAGE],
  ['user_message', { ...MESSAGE, anchor: true, transcript: true }],
  ['agent_message', SPEAKER],
  ['character_message', SPEAKER],
  ['task', TASK],
  ['summary', { ...MESSAGE, editable: false }],
])

/**
 * The built-in kinds and a user's own. A user's kind has the flags of a task by default, and may not replace a built-in kind.
 */
export function withKinds(own: Readonly<Record<string, Partial<KindFlags>>>): Kinds {
  const kinds = new Map(BUILT_IN_KINDS)
  for (const [name, flags] of Object.entries(own)) {
    if (BUILT_IN_KINDS.has(name)) {
      throw new DefinitionError('definition', `The node kind "${name}" is built in; give yours another name.`, {
        details: { kind: name },
      })
    }
    if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) {
      throw new DefinitionError(
        'definition',
        `"${name}" is not a name for a node kind: use a-z, 0-9 and _, at most 64.`,
        {
          details: { kind: name },
        },
      )
    }
    kinds.set(name, { ...TASK, ...flags })
  }
  return kinds
}

export function previewOf(text: string, kind: string, kinds: Kinds): string {
  const limit = kinds.get(kind)?.previewChars ?? TASK.previewChars
  return text.length <= limit ? text : text.slice(0, limit)
}

const OPEN: ReadonlySet<NodeState> = new Set(['pending', 'awaiting_approval', 'running', 'waiting'])

/** The legal changes of state. All others are refused. */
const TRANSITIONS: Readonly<Record<NodeState, readonly NodeState[]>> = {
  awaiting_approval: ['pending', 'rejected', 'stopped', 'skipped'],
  pending: ['running', 'skipped', 'stopped'],
  running: ['finished', 'errored', 'rejected', 'stopped', 'uncertain', 'waiting', 'pending', 'awaiting_approval'],
  waiting: ['finished', 'errored', 'rejected', 'stopped', 'uncertain', 'pending'],
  finished: [],
  errored: [],
  rejected: [],
  skipped: [],
  stopped: [],
  uncertain: [],
}

export function isOpen(state: NodeState): boolean {
  return OPEN.has(state)
}

/** True where an engine could claim it at this moment. */
export function isRunnable(node: Node, now: number): boolean {
  return node.state === 'pending' && node.blockers === 0 && (node.wakeAt === null || node.wakeAt <= now)
}

export function mayBecome(from: NodeState, to: NodeState): boolean {
  return TRANSITIONS[from].includes(to)
}

/** True for a task that an item of a plan started, not a call: its turn ends with the plan, not with the task. */
export function isEager({ kind, metadata }: Node): boolean {
  return kind === 'task' && metadata['eager'] !== undefined
}

/** The place of its item in the plan: `tasks[0]`. */
export function eagerField({ metadata }: Node): string {
  const { field } = (metadata['eager'] ?? {}) as { readonly field?: string }
  return field ?? ''
}

/** The node whose code asks with this task; undefined for any other task. */
export function askerOf({ kind, metadata }: Node): Id | undefined {
  const asker = kind === 'task' ? metadata['asked_by'] : undefined
  return typeof asker === 'string' ? asker : undefined
}

/** True for a task that runs beside its message: its turn ends with the message, not with the task. */
export function isBeside(node: Node): boolean {
  return isEager(node) || askerOf(node) !== undefined
}

/** True for a call that briefs or sums up: any text is its answer, and nothing of it is the run's. */
export function isSideCall({ purpose }: Node): boolean {
  return purpose === 'brief' || purpose === 'summarize'
}

export type JoinStatus = 'met' | 'not_met'

/**
 * Decides whether a wait is over. `all`, `any` and a number ask for that many children that completed, and are over as soon as
 * that is reached or out of reach; `settled` waits until all have ended, whatever way.
 */
export function joinStatus(join: Wait['join'], outcomes: readonly (string | null)[]): JoinStatus | undefined {
  const open = outcomes.filter((status) => status === null).length
  if (join === 'settled') return open === 0 ? 'met' : undefined
  const completed = outcomes.filter((status) => status === 'completed').length
  const wanted = join === 'all' ? outcomes.length : join === 'any' ? 1 : join
  if (completed >= wanted) return 'met'
  return completed + open < wanted ? 'not_met' : undefined
}

/** How many rounds a child of the spawn tools is shown by default, and how many a page has. */
export const CONTEXT_TURNS = 50

/** The limit for all other models: they see every round that counts, or its summary. */
export const ALL_TURNS: number = Number.POSITIVE_INFINITY

/** How long a cancelled node may still commit its result before it is stopped without being asked again. */
export const CANCEL_GRACE_MS = 5_000

/** The agent whose code a process must have to run this agent's nodes; empty where it needs none. */
export function codeOf(agent: AgentRef): string {
  return agent.code ?? agent.name
}

/** The answer that a task checks; undefined for a task that checks none. */
export function checkedAnswer({ metadata }: Node): Id | undefined {
  const { answers } = metadata
  return typeof answers === 'string' ? answers : undefined
}

/** How far a tree is: the newest turn of its root tells. */
export const ROOT_STATES = ['open', 'completed', 'failed', 'uncertain'] as const

export type RootState = (typeof ROOT_STATES)[number]

/**
 * The state of a tree by the newest turn of its root's own lane. `uncertain`: it has ended, and nobody has settled its
 * uncertain nodes; `failed`: it ended otherwise than completed or cancelled. A tree without a turn counts as completed.
 */
export function rootState(newest: Turn | undefined): RootState {
  if (newest === undefined) return 'completed'
  if (newest.state !== 'ended') return 'open'
  if (newest.account.uncertain.length > 0) return 'uncertain'
  const status = newest.outcome?.status ?? 'completed'
  return status === 'completed' || status === 'cancelled' ? 'completed' : 'failed'
}

/** The reason why a node waits. */
export interface WaitingOn {
  readonly nodeId: Id
  readonly on: 'approval' | 'question' | 'children' | 'timer' | 'claim' | 'nodes'
  /** The tool, or the kind of node, that waits. */
  readonly what: string
  /** The runs or nodes that it waits for. */
  readonly refs: readonly Id[]
  /** When it continues by itself; null for never. */
  readonly until: number | null
}

/** Reads nodes and what they come after. */
interface NodeReader {
  edgesTo(nodeId: Id): readonly Edge[]
  node(id: Id): Node | undefined
}

/** The name of the tool that a node calls, or its kind. */
export function nameOf({ input, kind }: Node): string {
  return input.call?.name ?? kind
}

/** Why an open node that does not run waits. */
export function waitOf(tree: NodeReader, node: Node): WaitingOn {
  const what = nameOf(node)
  const { id: nodeId, wakeAt: until } = node
  if (node.state === 'awaiting_approval') return { nodeId, on: 'approval', what, refs: [], until }
  if (node.wait !== null) return { nodeId, on: node.wait.on, what, refs: node.wait.refs, until: node.wait.until }
  if (node.blockers > 0) return { nodeId, on: 'nodes', what, refs: blockersOf(tree, node), until: null }
  return { nodeId, on: until === null ? 'claim' : 'timer', what, refs: [], until }
}

function blockersOf(tree: NodeReader, node: Node): Id[] {
  return tree.edgesTo(node.id).flatMap(({ from, type }) => {
    return type !== 'branch' && tree.node(from)?.endedAt === null ? [from] : []
  })
}
