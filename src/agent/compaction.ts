import { type Content, textOf } from '../graph/content.ts'
import { contextOf } from '../graph/context.ts'
import type { Draft } from '../graph/draft.ts'
import { type CompactionPlan, foldsOf, foldTarget, planCompaction } from '../graph/history/compaction.ts'
import type { Reader } from '../graph/reader.ts'
import type { Node } from '../graph/rows.ts'
import { resultContent } from '../graph/turn/result-content.ts'
import type { Model, ModelRequest } from '../model/model.ts'
import { modelInfo } from '../model/named/prices.ts'
import type { CompactionSettings } from './compaction-settings.ts'
import { contextTurnsOf } from './conversation-settings.ts'
import type { NodeRun } from './node-run.ts'
import { plainMessages } from './plain-messages.ts'

const windows: WeakMap<Model, number> = new WeakMap()

/** Tokens that a model can read at most; 0 when nobody knows. */
function windowOf(model: Model, settings: CompactionSettings): number {
  if (settings.windowTokens !== null) return settings.windowTokens
  const known = windows.get(model)
  if (known !== undefined) return known
  const window = modelInfo(model.id).contextWindow ?? 0
  windows.set(model, window)
  return window
}

/** Characters of a token, about. */
const CHARS = 4
/** What tools and settings take, about. */
const OVERHEAD = 500

/** What has to be summed up before this call is made; null when all of it has room. */
export function compactionFor(run: NodeRun, model: Model): CompactionPlan | null {
  const { compaction: settings } = run.home
  if (settings === null) return null
  const window = windowOf(model, settings)
  if (window === 0 || run.node.kind !== 'agent_message' || run.node.metadata['compacted'] === true) return null
  const context = contextOf(run.home.ledger.store, run.node, contextTurnsOf(run.conversation, run.agent))
  const sizes = context.map(tokensOf)
  const total = sizes.reduce((sum, size) => sum + size, OVERHEAD + run.agent.instructions.length / CHARS)
  if (total < window * settings.at) return null
  return planFor(run, { context, sizes, room: window * settings.keep, tokens: Math.min(4_096, Math.ceil(window / 10)) })
}

/** Puts the call that sums up before this one. */
export function compactFirst({ node, work, home }: NodeRun, plan: CompactionPlan): void | Promise<void> {
  const step = (draft: Draft) => planCompaction(draft, work.claim, plan)
  return home.ledger.commit({ kind: 'expand', rootId: node.rootId, plan: step })
}

interface Measured {
  readonly context: readonly Node[]
  readonly sizes: readonly number[]
  /** Tokens of the newest part that stay as they are. */
  readonly room: number
  readonly tokens: number
}

/** The cut lies between two turns, or between two rounds of calls of this one: a call keeps its result. */
function planFor(run: NodeRun, measured: Measured): CompactionPlan | null {
  const { context } = measured
  const places = context.map((_, at) => at).filter((at) => at > 0 && isCut(run, context, at))
  const cut = places.find((at) => sum(measured.sizes.slice(at)) <= measured.room) ?? places.at(-1)
  const last = cut === undefined ? undefined : context[cut - 1]
  const [first] = context
  if (cut === undefined || last === undefined || first === undefined) return null
  const folded = context.slice(0, cut).filter(({ turnId }) => turnId !== run.turn.id)
  const turns = new Set(folded.map(({ turnId }) => turnId)).size
  const facts = { tokens: measured.tokens, fromTurnId: first.turnId, turns }
  return { ...facts, ...foldTarget(run.home.ledger.store, last, run.turn) }
}

function isCut(run: NodeRun, context: readonly Node[], at: number): boolean {
  const [before, after] = [context[at - 1], context[at]]
  if (before === undefined || after === undefined || before.metadata['standsFor'] === true) return false
  if (before.turnId !== after.turnId) return after.turnId === run.turn.id || before.laneId === run.turn.laneId
  // Within the turn only where an agent speaks next, and only in the turn of this call.
  const isOwn =
    after.turnId === run.turn.id &&
    !context.some(({ turnId, metadata }) => turnId === run.turn.id && metadata['byHand'] === true)
  return isOwn && after.kind === 'agent_message' && before.kind !== 'user_message'
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0)
}

function tokensOf(node: Node): number {
  const { input, output } = node
  const said =
    lengthOf(input.content ?? '') + lengthOf(node.kind === 'task' ? resultContent(node) : (output.content ?? ''))
  const calls = output.calls === undefined ? 0 : JSON.stringify(output.calls).length
  const heard = input.messages === undefined ? 0 : JSON.stringify(input.messages).length
  return Math.ceil((said + calls + heard) / CHARS) + 4
}

/** A picture is taken for about a thousand tokens. */
function lengthOf(content: Content): number {
  if (typeof content === 'string') return content.length
  const media = content.filter((block) => 'data' in block).length
  return textOf(content).length + media * 1_000 * CHARS
}

/** The call that sums up: it reads what will no longer be shown, earlier summaries included. */
export function summarizeRequest({ node, agent, home, conversation }: NodeRun): ModelRequest {
  const { store } = home.ledger
  const folded = foldedFor(store, node, contextTurnsOf(conversation, agent))
  const { tokens } = (node.input.value ?? {}) as { readonly tokens?: number }
  const most = tokens ?? 1_000
  const asked = `Sum up the conversation so far for the one who goes on with it: what was asked, what was decided and why, what was found (names, numbers, ids, paths, session ids as they are), what is still open. Leave nothing out that would have to be asked or looked up again. At most ${Math.ceil(most * 0.6)} words.`
  return {
    messages: [
      { role: 'system', content: 'You sum up conversations. You answer with the summary and nothing else.' },
      ...plainMessages(folded),
      { role: 'user', content: asked },
    ],
    tools: [],
    settings: { ...agent.settings, maxOutputTokens: Math.min(agent.settings.maxOutputTokens ?? most, most) },
    outputSchema: null,
    path: conversation.path,
  }
}

function foldedFor(store: Reader, summary: Node, limitTurns: number): Node[] {
  const { for: targetId, to, upTo } = foldsOf(summary)
  const target = store.node(targetId)
  if (target === undefined) return []
  const context = contextOf(store, target, limitTurns)
  if (to !== target.turnId) return context.slice(0, context.findLastIndex(({ turnId }) => turnId === to) + 1)
  const isFolded = ({ turnId, ordinal }: Node) => turnId !== to || upTo === null || ordinal <= upTo
  return context.filter((node) => node.metadata['standsFor'] === true || isFolded(node))
}
