// Tasks: their ids, their results as a model reads them, and repeated calls.
//
// Owns:      ids derived from a message, the text for a result that never came, the check for repetitions, and the slots of
//            an input.
// Called by: rules, `agent` (requests, repetitions), `delegation`, and the history of a conversation.
// Must stay true:
//   - Equal messages give equal task ids, so a repeated expand finds what it made before.
//   - Every ended task has a text for its model, whatever way it ended.

import { deriveIds } from '../base/id.ts'
import { canonicalJson, type Json } from '../base/json.ts'
import type { Content, ToolCall } from './content.ts'
import type { TreeReader } from './reader.ts'
import type { Id, Node, NodeOutput, Turn } from './rows.ts'

/**
 * Ids for the tasks of a message and for the message that reads their results. Derived, so that a repeated answer gives equal
 * ids.
 */
export function expansionIds(nodeId: Id, tasks: number): Id[] {
  return deriveIds(nodeId, 'expand', tasks + 1)
}

/** The ids of the tasks that a message's calls made. */
export function taskIdsOf({ id, output }: Pick<Node, 'id' | 'output'>): readonly Id[] {
  const count = output.calls?.length ?? 0
  return count === 0 ? NONE : expansionIds(id, count).slice(0, count)
}

const NONE: readonly Id[] = []

/** The id of the call's first task: a task's own id, or that of the one it replaced in its turn. */
export function slotOf({ id, metadata }: Pick<Node, 'id' | 'metadata'>): Id {
  const slot = metadata['slot']
  return typeof slot === 'string' ? slot : id
}

/** After this many steps with equal calls and equal results, one more would bring nothing new. */
export const MAX_REPEATS = 3

/** Marks the result of a call that was refused as a repetition: another try is refused too. */
export const REPEATED: NonNullable<NodeOutput['metadata']> = { refused: 'repeated' }

/** Messages with more calls are not compared: nobody repeats so many by mistake. */
const MOST_CALLS = 16

/** True where the last steps of this run made the very calls of this task's message, with equal results. */
export function isRepeating(reader: TreeReader, task: Node): boolean {
  const message = messageBefore(reader, task)
  return message !== undefined && wouldRepeat(reader, message, message.output.calls)
}

/** True where a message that is about to make these calls would repeat the last steps. */
export function wouldRepeat(reader: TreeReader, asking: Node, calls: readonly ToolCall[] | undefined): boolean {
  const asked = comparable(calls)
  if (asked === undefined) return false
  let message: Node | undefined = asking
  let gotten: string | undefined
  for (let step = 0; step < MAX_REPEATS; step++) {
    const tasks: readonly Node[] = message === undefined ? [] : tasksBefore(reader, message)
    const [first] = tasks
    message = first === undefined ? undefined : messageBefore(reader, first)
    if (message === undefined || comparable(message.output.calls) !== asked) return false
    if (tasks.some(({ output }) => output.metadata?.['refused'] === REPEATED['refused'])) return true
    const results = canonicalJson(tasks.map(({ output, state }) => [state, (output.content ?? null) as Json]))
    if (gotten !== undefined && results !== gotten) return false
    gotten = results
  }
  return true
}

function comparable(calls: readonly ToolCall[] | undefined): string | undefined {
  if (calls === undefined || calls.length === 0 || calls.length > MOST_CALLS) return undefined
  return canonicalJson(calls.map(({ name, input }) => [name, input]))
}

/** The message that asked for a task. */
export function messageBefore(reader: TreeReader, task: Node): Node | undefined {
  const [edge] = reader.edgesTo(task.id)
  return edge === undefined ? undefined : reader.node(edge.from)
}

/** The tasks whose results a message reads. */
export function tasksBefore(reader: TreeReader, message: Node): Node[] {
  const tasks: Node[] = []
  for (const { from } of reader.edgesTo(message.id)) {
    const node = reader.node(from)
    if (node?.kind === 'task') tasks.push(node)
  }
  return tasks
}

/** True where the task has no result but an explanation. What a person has entered as its result is one. */
export function isFailed({ output, state, marks }: Pick<Node, 'output' | 'state' | 'marks'>): boolean {
  if (output.isError === true) return true
  return state !== 'finished' && marks?.settled?.how !== 'happened'
}

/** The result of a task as a model reads it, whatever way the task ended. */
export function resultContent(task: Node): Content {
  if (task.output.content !== undefined) return task.output.content
  const why = task.failure?.message ?? 'no reason recorded'
  switch (task.state) {
    case 'uncertain':
      return `The outcome of this call is unknown: ${why} It may or may not have taken effect. Check before you call it again.`
    case 'stopped':
      return `<system-info>The tool call has been interrupted by the user.</system-info> ${why}`
    case 'rejected':
      return `Error: this call was denied. ${why}`
    case 'skipped':
      return `Error: this call was not run: ${why}`
    case 'errored':
      return `Error: ${why}`
    case 'finished':
      return ''
    default:
      return `This call has no result yet (${task.state}).`
  }
}

/**
 * The slots of a turn's input; undefined where it has none. A turn that was made anew keeps them on a copied node. A turn that
 * was put in by hand has no entry node.
 */
export function readAskedSlots(reader: TreeReader, turn: Turn): Json | undefined {
  const asked = reader.node(turn.entryNodeId)?.metadata['asked']
  if (asked !== undefined || turn.history?.source == null) return asked
  return reader.nodesOf(turn.id).find(({ metadata }) => metadata['asked'] !== undefined)?.metadata['asked']
}

export function askedInRun(reader: TreeReader, runId: Id): Json | undefined {
  const turn = reader.turn(runId)
  return turn === undefined ? undefined : readAskedSlots(reader, turn)
}

/** Copies the slots with another input; the other slots stay. */
export function replaceAskedInput(asked: Json | undefined, content: Content): Json | undefined {
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) return asked
  const { slots } = asked
  if (typeof slots !== 'object' || slots === null || Array.isArray(slots)) return asked
  return { ...asked, slots: { ...slots, input: content as unknown as Json } }
}
