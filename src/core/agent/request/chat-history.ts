import { textOf } from '../../graph/content.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Node } from '../../graph/rows.ts'
import type { Message } from '../../model/model.ts'
import { chatIn, recordedOutput } from '../definition/chat-record.ts'
import { messagesOf } from './messages.ts'

/** The earlier messages that later requests see: those of completed runs, without their intermediate steps. */
export function chatHistory(reader: TreeReader, before: readonly Node[], maxLength: number | null): Message[] {
  const messages = before.flatMap((node) => saidIn(reader, node))
  return maxLength === null ? messages : newest(messages, maxLength)
}

/**
 * The rounds that `maxLength` leaves out; undefined where it leaves out nothing. A round that is shown in part counts
 * as left out.
 */
export function chatCut(reader: TreeReader, before: readonly Node[], maxLength: number): ChatCut | undefined {
  const all = chatHistory(reader, before, null)
  const kept = newest(all, maxLength).filter((message) => all.includes(message)).length
  if (kept === all.length) return undefined
  const roundsIn = (messages: readonly Message[]) => messages.filter(({ role }) => role === 'user').length
  const from = all.length - kept
  return { shown: roundsIn(all.slice(from)) + 1, leftOut: Math.max(1, roundsIn(all.slice(0, from))) }
}

export interface ChatCut {
  /** Rounds that are shown whole, including the current one. */
  readonly shown: number
  readonly leftOut: number
}

function saidIn(reader: TreeReader, node: Node): Message[] {
  if (node.metadata['standsFor'] === true) return messagesOf('', [node])
  const turn = reader.turn(node.turnId)
  if (turn?.outcome?.status !== 'completed') return []
  if (node.kind === 'user_message') return [{ role: 'user', content: node.input.content ?? '' }]
  if (turn.outcome.answerNodeId !== node.id) return []
  const { content = '', value } = node.output
  const text = textOf(content)
  const record = chatIn(reader, turn)
  return [{ role: 'assistant', content: recordedOutput(value, record) ?? text, calls: [] }]
}

/** Whole messages, the newest first; if a single one is too long, its end. */
function newest(messages: readonly Message[], maxLength: number): Message[] {
  let left = maxLength
  let from = messages.length
  while (from > 0) {
    left -= textOf(messages[from - 1]?.content ?? '').length
    if (left < 0) break
    from--
  }
  const kept = messages.slice(from)
  const last = messages.at(-1)
  if (kept.length > 0 || last === undefined || maxLength === 0) return kept
  return [{ ...last, content: textOf(last.content).slice(-maxLength) }] as Message[]
}
