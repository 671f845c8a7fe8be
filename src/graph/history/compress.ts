import { freshId } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import type { Draft } from '../draft.ts'
import { previewOf } from '../kinds.ts'
import { nodeOf, refused, turnOf } from '../refused.ts'
import type { Conversation, Fold, Id, Node, Turn } from '../rows.ts'
import { type ChainLink, chain, chainUpTo, putFold, relink, uncover } from './fold-chain.ts'
import { headOf, isSkipped, rangeOf } from './lane.ts'

export interface CompressRequest {
  readonly conversationId: Id
  /** Null: the first of the lane. */
  readonly fromTurnId: Id | null
  readonly toTurnId: Id
  readonly summary: string
}

/**
 * A summary that models are shown instead of these turns; people see them as before. Summaries that are among them are
 * folded into it. Gives the summary's node.
 */
export function planCompress(draft: Draft, { conversationId, fromTurnId, toTurnId, summary }: CompressRequest): Id {
  const lane = draft.conversation(conversationId)
  const to = turnOf(draft, conversationId, toTurnId)
  const from =
    fromTurnId === null ? (draft.turnAt(lane.id, firstFrom(lane, 0)) ?? to) : turnOf(draft, conversationId, fromTurnId)
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
    fromTurnId: from.id,
    toTurnId: to.id,
    turns,
  })
  return node.id
}

/** Takes a summary back: models are shown again what it stands for, with the summaries that were folded into it. */
export function planUncompress(draft: Draft, summaryId: Id, conversationId: Id): void {
  const node = nodeOf(draft, conversationId, summaryId)
  const lane = draft.conversation(conversationId)
  if (node.metadata['folds'] === undefined) {
    throw refused('wrong_kind', `The node ${summaryId} is no summary of earlier turns.`, { nodeId: summaryId })
  }
  const facts = node.metadata as unknown as SummaryFacts
  // One that was made by itself is a node of the turn that needed it, which may be a later one.
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
    fromTurnId: facts.folds.from,
    toTurnId: turn.id,
    turns: facts.folds.turns,
  })
}

/** The later summary of which one has become a part; null for none. */
export function foldedBy(draft: Draft, lane: Conversation, turn: Turn): Id | null {
  if (isSkipped(lane, turn.ordinal)) {
    const message = `Another turn took the place of ${turn.id}: adopt its answer first.`
    throw refused('replaced', message, { turnId: turn.id })
  }
  const covers = ({ ordinal, fold }: ChainLink) => ordinal > turn.ordinal && (fold.before ?? -1) < turn.ordinal
  return [...chain(draft, lane)].find(covers)?.fold.summaryId ?? null
}

/** What the row of a summary says of what it stands for. */
export interface SummaryFacts {
  readonly folds: { readonly from: Id; readonly to: Id; readonly turns: number }
  /** The summary that this turn had before. */
  readonly previousFold: Fold | null
}

interface Range {
  readonly from: Turn
  readonly to: Turn
}

/** The first turn from an ordinal on whose place no other has taken. */
function firstFrom({ lane }: Conversation, ordinal: number): number {
  const skipped = rangeOf(lane, ordinal)
  return skipped === undefined ? ordinal : skipped[1] + 1
}

function requireRange(draft: Draft, lane: Conversation, { from, to }: Range): void {
  for (const { id, ordinal } of [from, to]) {
    if (isSkipped(lane, ordinal))
      throw refused('replaced', `Another turn took the place of ${id}: name one that counts.`, { turnId: id })
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
    throw refused('is_last', message, { turnId: to.id })
  }
  requireApart(draft, lane, { from, to })
}

/** A summary is folded into another whole, or not at all. */
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
    id: freshId(draft.now),
    kind: 'summary',
    state: 'finished',
    effect: 'pure',
    output: { content: summary },
    preview: previewOf(summary, 'summary', draft.kinds),
    metadata: facts as unknown as { readonly [key: string]: Json },
    endedAt: draft.now,
  })
}
