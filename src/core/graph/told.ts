// Told: what the events of a commit leave out because it usually follows from them, and what is said where it did not follow.
//
// Owns:      the types of `told`, and the one rule for what usually follows from an event.
// Called by: `rules/settle/told`, which looks whether it did follow when a commit is made, and `reduceTree` of the client, which
//            assumes so.
// Must stay true: the events of stores that exist were written under this rule. Who changes it makes their trees look different.

import type { WaitingOn } from './kinds.ts'
import type { OutcomeRecord } from './outcome.ts'
import type { Id, LaneFacts, NodeState } from './rows.ts'

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

/** What readers take for granted after an event. */
export type Usual =
  /** After the message of a user in a run that has begun the next message of the agent runs. */
  | 'next-runs'
  /** After the last call of an answer the next message of the agent waits for all of them. */
  | 'next-waits'
  /** A call that starts a child waits for it. */
  | 'call-waits'
  /** After a result the only open node of the run runs, where it waited for others. */
  | 'last-runs'

/** An event, as far as it matters here. */
interface SaidEvent {
  readonly type: string
  /** Whose message it is. */
  readonly role?: string
}

/** `callsLeft` counts those calls of the last answer of its run that were not told before. */
export function usualAfter(event: SaidEvent, callsLeft: number): Usual | undefined {
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
