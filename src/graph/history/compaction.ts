import { deriveIds } from '../../base/id.ts'
import type { Json } from '../../base/json.ts'
import type { Draft } from '../draft.ts'
import type { Reader } from '../reader.ts'
import type { Id, Node, Turn } from '../rows.ts'
import { type Claim, heldNode } from '../turn/claim.ts'
import { endNode } from '../turn/end-node.ts'
import { foldedBy, type SummaryFacts } from './compress.ts'
import { chainUpTo, putFold, relink } from './fold-chain.ts'
import { isSkipped } from './lane.ts'

/** What of a node's context is to be summed up: turns up to one, and of the node's own turn the nodes up to one. */
export interface CompactionPlan {
  /** The last turn of which anything is summed up. */
  readonly turnId: Id
  /** Null: all of that turn. Else the nodes of it up to this ordinal; -1 for none. */
  readonly upTo: number | null
  /** How long the summary may be. */
  readonly tokens: number
  /** About how many tokens the context has. */
  readonly contextTokens: number
  /** The first turn that is summed up. */
  readonly fromTurnId: Id
  readonly turns: number
}

/**
 * Where a summary goes that ends with a node of the context of a call of `turn`. What is not this lane's to change, or counts
 * there no more and came in from another lane, cannot have it: then all that was before the turn is summed up.
 */
export function foldTarget(
  reader: Pick<Reader, 'conversation' | 'turn'>,
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
 * The context of a model call nears the end of what the model can read: a call that sums up the oldest of it is put before
 * this one, which waits as a row. Once per call: what is too long even then is the model's to refuse.
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

/** It was asked to stop since it began: nothing is begun for its sake. */
function stopBefore(draft: Draft, node: Node): void {
  endNode(draft, node, { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' } })
}

/** The summary is there: from now on models are shown it instead of what it was made of. */
export function applyCompaction(draft: Draft, summary: Node): void {
  const folds = foldsOf(summary)
  const turn = draft.findTurn(folds.to)
  if (turn === undefined) return
  const lane = draft.conversation(turn.laneId)
  // Meanwhile another turn took its place, or a summary by hand stands for it and more.
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
    fromTurnId: folds.from,
    toTurnId: folds.to,
    turns: folds.turns,
  })
}

const RETRY_AFTER_TURNS = 20
const RETRY_AFTER_GROWTH = 1.2

/** Has a summary failed so lately that another try would fail alike? It is tried again when the context has grown, or later. */
export function hasJustFailed(reader: Reader, { laneId, ordinal }: Turn, contextTokens: number): boolean {
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
  /** The call for whose sake it was made. */
  readonly for: Id
}

export function foldsOf({ metadata }: Node): AutomaticFolds {
  return metadata['folds'] as unknown as AutomaticFolds
}
