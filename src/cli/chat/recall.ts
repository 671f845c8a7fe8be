import type { Id, Runtime } from '../../index.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'

const ROUNDS = 2
const LINES = 6

/** Shows how a conversation that is gone on with stands: the last rounds, of each message its end. */
export async function recall(runtime: Runtime, conversationId: Id): Promise<void> {
  const talk = await runtime.conversation(conversationId)
  const { transcript } = await talk.transcriptPage({ limitTurns: ROUNDS })
  const name = oneLine(talk.row?.agent.name ?? '?')
  for (const { role, text } of transcript) {
    if (text.trim() !== '') note(`${role === 'user' ? 'you' : name}: ${endOf(text)}`)
  }
}

function endOf(text: string): string {
  const lines = cleanText(text.trim()).split('\n')
  return lines.length <= LINES ? lines.join('\n') : ['…', ...lines.slice(-LINES)].join('\n')
}
