import { type Content, textOf } from '../../graph/content.ts'
import { collectContext } from '../../graph/context.ts'
import type { Draft } from '../../graph/draft.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Node } from '../../graph/rows.ts'
import { resultContent } from '../../graph/tasks.ts'
import type { Model, ModelRequest } from '../../model/model.ts'
import { modelInfo } from '../../model/named/prices.ts'
import { type CompactionPlan, foldsOf, foldTarget, hasJustFailed, planCompaction } from '../../rules/turn/compaction.ts'
import { chatIn } from '../definition/chat-record.ts'
import { type CompactionSettings, DEFAULT_WINDOW } from '../definition/compaction-settings.ts'
import type { NodeRun } from '../hooks/node-run.ts'
import { plainMessages } from './messages.ts'

const windows: WeakMap<Model, number> = new WeakMap()

/** The model's window in tokens, as far as it is known. */
function windowOf(model: Model, settings: CompactionSettings): number {
  if (settings.windowTokens !== null) return settings.windowTokens
  const known = windows.get(model)
  if (known !== undefined) return known
  const window = modelInfo(model.id).contextWindow ?? DEFAULT_WINDOW
  windows.set(model, window)
  return window
}

/** About how many characters a token has. */
const CHARS = 4
/** About how many tokens the tools and settings take. */
const OVERHEAD = 500

/** Plans the summary that this call needs first; null when its whole context fits. */
export function compactionFor(run: NodeRun, model: Model, context: readonly Node[]): CompactionPlan | null {
  const { home, node, turn, agent } = run
  if (home.settings.compaction === null || node.kind !== 'agent_message' || node.metadata['compacted'] === true)
    return null
  const window = windowOf(model, home.settings.compaction)
  const most = window * home.settings.compaction.at
  if (isShort(context, (most - OVERHEAD) * CHARS - agent.instructions.length)) return null
  const sizes = sizesOf(run, context)
  const total = sum(sizes) + OVERHEAD + agent.instructions.length / CHARS
  if (total < most || hasJustFailed(run.tree, turn, total)) return null
  const tokens = Math.min(4_096, Math.ceil(window / 10))
  return planFor(run, { context, sizes, room: window * home.settings.compaction.keep, tokens, total: Math.ceil(total) })
}

/** True where a context of a few plain texts is surely shorter. Most are, and measuring each node takes longer. */
function isShort(context: readonly Node[], most: number): boolean {
  if (context.length > FEW) return false
  let length = 0
  for (const { kind, input, output } of context) {
    if (output.calls !== undefined || input.messages !== undefined) return false
    // Without a result, a call is shown with the reason why it has none.
    if (kind === 'task' && output.content === undefined) return false
    const { content: told = '' } = input
    const { content: said = '' } = output
    if (typeof told !== 'string' || typeof said !== 'string') return false
    length += told.length + said.length + CHARS * 5
  }
  return length < most
}

const FEW = 16

/** The size of each node in the model's context. A chat shows only questions and answers, up to its own limit. */
function sizesOf({ tree, agent, turn }: NodeRun, context: readonly Node[]): number[] {
  const chat = agent.asked === null ? undefined : chatIn(tree, turn)
  if (chat === undefined) return context.map(tokensOf)
  const isShown = ({ kind, turnId, output }: Node) =>
    turnId === turn.id || (chat.maxLength === null && kind !== 'task' && output.calls === undefined)
  return context.map((node) => (isShown(node) ? tokensOf(node) : 0))
}

/** Puts the call that summarises before this one. */
export function compactFirst({ node, work, home }: NodeRun, plan: CompactionPlan): void | Promise<void> {
  const step = (draft: Draft) => planCompaction(draft, work.claim, plan)
  return home.ledger.commit({ kind: 'expand', rootId: node.rootId, plan: step })
}

interface Measured {
  readonly context: readonly Node[]
  readonly sizes: readonly number[]
  /** Tokens of the newest part that stays unchanged. */
  readonly room: number
  readonly tokens: number
  readonly total: number
}

/** The cut lies between two turns, or between two rounds of calls of this one: a call keeps its result. */
function planFor(run: NodeRun, measured: Measured): CompactionPlan | null {
  const { context } = measured
  const cut = cutOf(run, measured)
  const last = cut === undefined ? undefined : context[cut - 1]
  const [first] = context
  if (cut === undefined || last === undefined || first === undefined) return null
  const folded = context.slice(0, cut).filter(({ turnId }) => turnId !== run.turn.id)
  const turns = new Set(folded.map(({ turnId }) => turnId)).size
  const facts = { tokens: measured.tokens, contextTokens: measured.total, fromTurnId: first.turnId, turns }
  return { ...facts, ...foldTarget(run.tree, last, run.turn) }
}

/** The first place after which the rest fits; where there is none, the last possible one. */
function cutOf(run: NodeRun, { context, sizes, room }: Measured): number | undefined {
  const isByHand = context.some(({ turnId, metadata }) => turnId === run.turn.id && metadata['byHand'] === true)
  let left = sum(sizes)
  let last: number | undefined
  for (let at = 1; at < context.length; at++) {
    left -= sizes[at - 1] ?? 0
    if (!isCut(run, context[at - 1], context[at], isByHand)) continue
    last = at
    if (left <= room) return at
  }
  return last
}

function isCut({ turn }: NodeRun, before: Node | undefined, after: Node | undefined, isByHand: boolean): boolean {
  if (before === undefined || after === undefined || before.metadata['standsFor'] === true) return false
  if (before.turnId !== after.turnId) return after.turnId === turn.id || before.laneId === turn.laneId
  // Cuts within a turn only where an agent speaks next, and only in the turn of this call.
  const isOwn = after.turnId === turn.id && !isByHand
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

/** Counts a picture as about a thousand tokens. */
function lengthOf(content: Content): number {
  if (typeof content === 'string') return content.length
  const media = content.filter((block) => 'data' in block).length
  return textOf(content).length + media * 1_000 * CHARS
}

/** The request for a summary: it contains everything that will no longer be shown, earlier summaries included. */
export function summarizeRequest({ tree, node, agent, contextTurns, conversation }: NodeRun): ModelRequest {
  const folded = foldedFor(tree, node, contextTurns)
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

function foldedFor(store: TreeReader, summary: Node, limitTurns: number): Node[] {
  const { for: targetId, to, upTo } = foldsOf(summary)
  const target = store.node(targetId)
  if (target === undefined) return []
  const context = collectContext(store, target, limitTurns)
  if (to !== target.turnId) return context.slice(0, context.findLastIndex(({ turnId }) => turnId === to) + 1)
  const isFolded = ({ turnId, ordinal }: Node) => turnId !== to || upTo === null || ordinal <= upTo
  return context.filter((node) => node.metadata['standsFor'] === true || isFolded(node))
}
