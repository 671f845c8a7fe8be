import { deriveIds } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import type { Draft } from '../../graph/draft.ts'
import { previewOf } from '../../graph/kinds.ts'
import { changeLane, headOf, isSkipped, laneOf, rangeOf } from '../../graph/lane.ts'
import type { TreeReader } from '../../graph/reader.ts'
import { nodeThatCounts, refused, turnOf } from '../../graph/refused.ts'
import type { Conversation, Fold, Id, Node, Turn, TurnHistory } from '../../graph/rows.ts'
import { type Claim, heldNode } from './claim.ts'
import { endNode } from './end-node.ts'

/** The part of a node's context to sum up: turns up to one, and in the node's own turn the nodes up to one. */
export interface CompactionPlan {
  /** The last turn that the summary covers, whole or in part. */
  readonly turnId: Id
  /** Null: all of that turn. Else its nodes up to this ordinal; -1 for none. */
  readonly upTo: number | null
  /** How long the summary may be. */
  readonly tokens: number
  /** About how many tokens the context has. */
  readonly contextTokens: number
  /** The first turn that the summary covers. */
  readonly fromTurnId: Id
  readonly turns: number
}

/**
 * Finds the place of a summary that ends with the node `last`, in the context of a call of `turn`. Where that node belongs to
 * another lane or to a replaced turn, or is a summary itself, everything before `turn` is summed up instead.
 */
export function foldTarget(
  reader: Pick<TreeReader, 'conversation' | 'turn'>,
  last: Node,
  { id, laneId }: Turn,
): Pick<CompactionPlan, 'turnId' | 'upTo'> {
  if (last.turnId === id) return { turnId: id, upTo: last.ordinal }
  const [lane, turn] = [reader.conversation(laneId), reader.turn(last.turnId)]
  const isOwn = last.laneId === laneId && last.kind !== 'summary' && last.purpose !== 'summarize'
  const counts = isOwn && lane !== undefined && turn !== undefined && !isSkipped(lane, turn.ordinal)
  return counts ? { turnId: last.turnId, upTo: null } : { turnId: id, upTo: -1 }
}

/**
 * Puts a call that sums up the oldest part of a context before a model call that would soon exceed its model's limit; the model
 * call waits as a row. Once per call: if the context is still too long, the model may refuse it.
 */
export function planCompaction(draft: Draft, claim: Claim, plan: CompactionPlan): void {
  const node = heldNode(draft, claim)
  if (node === undefined) return
  const turn = draft.turn(node.turnId)
  if (turn.cancel !== null || node.marks?.stop != null) return stopBefore(draft, node)
  const [id = node.id] = deriveIds(node.id, 'summarize', 1)
  const folds = { from: plan.fromTurnId, to: plan.turnId, turns: plan.turns, upTo: plan.upTo, for: node.id }
  draft.changeNode(node, {
    state: 'pending',
    engineId: null,
    startedAt: null,
    blockers: 1,
    metadata: { ...node.metadata, compacted: true },
  })
  const summary = draft.addNode(turn, {
    id,
    kind: 'agent_message',
    purpose: 'summarize',
    effect: 'idempotent',
    input: { value: { tokens: plan.tokens, contextTokens: plan.contextTokens } },
    metadata: { folds },
  })
  draft.addEdge(summary, draft.node(node.id), 'sequence')
  draft.dropBlock(node.id)
  draft.claim(summary)
}

/** The node was asked to stop since it began, so it starts no summary. */
function stopBefore(draft: Draft, node: Node): void {
  endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
}

