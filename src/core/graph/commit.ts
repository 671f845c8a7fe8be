// Commits: the steps in which a graph changes, and the form in which a result enters it.
//
// Owns:      the list of commit kinds, the type of a commit, stream blocks, and the cut of texts that are too long to show.
// Called by: drafts make commits, stores apply them, the runtime hears of each one; rules make task outputs.
// Must stay true:
//   - A commit is applied whole or refused. A crash may fall between any two commits, and a sweep continues from rows alone.
//   - A commit changes rows of one tree, or of none (engines and blocks).
//   - A store gives the events of a commit the tree's next whole sequence numbers.

import { sha256 } from '../base/hash.ts'
import { freshId } from '../base/id.ts'
import { sizeOf, truncateUtf8 } from '../base/json.ts'
import { type Content, NO_USAGE, textOf, type Usage } from './content.ts'
import type { EventRow, LiveEvent } from './event.ts'
import type { AgentRef, Body, Conversation, Edge, Id, Link, Node, NodeOutput, Turn } from './rows.ts'

/** The steps of a graph. A crash may fall between any two; a sweep must be able to continue from there with rows alone. */
export const COMMIT_KINDS = [
  'say', // an input: turn, user_message, agent_message
  'claim', // an engine takes nodes that became runnable elsewhere
  'reserve', // what a model call may cost is held back
  'expand', // a model's answer: message, one task per call, the next agent_message, children that start at once
  'spawn', // a child: conversation, turn, seed nodes, link; its task waits
  'result', // a node ended, the turn goes on
  'end', // a node ended and with it the turn, its link, the host's task
  'retry', // a passing failure: the same node, next attempt, later
  'ask', // a node waits for a person
  'answer', // a person allowed or denied it
  'cancel', // a run and its subtree are asked to stop
  'expire', // a deadline passed
  'force', // a cancelled node did not stop within the grace
  'recover', // a claim was lost with its process
  'deliver', // code inside a task took a child's outcome
  'mutate', // nodes and edges put in by hand
  'note', // an event only
  'stream', // what running nodes streamed so far, for readers in other processes
  'lease', // an engine says it lives
] as const

export type CommitKind = (typeof COMMIT_KINDS)[number]

/** The text that one running node has streamed since its last block. All blocks of a node are dropped when it ends. */
export interface LiveBlock {
  readonly nodeId: Id
  readonly rootId: Id
  readonly epoch: number
  readonly events: readonly LiveEvent[]
}

/** A block with the number that the store gave it. Numbers grow. */
export interface StoredBlock extends LiveBlock {
  readonly n: number
}

/** A process that runs nodes. Its lease covers all of its claims. What is optional is missing where an older version wrote it. */
export interface EngineRow extends ProcessReport {
  /** The id of its engine. */
  readonly id: Id
  /** Grows with each write. */
  readonly version: number
  /** The boot and the pid namespace of its machine: where they are equal, its pid can be looked for. */
  readonly bootId: string
  /** Its number on that machine. */
  readonly pid: number
  /** When it was started, as the machine says; empty where it does not. */
  readonly processStart: string
  /** Others take its claims from then on, by the time of leases. */
  readonly leaseUntil: number
  /** Names of the agents that it has code for, the empty one for those that need none. Null, or missing, where it does not say. */
  readonly agents: readonly string[] | null
  /** The name of its machine. */
  readonly host?: string
  /** When it began to run nodes. */
  readonly startedAt?: number
  /** When it last renewed its lease, by the time of leases. */
  readonly heardAt?: number
  /** True while it ends: it takes no more nodes, and those that run have a grace to end. */
  readonly draining?: boolean
  /** The queue that brings it work; null where it looks for work itself. */
  readonly queue?: string | null
}

/** Facts that a process tells the others beside its name. */
export interface ProcessReport {
  /** The hashes of the only definitions whose runs it goes on with. Missing: it goes on with any definition of an agent it has. */
  readonly versions?: readonly string[]
  /** The hash of the newest definition of each agent that it has code for, by name; of the first hundred. */
  readonly definitions?: Readonly<Record<string, string>>
  /** The sources of tools that it has used: how they are. */
  readonly sources?: readonly SourceHealth[]
}

/** How a source of tools, such as an MCP server, is in one process. */
export interface SourceHealth {
  /** Its name for the agent that used it. */
  readonly name: string
  /** How often in a row it did not start; 0 where it works. */
  readonly failures: number
  /** Why it did not start the last time. */
  readonly error: string | null
  /** Since when it is so. */
  readonly since: number
  /** The agents that the process leaves to others meanwhile: their names, and the hashes of those that their rows keep whole. */
  readonly leaves: readonly string[]
}

/** A set of rows that the store applies whole or refuses. Stores know rows, not rules. */
export interface Commit {
  /** Its own id. A store whose answer was lost on the way finds out by it whether it was stored. */
  readonly id: Id
  /** The step that it is. */
  readonly kind: CommitKind
  /** The time by the runtime's clock. */
  readonly at: number
  /** The tree whose sequence and hash chain this commit extends; null for rows that belong to no tree. */
  readonly rootId: Id | null
  /** New and changed conversations, whole, with their next version. */
  readonly conversations: readonly Conversation[]
  /** New and changed runs. */
  readonly turns: readonly Turn[]
  /** New and changed nodes. */
  readonly nodes: readonly Node[]
  /** New edges. */
  readonly edges: readonly Edge[]
  /** New and changed delegations. */
  readonly links: readonly Link[]
  /** Texts that are too long for a row. */
  readonly bodies: readonly Body[]
  /** Leases of engines. */
  readonly engines: readonly EngineRow[]
  /** Engines whose row goes. */
  readonly dropEngines: readonly Id[]
  /** Text that running nodes have streamed. */
  readonly blocks: readonly LiveBlock[]
  /** Nodes whose blocks go. */
  readonly dropBlocks: readonly Id[]
  /** In order. The store writes `seq` into each: the tree's next whole numbers. */
  readonly events: readonly EventRow[]
  /** The store's `writes` when the rules planned this commit; absent where rows were put together by hand. */
  readonly plannedOn?: number | undefined
  /** The usage of its tree in this commit; none where the root conversation has no owner. A store adds it to the sums of the owner. */
  readonly spent: readonly Spent[]
  /** The work it leaves for other processes, for stores that wake them. */
  readonly wakes: readonly Wake[]
}

