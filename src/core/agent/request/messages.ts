import { plainContent, saysNothing, type ToolCall, textOf } from '../../graph/content.ts'
import { checkedAnswer, eagerField, isBeside, isEager } from '../../graph/kinds.ts'
import type { Node } from '../../graph/rows.ts'
import { isFailed, resultContent } from '../../graph/tasks.ts'
import type { Message } from '../../model/model.ts'

/** The context of a call as messages: stable parts first, so that providers can cache the beginning. */
export function messagesOf(instructions: string, context: readonly Node[]): Message[] {
  const messages: Message[] = []
  if (instructions !== '') messages.push({ role: 'system', content: instructions })
  for (const node of context) {
    if (node.purpose === 'plan' || node.metadata['planned'] !== undefined) continue
    const nudge = node.kind === 'agent_message' ? node.input.nudge : undefined
    if (nudge !== undefined) messages.push({ role: 'user', content: nudge })
    const message = messageOf(node)
    if (message !== undefined) messages.push(message)
    if (node.input.messages !== undefined) messages.push(...(node.input.messages as unknown as readonly Message[]))
  }
  return messages
}

function messageOf(node: Node): Message | undefined {
  switch (node.kind) {
    case 'system_message':
    case 'developer_message':
      return node.purpose === 'brief' ? dataMessage(wordsOf(node)) : systemMessage(wordsOf(node))
    case 'summary':
      return dataMessage(wordsOf(node))
    case 'user_message':
      return { role: 'user', content: node.input.content ?? '' }
    case 'agent_message':
      if (node.purpose === 'summarize') return dataMessage(summaryText(node))
      return node.purpose === 'brief' ? dataMessage(briefText(node)) : spokenMessage(node)
    case 'character_message':
      return spokenMessage(node)
    case 'task':
      if (checkedAnswer(node) !== undefined) return undefined
      return node.input.call === undefined || isBeside(node) ? resultAsMessage(node) : taskResult(node)
    default:
      return resultAsMessage(node)
  }
}

function wordsOf({ input, output }: Node): string {
  return textOf(input.content ?? output.content ?? '')
}

/** A text of the application. */
function systemMessage(content: string): Message | undefined {
  return content === '' ? undefined : { role: 'system', content }
}

/** A text made from others' text, such as tool results: never in the system role. */
function dataMessage(content: string): Message | undefined {
  return content === '' ? undefined : { role: 'user', content }
}

/** A model's summary of the host's context. Cuts a summary that is too long. */
function briefText(node: Node): string {
  if (node.state !== 'finished') return ''
  const said = textOf(plainContent(node.output.content ?? ''))
  return `${textOf(node.input.content ?? '')}\n${said.slice(0, briefTokens(node) * TOKEN_CHARS)}`
}

function summaryText(node: Node): string {
  const said = textOf(plainContent(node.output.content ?? ''))
  return node.state === 'finished' && said !== '' ? `What was said before, summed up:\n${said}` : ''
}

/** About how many characters count as one token. */
const TOKEN_CHARS = 4

/** How long a model's briefing may be. */
export function briefTokens({ input }: Node): number {
  const { tokens } = (input.value ?? {}) as { readonly tokens?: number }
  return tokens ?? 1_000
}

/** Leaves out a message without text and calls, because providers refuse empty ones. */
function spokenMessage(node: Node): Message | undefined {
  const calls = node.output.calls ?? []
  const said = node.output.content ?? ''
  const content = node.state === 'finished' ? said : plainContent(said)
  if (calls.length === 0 && saysNothing(content)) return undefined
  return { role: 'assistant', content, calls }
}

/** The result of a node that no model called: there is no call to answer. */
function resultAsMessage(node: Node): Message | undefined {
  const text = textOf(resultContent(node))
  return text === ''
    ? undefined
    : { role: 'user', content: `[${isEager(node) ? eagerField(node) : node.kind}] ${text}` }
}

/** The result of a call as a message. */
export function taskResult(node: Node): Message {
  return {
    role: 'tool',
    callId: node.input.call?.id ?? node.id,
    name: node.input.call?.name ?? '',
    content: resultContent(node),
    isError: isFailed(node),
  }
}

/**
 * A context that any model can read, whatever tools it has: calls and their results are text, and nothing belongs to a
 * provider. Leaves out a call without a result.
 */
export function plainMessages(context: readonly Node[]): Message[] {
  const messages = messagesOf('', context)
  return messages.flatMap((message, at) => plainMessage(message, messages.slice(at + 1)))
}

/** The newest messages that fit, beginning with a user's, as providers want it. */
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

/** True when its result is among the messages after it. */
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
