// Words for rows: content, values, names of agents and models, and what a run has cost.
//
// Owns:      how the command line shows such a value in one line or many.
// Called by: the commands that show rows, and everything in `cli/watch`.
// Must stay true:
//   - Texts of others are cleaned before they are printed (`cli/terminal/clean`).
//   - A cost with an unknown part is unknown: leaving the part out would show a wrong sum.

import { costOf } from '../../doors/models.ts'
import type { Conversation, TreeReader } from '../../doors/rows.ts'
import type { Content, Id, Json, Usage } from '../../index.ts'
import { oneLine } from '../terminal/clean.ts'
import { cut } from '../terminal/width.ts'

/** Formats content for people: text as it is, other blocks by their kind. */
export function contentWords(content: Content): string {
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

/** Writes a value on one line of at most so many columns. */
export function preview(value: Json, columns: number): string {
  const text = typeof value === 'string' ? value.slice(0, columns * 4) : JSON.stringify(value).slice(0, columns * 4)
  return cut(oneLine(text), columns)
}

/**
 * The name of the agent whose code a process needs to continue a conversation; empty if the row holds the whole agent.
 */
export function neededCode(conversation: Pick<Conversation, 'agent'> | undefined): string {
  return conversation === undefined ? '?' : (conversation.agent.code ?? conversation.agent.name)
}

/** The working folder of an agent that its row holds. */
export function folderOf(conversation: Pick<Conversation, 'agent'> | undefined): string | undefined {
  return keptText(conversation, 'cwd')
}

/** The folder that is the workspace of a conversation, if rows hold the whole agent at its root. */
export function workspaceOf(tree: Pick<TreeReader, 'conversation'>, conversationId: Id): string | undefined {
  const root = tree.conversation(conversationId)?.rootId
  return root === undefined ? undefined : folderOf(tree.conversation(root))
}

/** The model name of an agent that its row holds. */
export function modelNameOf(conversation: Pick<Conversation, 'agent'> | undefined): string | undefined {
  return keptText(conversation, 'model')
}

function keptText(conversation: Pick<Conversation, 'agent'> | undefined, key: string): string | undefined {
  const inline = conversation?.agent.inline
  const value = typeof inline === 'object' && inline !== null ? Reflect.get(inline, key) : undefined
  return typeof value === 'string' ? value : undefined
}

/** Tokens, and dollars if the price of the model is known. */
export interface TokenCost {
  readonly tokens: number
  readonly usd: number | null
}

export const NOTHING: TokenCost = { tokens: 0, usd: 0 }

export function spendOf(usage: Usage, model: string): TokenCost {
  return { tokens: usage.inputTokens + usage.outputTokens, usd: priceOf(usage, model) }
}

/** An unreadable config file only hides the price, not the rest. */
function priceOf(usage: Usage, model: string): number | null {
  try {
    return costOf(usage, model)
  } catch {
    return null
  }
}

/** Sums the usage. The sum is unknown if a part is: leaving it out would give a wrong number. */
export function totalSpend(spends: readonly TokenCost[]): TokenCost {
  const used = spends.filter(({ tokens }) => tokens > 0)
  return {
    tokens: used.reduce((sum, { tokens }) => sum + tokens, 0),
    usd: used.reduce<number | null>((sum, { usd }) => (sum === null || usd === null ? null : sum + usd), 0),
  }
}
