import { agent, type ConversationHandle, type Runtime } from 'legate'
import type { Node } from 'legate/rows'
import { type Script, scriptedModel } from 'legate/testing'
import { expect } from 'vitest'
import { readTrees } from '../../../src/core/graph/reader.ts'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { brokenGraph } from '../../../src/testing/crash/aftermath.ts'
import { unsettled } from '../../../src/testing/crash/laws.ts'
import { localStore } from '../../support/rows.ts'

/** Says what it was shown, one message a word: `u:` people, `a:` itself, `s:` told, `t:` results. */
export const parrot: Script = ({ messages }) => {
  const letters = { user: 'u', assistant: 'a', system: 's', tool: 't' } as const
  const heard = messages.map(({ role, content }) => `${letters[role]}:${short(String(content))}`)
  return `<${heard.join(' ')}>`
}

function short(text: string): string {
  return text.startsWith('<') ? `<${text.split(' ').length}>` : text
}

/** Answers each input with `re: input`, so that a context can be read from what it is shown. */
export function echo(name = 'echo') {
  const model = scriptedModel(
    ({ messages }) => `re: ${String(messages.findLast(({ role }) => role === 'user')?.content)}`,
  )
  return { model, echo: agent({ name, instructions: '', model }) }
}

/** What the model was shown last, without instructions. */
export function shown(model: {
  readonly requests: readonly { readonly messages: readonly { readonly content: unknown }[] }[]
}): string[] {
  return (model.requests.at(-1)?.messages ?? []).map(({ content }) => String(content))
}

/** One round, and its nodes. */
export async function say(runtime: Runtime, who: Parameters<Runtime['run']>[0], text: string, conversationId?: string) {
  const run = runtime.run(who, text, conversationId === undefined ? {} : { conversationId })
  const outcome = await run.result
  const nodes = localStore(runtime).nodesOf(run.id)
  return { run, outcome, nodes, user: first(nodes, 'user_message'), answer: last(nodes, 'agent_message') }
}

export function first(nodes: readonly Node[], kind: string): Node {
  const found = nodes.find((node) => node.kind === kind)
  if (found === undefined) throw new Error(`there is no ${kind}`)
  return found
}

export function last(nodes: readonly Node[], kind: string): Node {
  const found = nodes.findLast((node) => node.kind === kind)
  if (found === undefined) throw new Error(`there is no ${kind}`)
  return found
}

export async function textsOf(talk: ConversationHandle): Promise<string[]> {
  return (await talk.transcript()).map(({ text }) => text)
}

/** All laws of graphs hold, and, where nothing is open, those of ended trees. */
export function expectLawful(store: LocalStore): void {
  for (const tree of readTrees(store)) {
    expect(brokenGraph(tree)).toEqual([])
    if ([...tree.turns.values()].every(({ state }) => state === 'ended')) expect(unsettled(tree)).toEqual([])
  }
}

/** The rows of a conversation's turns, to compare before and after. */
export function rowsOf(store: LocalStore, conversationId: string): unknown {
  const turns = store.turnsOf(conversationId, { limit: 1_000 })
  return turns.map((turn) => ({ turn, nodes: store.nodesOf(turn.id), links: store.linksOf(turn.id) }))
}

export async function reasonOf(change: Promise<unknown>): Promise<unknown> {
  try {
    await change
  } catch (error) {
    const { details, code, message } = error as { details: { reason?: unknown }; code: string; message: string }
    expect(message.length).toBeGreaterThan(20)
    return details.reason ?? code
  }
  return 'done'
}