/** Applies a finished summary: from now on models see it instead of the nodes it covers. */
export function applyCompaction(draft: Draft, summary: Node): void {
  const folds = foldsOf(summary)
  const turn = draft.findTurn(folds.to)
  if (turn === undefined) return
  const lane = draft.conversation(turn.laneId)
  // Meanwhile another turn replaced this one, or a summary by hand covers it.
  if (isSkipped(lane, turn.ordinal) || foldedBy(draft, lane, turn) !== null) return
  const facts: SummaryFacts = { folds, previousFold: turn.history?.fold ?? null }
  const previous = chainUpTo(draft, lane, turn.ordinal - 1)
  draft.changeNode(summary, { metadata: { ...summary.metadata, ...(facts as unknown as { [key: string]: Json }) } })
  putFold(draft, turn, { summaryId: summary.id, upTo: folds.upTo, before: null, previous })
  relink(draft, lane, { above: turn.ordinal, target: turn.ordinal })
  draft.event(draft.turn(summary.turnId), summary.id, {
    type: 'compaction',
    change: 'automatic',
    summaryId: summary.id,
    fromRunId: folds.from,
    toRunId: folds.to,
    turns: folds.turns,
  })
}

const RETRY_AFTER_TURNS = 20
const RETRY_AFTER_GROWTH = 1.2

/**
 * True where a summary failed so recently that another try would fail too. It is tried again when the context has grown, or
 * later.
 */
export function hasJustFailed(reader: TreeReader, { laneId, ordinal }: Turn, contextTokens: number): boolean {
  for (const { id } of reader.turnsOf(laneId, { last: ordinal, limit: RETRY_AFTER_TURNS }).toReversed()) {
    const tried = reader.nodesOf(id).findLast(({ purpose, endedAt }) => purpose === 'summarize' && endedAt !== null)
    if (tried === undefined) continue
    const { contextTokens: known = 0 } = (tried.input.value ?? {}) as { readonly contextTokens?: number }
    return tried.state === 'errored' && contextTokens < known * RETRY_AFTER_GROWTH
  }
  return false
}

export interface AutomaticFolds {
  readonly from: Id
  readonly to: Id
  readonly turns: number
  readonly upTo: number | null
  /** The call that needed the summary. */
  readonly for: Id
}

export function foldsOf({ metadata }: Node): AutomaticFolds {
  return metadata['folds'] as unknown as AutomaticFolds
}

export interface CompressRequest {
  readonly conversationId: Id
  /** Null: the first of the lane. */
  readonly fromRunId: Id | null
  readonly toRunId: Id
  readonly summary: string
}

/**
 * Adds a summary that models see instead of these turns; people still see the turns. Older summaries inside the range become
 * part of it. Gives the summary's node.
 */
export function planCompress(draft: Draft, { conversationId, fromRunId, toRunId, summary }: CompressRequest): Id {
  const lane = draft.conversation(conversationId)
  const to = turnOf(draft, conversationId, toRunId)
  const from =
    fromRunId === null ? (draft.turnAt(lane.id, firstFrom(lane, 0)) ?? to) : turnOf(draft, conversationId, fromRunId)
  if (summary.trim() === '') throw refused('no_text', 'A summary needs a text: without one, exclude the nodes instead.')
  if (to.history?.fold?.upTo === null && sameFold(draft, to, { from, summary })) return to.history.fold.summaryId
  requireRange(draft, lane, { from, to })
  const node = addSummary(draft, to, { summary, from })
  const before = from.history?.after ?? from.ordinal - 1
  const previous = chainUpTo(draft, lane, before)
  putFold(draft, to, { summaryId: node.id, upTo: null, before, previous })
  relink(draft, lane, { above: to.ordinal, target: to.ordinal })
  const turns = to.ordinal - from.ordinal + 1
  draft.event(draft.turn(to.id), node.id, {
    type: 'compaction',
    change: 'by_hand',
    summaryId: node.id,
    fromRunId: from.id,
    toRunId: to.id,
    turns,
  })
  return node.id
}

