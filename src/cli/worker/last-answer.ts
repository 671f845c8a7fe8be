import type { Outcome, Run, Runtime } from '../../index.ts'
import { cleanText } from '../terminal/clean.ts'

/** What the last turn of a run's conversation has answered, as it is printed; empty where it did not complete. */
export async function lastAnswer(runtime: Runtime, { conversationId }: Pick<Run, 'conversationId'>): Promise<string> {
  const [last] = runtime.store.turnsOf(conversationId, { limit: 1 })
  if (last?.outcome?.status !== 'completed') return ''
  return answerText((await runtime.attach(last.id).result) as Outcome)
}

function answerText({ text, output }: Outcome): string {
  const words = text.trim() === '' && output !== null ? JSON.stringify(output) : text
  const shown = process.stdout.isTTY ? `\n${cleanText(words)}` : words
  return shown.endsWith('\n') ? shown : `${shown}\n`
}
