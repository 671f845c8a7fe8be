import { costOf } from '../../doors/models.ts'
import type { Conversation } from '../../doors/rows.ts'
import type { Content, Json, Usage } from '../../index.ts'
import { exactLine, oneLine } from '../terminal/clean.ts'
import { cut } from '../terminal/width.ts'

/** What was said, for people: text as it is, other blocks by their kind. */
export function wordsOf(content: Content): string {
  if (typeof content === 'string') return content
  return content
    .map((block) => {
      if (block.type === 'text') return block.text
      if (block.type === 'json') return JSON.stringify(block.value)
      return block.type === 'reasoning' ? '' : `[${block.type}: ${block.mediaType}]`
    })
    .filter((text) => text !== '')
    .join('\n')
}

/** All of a value on one line, to the letter. */
export function whole(value: Json): string {
  return exactLine(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Any value on one line of at most so many columns. */
export function preview(value: Json, columns: number): string {
  const text = typeof value === 'string' ? value.slice(0, columns * 4) : JSON.stringify(value).slice(0, columns * 4)
  return cut(oneLine(text), columns)
}

/** Whose code a process must have to go on with a conversation: an agent's name, or empty where its row has all of it. */
export function codeOf(conversation: Pick<Conversation, 'agent'> | undefined): string {
  return conversation === undefined ? '?' : (conversation.agent.code ?? conversation.agent.name)
}

/** The folder that an agent which is kept in its row works in. */
export function folderOf(conversation: Pick<Conversation, 'agent'> | undefined): string | undefined {
  return keptText(conversation, 'cwd')
}

/** The name of the model that an agent which is kept in its row speaks with. */
export function modelNameOf(conversation: Pick<Conversation, 'agent'> | undefined): string | undefined {
  return keptText(conversation, 'model')
}

function keptText(conversation: Pick<Conversation, 'agent'> | undefined, key: string): string | undefined {
  const inline = conversation?.agent.inline
  const value = typeof inline === 'object' && inline !== null ? Reflect.get(inline, key) : undefined
  return typeof value === 'string' ? value : undefined
}

/** Tokens, and dollars where the price of the model is known. */
export interface Spend {
  readonly tokens: number
  readonly usd: number | null
}

export const NOTHING: Spend = { tokens: 0, usd: 0 }

export function spendOf(usage: Usage, model: string): Spend {
  return { tokens: usage.inputTokens + usage.outputTokens, usd: priceOf(usage, model) }
}

/** A config file that cannot be read is no reason to show nothing. */
function priceOf(usage: Usage, model: string): number | null {
  try {
    return costOf(usage, model)
  } catch {
    return null
  }
}

/** Unknown and something is unknown: a sum that left out a part would be a wrong number. */
export function sumOf(spends: readonly Spend[]): Spend {
  const used = spends.filter(({ tokens }) => tokens > 0)
  return {
    tokens: used.reduce((sum, { tokens }) => sum + tokens, 0),
    usd: used.reduce<number | null>((sum, { usd }) => (sum === null || usd === null ? null : sum + usd), 0),
  }
}
