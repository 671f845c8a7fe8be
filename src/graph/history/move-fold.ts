import type { Json } from '../../base/json.ts'
import type { Draft } from '../draft.ts'
import type { Fold, Id, Node, Turn } from '../rows.ts'
import type { SummaryFacts } from './compress.ts'
import { putFold } from './fold-chain.ts'
import { changeLane } from './lane.ts'

export interface MovedFold {
  readonly source: Turn
  readonly turnId: Id
  /** Nodes of the source that are in the new turn, by their ids there. */
  readonly kept: readonly Node[]
  readonly ids: ReadonlyMap<Id, Id>
  readonly isFork: boolean
}

/**
 * A turn made anew shows its models the newest summary inside the old one of which all that it stands for was kept. One
 * that knows of what was set aside is left behind.
 */
export function moveFold(draft: Draft, moving: MovedFold): void {
  const moved = move(draft, moving, moving.source.history?.fold ?? null)
  if (moved === null) return
  const turn = draft.turn(moving.turnId)
  putFold(draft, turn, moved)
  changeLane(draft, draft.conversation(turn.laneId), { fold: turn.ordinal })
}

/** A summary of turns that are over says what their last one came to: in the place of that turn it would be wrong. */
export function isOfWholeTurn({ kind, metadata }: Node): boolean {
  return kind === 'summary' && metadata['folds'] !== undefined
}

function move(draft: Draft, moving: MovedFold, fold: Fold | null): Fold | null {
  if (fold === null) return null
  const { source, turnId, ids, isFork } = moving
  const facts = draft.node(fold.summaryId).metadata as unknown as SummaryFacts
  const earlier = move(draft, moving, facts.previousFold)
  const summaryId = ids.get(fold.summaryId)
  const upTo = placeOf(draft, moving, fold)
  if (summaryId === undefined || upTo === null) return earlier
  const previous = isFork ? null : fold.previous
  const summary = draft.node(summaryId)
  const there: SummaryFacts = {
    folds: { ...facts.folds, to: facts.folds.to === source.id ? turnId : facts.folds.to },
    previousFold: earlier,
  }
  draft.changeNode(summary, { metadata: { ...summary.metadata, ...(there as unknown as { [key: string]: Json }) } })
  return { ...fold, summaryId, upTo, previous }
}

/** The last node that a summary stands for, in the new turn; null if one is missing there. */
function placeOf(draft: Draft, { source, kept, ids }: MovedFold, { upTo }: Fold): number | null {
  if (upTo === null) return null
  const folded = draft.nodesOf(source.id).filter((node) => node.ordinal <= upTo && node.marks?.replacedBy == null)
  if (folded.some((node) => !SAID.includes(node.kind) && !kept.some(({ id }) => id === node.id))) return null
  const last = kept.findLast(({ ordinal }) => ordinal <= upTo)
  return last === undefined ? -1 : draft.node(ids.get(last.id) ?? '').ordinal
}

const SAID: readonly string[] = ['user_message', 'developer_message', 'system_message']
