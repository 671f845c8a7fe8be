import { DefinitionError } from '../base/error.ts'
import type { Id, Node, NodeState, TreePlaces, Turn, Wait } from './rows.ts'

/** What the graph must know of a kind of node. Executors are joined to kinds by the runtime. */
export interface KindFlags {
  /** Only executable kinds may be pending, awaiting approval, running or waiting. */
  readonly executable: boolean
  /** Gives its turn a place in the transcript. */
  readonly anchor: boolean
  readonly transcript: boolean
  /** May be the last node of a turn. */
  readonly leaf: boolean
  readonly editable: boolean
  readonly retriable: boolean
  readonly rerunnable: boolean
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

/** The built-in kinds and a user's own. A user's kind is a task unless it says otherwise, and may not replace one of ours. */
export function withKinds(own: Readonly<Record<string, Partial<KindFlags>>>): Kinds {
  const kinds = new Map(BUILT_IN_KINDS)
  for (const [name, flags] of Object.entries(own)) {
    if (BUILT_IN_KINDS.has(name)) {
      throw new DefinitionError('definition', `The node kind "${name}" is built in; give yours another name.`, {
        details: { kind: name },
      })
    }
    if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) {
      throw new DefinitionError('definition', `"${name}" is no name for a node kind: use a-z, 0-9 and _, at most 64.`, {
        details: { kind: name },
      })
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

/** The legal ways from one state to another. What is not here is refused. */
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

/** Could it be claimed at this moment? */
export function isRunnable(node: Node, now: number): boolean {
  return node.state === 'pending' && node.blockers === 0 && (node.wakeAt === null || node.wakeAt <= now)
}

export function mayBecome(from: NodeState, to: NodeState): boolean {
  return TRANSITIONS[from].includes(to)
}

/** A task that no call asked for but an item of a plan: its turn ends with the plan, not with it. */
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

/** A task beside the message it is of: its turn ends with the message, not with it. */
export function isBeside(node: Node): boolean {
  return isEager(node) || askerOf(node) !== undefined
}

export type JoinStatus = 'met' | 'not_met'

/**
 * Is the wait over? `all`, `any` and a number ask for that many children that completed, and are over as soon as that is
 * so or cannot be any more; `settled` asks for all ends, good or bad.
 */
export function joinStatus(join: Wait['join'], outcomes: readonly (string | null)[]): JoinStatus | undefined {
  const open = outcomes.filter((status) => status === null).length
  if (join === 'settled') return open === 0 ? 'met' : undefined
  const completed = outcomes.filter((status) => status === 'completed').length
  const wanted = join === 'all' ? outcomes.length : join === 'any' ? 1 : join
  if (completed >= wanted) return 'met'
  return completed + open < wanted ? 'not_met' : undefined
}

/** How many rounds a child of the spawn tools is shown where nobody says how many, and how many a page has. */
export const CONTEXT_TURNS = 50

/** What all other models are shown: every round that counts, or a summary of it. */
export const ALL_TURNS: number = Number.POSITIVE_INFINITY

/** How long a running node has to commit what it has before it is stopped without being asked again. */
export const CANCEL_GRACE_MS = 5_000

/** What a run counts that nobody above it limits. */
export function newTree(limit: number | null): TreePlaces | null {
  return limit === null ? null : { limit, live: 0, waiting: [] }
}

/** Has the run a model call left, beside the wrap-up? */
export function mayCall({ account, limits }: Turn): boolean {
  return account.modelCalls < limits.turns
}

/** How many of its next tool calls a run may still make. */
export function toolCallsLeft({ account, limits }: Turn): number {
  return Math.max(0, limits.toolCalls - account.toolCalls)
}