/** Takes a summary back: models see the covered turns again, with the older summaries inside them. */
export function planUncompress(draft: Draft, summaryId: Id, conversationId: Id): void {
  const node = nodeThatCounts(draft, conversationId, summaryId)
  const lane = draft.conversation(conversationId)
  if (node.metadata['folds'] === undefined) {
    throw refused('wrong_kind', `The node ${summaryId} is no summary of earlier turns.`, { nodeId: summaryId })
  }
  const facts = node.metadata as unknown as SummaryFacts
  // An automatic summary is a node of the turn that needed it, which may be a later one.
  const turn = draft.turn(facts.folds.to)
  const fold = turn.history?.fold ?? null
  if (fold === null) return
  const by = fold.summaryId === summaryId ? foldedBy(draft, lane, turn) : fold.summaryId
  if (by !== null) {
    const message = `${summaryId} was folded into ${by}: take that back first.`
    throw refused('inside_summary', message, { nodeId: summaryId, by })
  }
  putFold(draft, turn, facts.previousFold)
  relink(draft, lane, { above: turn.ordinal, target: uncover(draft, lane, { last: turn.ordinal, fold }) })
  draft.event(draft.turn(turn.id), summaryId, {
    type: 'compaction',
    change: 'undone',
    summaryId,
    fromRunId: facts.folds.from,
    toRunId: turn.id,
    turns: facts.folds.turns,
  })
}

/** The later summary that includes this one; null for none. */
function foldedBy(draft: Draft, lane: Conversation, turn: Turn): Id | null {
  if (isSkipped(lane, turn.ordinal)) {
    const message = `Another turn took the place of ${turn.id}: adopt its answer first.`
    throw refused('replaced', message, { runId: turn.id })
  }
  const covers = ({ ordinal, fold }: SummaryLink) => ordinal > turn.ordinal && (fold.before ?? -1) < turn.ordinal
  return [...chain(draft, lane)].find(covers)?.fold.summaryId ?? null
}

/** The facts in a summary's row about the turns it covers. */
export interface SummaryFacts {
  readonly folds: { readonly from: Id; readonly to: Id; readonly turns: number }
  /** The summary that this turn had before. */
  readonly previousFold: Fold | null
}

interface Range {
  readonly from: Turn
  readonly to: Turn
}

/** The first turn from an ordinal on that was not replaced. */
function firstFrom({ lane }: Conversation, ordinal: number): number {
  const skipped = rangeOf(lane, ordinal)
  return skipped === undefined ? ordinal : skipped[1] + 1
}

function requireRange(draft: Draft, lane: Conversation, { from, to }: Range): void {
  for (const { id, ordinal } of [from, to]) {
    if (isSkipped(lane, ordinal))
      throw refused('replaced', `Another turn took the place of ${id}: name one that counts.`, { runId: id })
  }
  if (from.ordinal > to.ordinal) {
    throw refused('not_related', `The turn ${from.id} comes after ${to.id}: name the earlier one first.`)
  }
  if (to.state !== 'ended') {
    throw refused('wrong_state', `The turn ${to.id} is ${to.state}: only turns that are over can be summed up.`, {
      turnId: to.id,
    })
  }
  if (to.ordinal === headOf(lane)) {
    const message = `${to.id} is the last turn: a summary cannot be the last word. Sum up to the turn before it.`
    throw refused('is_last', message, { runId: to.id })
  }
  requireApart(draft, lane, { from, to })
}

/** Requires that a range holds each older summary whole, or not at all. */
function requireApart(draft: Draft, lane: Conversation, { from, to }: Range): void {
  for (const { ordinal, fold } of chain(draft, lane)) {
    const start = firstFrom(lane, (fold.before ?? -1) + 1)
    const isInside = ordinal >= from.ordinal && ordinal <= to.ordinal
    if (isInside ? start >= from.ordinal : ordinal < from.ordinal || start > to.ordinal) continue
    const message = `The summary ${fold.summaryId} stands for some of these turns and for others: take it back first, or begin where it does.`
    throw refused('inside_summary', message, { by: fold.summaryId })
  }
}

function sameFold(draft: Draft, to: Turn, { from, summary }: { from: Turn; summary: string }): boolean {
  const node = draft.findNode(to.history?.fold?.summaryId ?? '')
  const facts = node?.metadata as SummaryFacts | undefined
  return node?.output.content === summary && facts?.folds.from === from.id
}

