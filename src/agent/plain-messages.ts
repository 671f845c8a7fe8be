import { plainContent, type ToolCall, textOf } from '../graph/content.ts'
import type { Node } from '../graph/rows.ts'
import type { Message } from '../model/model.ts'
import { messagesOf } from './messages.ts'

/**
 * A context as any model can read it, whatever tools it has: calls and their results are text, and nothing belongs to a
 * provider. A call that has no result yet is left out.
 */
export function plainMessages(context: readonly Node[]): Message[] {
  const messages = messagesOf('', context)
  return messages.flatMap((message, at) => plainMessage(message, messages.slice(at + 1)))
}

/** The newest of them that fit, beginning with what a user said: providers want that. */
export function newestWithin(messages: readonly Message[], characters: number): Message[] {
  let left = characters
  let from = messages.length
  while (from > 0) {
    left -= JSON.stringify(messages[from - 1]).length
    if (left < 0) break
    from--
  }
  const kept = messages.slice(from)
  const first = kept.findIndex(({ role }) => role !== 'assistant')
  if (first >= 0) return kept.slice(first)
  const last = messages.findLast(({ role }) => role === 'user')
  return last === undefined ? [] : [{ role: 'user', content: textOf(last.content).slice(0, characters) }]
}

function plainMessage(message: Message, after: readonly Message[]): Message[] {
  if (message.role === 'tool') return [{ role: 'user', content: resultText(message) }]
  if (message.role !== 'assistant') return [message]
  const content = plainContent(message.content)
  const called = message.calls.filter((call) => isAnswered(call, after)).map(callText)
  if (called.length === 0) return textOf(content) === '' ? [] : [{ role: 'assistant', content, calls: [] }]
  const text = [textOf(content), ...called].filter((line) => line !== '').join('\n')
  return [{ role: 'assistant', content: text, calls: [] }]
}

/** Its result is among those that follow its message. */
function isAnswered({ id }: ToolCall, after: readonly Message[]): boolean {
  for (const message of after) {
    if (message.role !== 'tool') return false
    if (message.callId === id) return true
  }
  return false
}

function callText({ name, input }: ToolCall): string {
  return `[called ${name} with ${JSON.stringify(input)}]`
}

function resultText({ name, content, isError }: Extract<Message, { role: 'tool' }>): string {
  return `[${isError ? 'failure' : 'result'} of ${name}] ${textOf(content)}`
}