/** The usage of an owner's trees, by day, agent and model. */
export interface Spent {
  /** The owner of the root conversation. */
  readonly owner: string
  /** The day of the commits, in UTC: `2026-11-17`. */
  readonly day: string
  /**
   * The agent that called the model; for runs, the one at the root. Empty where another owner's run spent it and the limit of a day
   * that `owner` has bound that run: it counts for the limit, and stands in no list.
   */
  readonly agent: string
  /** The model; empty for runs. */
  readonly model: string
  /** Runs at the root that were begun or queued. A run that only reports an end in the background counts with its own. */
  readonly runs: number
  readonly modelCalls: number
  readonly usage: Usage
}

/** The usage in a draft with these new rows and events. Each call of a model has one `usage` event, in the commit that counts it. */
export function spentIn(
  draft: { readonly now: number; findConversation(id: Id): Conversation | undefined },
  rootId: Id,
  { turns, events }: Pick<Commit, 'turns' | 'events'>,
): readonly Spent[] {
  const owner = draft.findConversation(rootId)?.owner ?? null
  if (owner === null || (!turns.some(isOpened) && !events.some(isCall))) return NONE
  const day = new Date(draft.now).toISOString().slice(0, 10)
  const spent: Spent[] = []
  for (const { conversationId } of turns.filter(isOpened)) {
    const home = draft.findConversation(conversationId)
    if (home?.type !== 'user') continue
    spent.push({ owner, day, agent: home.agent.name, model: '', runs: 1, modelCalls: 0, usage: NO_USAGE })
  }
  for (const { body, path } of events) {
    if (body.type !== 'usage') continue
    const { model, usage } = body
    spent.push({ owner, day, agent: path.at(-1) ?? '', model, runs: 0, modelCalls: 1, usage })
  }
  return spent
}

/** Does a new turn of a root count as a run? */
export function isOpened({ version, state, wokenBy }: Turn): boolean {
  return version === 1 && state !== 'ended' && wokenBy === null
}

function isCall({ body }: EventRow): boolean {
  return body.type === 'usage'
}

const NONE: readonly never[] = []

/** Asks some process to look at a tree. One that finds nothing to do there does nothing. */
export interface Wake {
  /** Equal ids ask for the same thing. */
  readonly id: string
  /** Not before this time; null for at once. */
  readonly at: number | null
}

/** A commit without rows, for callers that fill it without a draft. */
export function emptyCommit(kind: CommitKind, at: number, rootId: Id | null): Commit {
  return {
    id: freshId(at),
    kind,
    at,
    rootId,
    conversations: [],
    turns: [],
    nodes: [],
    edges: [],
    links: [],
    bodies: [],
    engines: [],
    dropEngines: [],
    blocks: [],
    dropBlocks: [],
    events: [],
    spent: [],
    wakes: [],
  }
}

/** The bytes of a result that a model is shown at once; `read_result` gives the rest. */
export const SHOWN_BYTES = 65_536

/** Makes a task's output from a child's answer: a text that is too long to show is cut, pictures and files stay. */
export function outputContent(content: Content, taskId: Id): TaskOutput {
  if (typeof content === 'string') return outputText(content, taskId)
  const { output, body } = outputText(textOf(content), taskId)
  if (body === null) return { output: { content }, body }
  const media = content.filter(({ type }) => type !== 'text' && type !== 'json')
  return { output: { ...output, content: [{ type: 'text', text: textOf(output.content ?? '') }, ...media] }, body }
}

export interface TaskOutput {
  readonly output: NodeOutput
  /** The whole text, when it is too long to show. */
  readonly body: Body | null
}

/** Makes a task's output from a text: whole when it is short, else its beginning, with the whole kept once by content. */
export function outputText(text: string, taskId: Id): TaskOutput {
  const isShort = text.length * 3 <= SHOWN_BYTES
  const bytes = isShort ? 0 : sizeOf(text)
  if (bytes <= SHOWN_BYTES) return { output: { content: text }, body: null }
  const shown = truncateUtf8(text, SHOWN_BYTES)
  const note = `[cut: ${sizeOf(shown)} of ${bytes} bytes shown. To read on: read_result({ "id": "${taskId}", "offset": ${shown.length} })]`
  const body = { hash: sha256(text), text }
  return { output: { content: `${shown}\n${note}`, bodyRef: body.hash, bytes }, body }
}

/** The need of a runnable node that nobody has claimed: a free worker of this process, or a process that has its code. */
export type Missing = 'worker' | 'code'

/** Lets a commit hand the nodes it makes runnable to the engine that makes it. */
export interface Claims {
  readonly engineId: Id
  /** How many nodes run in this process. */
  readonly running: number
  /**
   * Reserves a worker, or says what is missing. While nodes of other owners wait for a worker, the engine gives one only to a node
   * whose turn it is.
   */
  take(kind: string, agent: AgentRef, isItsTurn: boolean): Missing | null
  /** Returns workers that were reserved and are not needed. */
  giveBack(taken: number): void
}
