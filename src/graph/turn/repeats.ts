import { canonicalJson, type Json } from '../../base/json.ts'
import type { ToolCall } from '../content.ts'
import type { Reader } from '../reader.ts'
import type { Node, NodeOutput } from '../rows.ts'

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