function addSummary(draft: Draft, to: Turn, { summary, from }: { summary: string; from: Turn }): Node {
  const facts: SummaryFacts = {
    folds: { from: from.id, to: to.id, turns: to.ordinal - from.ordinal + 1 },
    previousFold: to.history?.fold ?? null,
  }
  return draft.addNode(to, {
    id: draft.freshId(),
    kind: 'summary',
    state: 'finished',
    effect: 'pure',
    output: { content: summary },
    preview: previewOf(summary, 'summary', draft.kinds),
    metadata: facts as unknown as { readonly [key: string]: Json },
    endedAt: draft.now,
  })
}

export interface SummaryLink {
  readonly ordinal: number
  readonly turn: Turn
  readonly fold: Fold
}

/** Yields the turns of a lane with a summary that counts, the newest first. */
function* chain(
  draft: Draft,
  { id }: Conversation,
  from: number | null = laneOf(draft.conversation(id)).fold,
): Generator<SummaryLink> {
  for (let at = from; at !== null; ) {
    const turn: Turn | undefined = draft.turnAt(id, at)
    const fold: Fold | null = turn?.history?.fold ?? null
    if (turn === undefined || fold === null) return
    yield { ordinal: at, turn, fold }
    at = fold.previous
  }
}

/** The newest turn with a summary that counts, up to one. */
function chainUpTo(draft: Draft, lane: Conversation, last: number): number | null {
  for (const { ordinal } of chain(draft, lane)) if (ordinal <= last) return ordinal
  return null
}

/**
 * The newest turn with a summary that counts, where nothing after `last` is to count any more: turns that a later summary
 * covered count again.
 */
export function foldUpTo(
  draft: Draft,
  lane: Conversation,
  { last, from }: { last: number; from: number | null },
): number | null {
  let later: Fold | null = null
  for (const { ordinal, fold } of chain(draft, lane, from)) {
    if (ordinal > last) later = fold
    else if (later === null) return ordinal
    else break
  }
  return later === null ? null : uncover(draft, lane, { last, fold: later })
}

/**
 * Links the older summaries again that a removed summary covered; others may have been made or taken back there since. Costs as
 * many turns as that summary covered. Gives the newest one up to that turn.
 */
export function uncover(
  draft: Draft,
  lane: Conversation,
  { last, fold: { before, previous } }: { last: number; fold: Pick<Fold, 'before' | 'previous'> },
): number | null {
  const found: SummaryLink[] = []
  let at = last
  while (at > (before ?? -1)) {
    const turn = draft.turnAt(lane.id, at)
    if (turn === undefined) break
    const fold = turn.history?.fold ?? null
    if (fold !== null) found.push({ ordinal: at, turn, fold })
    at = fold === null ? (turn.history?.after ?? at - 1) : (fold.before ?? -1)
  }
  let target = foldUpTo(draft, lane, { last: at, from: previous })
  for (const { ordinal, turn, fold } of found.toReversed()) {
    if (fold.before !== null && fold.previous !== target) putFold(draft, turn, { ...fold, previous: target })
    target = ordinal
  }
  return target
}

/** Replaces references to the newest summary up to a turn. */
function relink(draft: Draft, lane: Conversation, { above, target }: { above: number; target: number | null }): void {
  const later = [...chain(draft, lane)].filter(({ ordinal }) => ordinal > above).at(-1)
  if (later === undefined) changeLane(draft, lane, { fold: target })
  else putFold(draft, later.turn, { ...later.fold, previous: target })
}

/** Sets the summary of a turn; null for none. */
export function putFold(draft: Draft, { id }: Turn, fold: Fold | null): void {
  const turn = draft.turn(id)
  const history: TurnHistory = turn.history ?? { after: turn.ordinal - 1, source: null, merges: [], fold: null }
  draft.changeTurn(turn, { history: { ...history, fold } })
}
