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
import { type Content, textOf } from './content.ts'
import type { EventRow, LiveEvent } from './event.ts'
import type { Body, Conversation, Edge, EngineRow, Id, Link, Node, NodeOutput, Turn } from './rows.ts'

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
  /** The store's `changes` when the rules planned this commit; absent where rows were put together by hand. */
  readonly plannedOn?: number | undefined
  /** The work it leaves for other processes, for stores that wake them. */
  readonly wakes: readonly Wake[]
}

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
