// Kinds and states of nodes, and the small questions about a single node that many rules ask.
//
// Owns:      the flags of the built-in kinds, the table of legal state changes, when a wait for children is over, why a node
//            waits, and what of all that usually follows from an event (`usualAfter`), so that the event need not say it (`Told`).
// Called by: drafts check every change of state here; rules, stores and the engine ask whether a node is open or runnable.
// Must stay true:
//   - An ended node never leaves its state (I4): the table has no way out of it.
//   - Runnable means pending, no blockers, and `wakeAt` due. Nothing else may start a node.
//   - A user's kind never replaces a built-in one.
//   - Events of stores that exist were written under `usualAfter`. Who changes it makes their trees look different to readers.

import { DefinitionError } from '../base/error.ts'
import type { OutcomeRecord } from './outcome.ts'
import type { AgentRef, Edge, Id, LaneFacts, Node, NodeState, Turn, Wait } from './rows.ts'

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

/**
 * Changes of a commit that no event reports, in the last event of the run they are about. With them a reader of events alone
 * knows the state of a tree: `reduceTree` of `legate/client` builds it. Most commits need none, because readers know what
 * usually follows from an event:
 *
 * - a message of a user in a run that has begun: the next message of the agent runs;
 * - an answer with calls: after its last `tool-call` event the next message of the agent waits for all of them;
 * - `delegation-start`: the call waits for the child;
 * - `tool-result`: the only node of the run that is still open, and waits for others, runs.
 *
 * The id of the next message is the one after that of the user's message, or of the last call: see `isNextId`.
 */
export interface Told {
  /** The usual consequence of this event did not happen. */
  readonly unusual?: true
  /** Open nodes of the run that wait, run or ended otherwise than the events of this commit say. */
  readonly nodes?: readonly ToldNode[]
  /** The run was asked to stop. */
  readonly cancelRequested?: true
  /** Conversations and lanes that are new, were forked or archived, or of which other runs count now. */
  readonly lanes?: readonly ToldLane[]
}

/** The present state of an open node. */
export interface ToldNode {
  /** The id of the node. */
  readonly id: Id
  /** Why it waits; or `running`, or the state that it ended in. */
  readonly on: WaitingOn['on'] | Exclude<NodeState, 'pending' | 'awaiting_approval' | 'waiting'>
  /** The tool, or the kind of the node; left out where an event has said it. */
  readonly what?: string
  /** The runs or nodes that it waits for. Left out with `nodes`: all calls of the run's last answer. */
  readonly refs?: readonly Id[]
  /** When it continues by itself. */
  readonly until?: number
}

/** A conversation or a lane, with what has changed of it. */
export interface ToldLane {
  /** The id of the conversation or lane. */
  readonly id: Id
  /** Its title. */
  readonly title?: string
  /** Where it was forked. */
  readonly from?: {
    /** The lane it was forked from. */
    readonly laneId: Id
    /** The node it was forked at. */
    readonly nodeId: Id
    /** Whether it is in the list of that lane. */
    readonly isListed: boolean
  }
  /** When it was archived, in milliseconds since 1970. */
  readonly archivedAt?: number
  /** Ordinals of runs that no longer count, as ranges. */
  readonly skips?: LaneFacts['skips']
  /** Runs that ended before the conversation was made here, oldest first. */
  readonly past?: readonly ToldPast[]
}

/** A run of a session that was restored: it has no events of its own. */
export interface ToldPast {
  readonly runId: Id
  readonly startedAt: number | null
  readonly endedAt: number | null
  readonly outcome: OutcomeRecord | null
}

/** Readers take it for granted after an event. */
export type Usual =
  /** After the message of a user in a run that has begun the next message of the agent runs. */
  | 'next-runs'
  /** After the last call of an answer the next message of the agent waits for all of them. */
  | 'next-waits'
  /** A call that starts a child waits for it. */
  | 'call-waits'
  /** After a result the only open node of the run runs, where it waited for others. */
  | 'last-runs'

/** `callsLeft` counts those calls of the last answer of its run that were not told before. */
export function usualAfter(
  event: { readonly type: string; readonly role?: string },
  callsLeft: number,
): Usual | undefined {
  switch (event.type) {
    case 'message':
      return event.role === 'user' ? 'next-runs' : undefined
    case 'tool-call':
      return callsLeft === 1 ? 'next-waits' : undefined
    case 'delegation-start':
      return 'call-waits'
    case 'tool-result':
      return 'last-runs'
    default:
      return undefined
  }
}

/** The id after this one in a list of ids that were made together. */
export function nextId(id: Id): Id {
  const word = (Number.parseInt(id.slice(-WORD_LENGTH), 16) + STEP) >>> 0
  return id.slice(0, -WORD_LENGTH) + word.toString(16).padStart(WORD_LENGTH, '0')
}

/** True where both ids come from one list, the second right after the first. */
export function isNextId(id: Id, next: Id): boolean {
  const head = id.length - WORD_LENGTH
  if (next.length !== id.length) return false
  // Parts of texts: reading both characters at every place takes longer than making them.
  if (next.slice(0, head) !== id.slice(0, head)) return false
  return Number.parseInt(next.slice(head), 16) === (Number.parseInt(id.slice(head), 16) + STEP) >>> 0
}

/** Ids of one list differ in so many last characters, by this step: see `base/id`. */
const WORD_LENGTH = 8
const STEP = 0x9e3779b1
