import { deriveIds } from '../base/id.ts'
import { canonicalJson, type Json } from '../base/json.ts'
import type { Content, ToolCall } from './content.ts'
import type { Reader } from './reader.ts'
import type { Id, Node, NodeOutput, Turn } from './rows.ts'

/** Of the tasks of a message and of the message that reads their results. Derived, so that the same answer makes the same. */
export function expansionIds(nodeId: Id, tasks: number): Id[] {
  return deriveIds(nodeId, 'expand', tasks + 1)
}

/** The tasks that a message's calls made. */
export function taskIdsOf({ id, output }: Pick<Node, 'id' | 'output'>): readonly Id[] {
  const count = output.calls?.length ?? 0
  return count === 0 ? NONE : expansionIds(id, count).slice(0, count)
}

const NONE: readonly Id[] = []

/** Which of them a task stands for: its own id, or that of the one whose place it took in its turn. */
export function slotOf({ id, metadata }: Pick<Node, 'id' | 'metadata'>): Id {
  const slot = metadata['slot']
  return typeof slot === 'string' ? slot : id
}

/** This many steps that asked for the same and got the same are enough: one more would get it again. */
export const MAX_REPEATS = 3

/** On the result of a call that was refused for it: asked for once more it is refused once more. */
export const REPEATED: NonNullable<NodeOutput['metadata']> = { refused: 'repeated' }

/** Calls of one message beyond which steps are not compared: nobody repeats so many by mistake. */
const MOST_CALLS = 16

/** Did the last steps of this run make the very calls of this task's message, with the very same results? */
export function isRepeating(reader: Reader, task: Node): boolean {
  const message = messageBefore(reader, task)
  return message !== undefined && wouldRepeat(reader, message, message.output.calls)
}

/** The same of a message that is about to make these calls. */
export function wouldRepeat(reader: Reader, asking: Node, calls: readonly ToolCall[] | undefined): boolean {
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

function messageBefore(reader: Reader, task: Node): Node | undefined {
  const [edge] = reader.edgesTo(task.id)
  return edge === undefined ? undefined : reader.node(edge.from)
}

function tasksBefore(reader: Reader, message: Node): Node[] {
  const tasks: Node[] = []
  for (const { from } of reader.edgesTo(message.id)) {
    const node = reader.node(from)
    if (node?.kind === 'task') tasks.push(node)
  }
  return tasks
}

/** What a model reads as the result of a task, whatever way the task ended. */
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
 * What a turn was asked with, in slots; undefined where it has none. One made anew has it on a node that it kept. A turn
 * that was put in by hand has no entry node.
 */
export function askedOf(reader: Reader, turn: Turn): Json | undefined {
  const asked = reader.node(turn.entryNodeId)?.metadata['asked']
  if (asked !== undefined || turn.history?.source == null) return asked
  return reader.nodesOf(turn.id).find(({ metadata }) => metadata['asked'] !== undefined)?.metadata['asked']
}

export function askedInRun(reader: Reader, runId: Id): Json | undefined {
  const turn = reader.turn(runId)
  return turn === undefined ? undefined : askedOf(reader, turn)
}

/** The same slots with another input: what else was asked stays. */
export function askedInOtherWords(asked: Json | undefined, content: Content): Json | undefined {
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) return asked
  const { slots } = asked
  if (typeof slots !== 'object' || slots === null || Array.isArray(slots)) return asked
  return { ...asked, slots: { ...slots, input: content as unknown as Json } }
}
