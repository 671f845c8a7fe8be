import type { Draft } from '../draft.ts'
import type { Conversation, Fold, Turn, TurnHistory } from '../rows.ts'
import { changeLane, laneOf } from './lane.ts'

export interface ChainLink {
  readonly ordinal: number
  readonly turn: Turn
  readonly fold: Fold
}

/** The turns of a lane with a summary that counts, the newest first. */
export function* chain(
  draft: Draft,
  { id }: Conversation,
  from: number | null = laneOf(draft.conversation(id)).fold,
): Generator<ChainLink> {
  for (let at = from; at !== null; ) {
    const turn: Turn | undefined = draft.turnAt(id, at)
    const fold: Fold | null = turn?.history?.fold ?? null
    if (turn === undefined || fold === null) return
    yield { ordinal: at, turn, fold }
    at = fold.previous
  }
}

/** The newest turn with a summary that counts, up to one. */
export function chainUpTo(draft: Draft, lane: Conversation, last: number): number | null {
  for (const { ordinal } of chain(draft, lane)) if (ordinal <= last) return ordinal
  return null
}

/** The same, where nothing after that turn is to count any more: what a later summary stood for counts again. */
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
 * Links the summaries anew that lie between a turn and what comes before one which stood for them; others may have been
 * made there since, or taken back. Costs as many turns as that one stood for. Gives the newest up to that turn.
 */
export function uncover(
  draft: Draft,
  lane: Conversation,
  { last, fold: { before, previous } }: { last: number; fold: Pick<Fold, 'before' | 'previous'> },
): number | null {
  const found: ChainLink[] = []
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

/** Whoever named the newest summary up to a turn names another one. */
export function relink(
  draft: Draft,
  lane: Conversation,
  { above, target }: { above: number; target: number | null },
): void {
  const later = [...chain(draft, lane)].filter(({ ordinal }) => ordinal > above).at(-1)
  if (later === undefined) changeLane(draft, lane, { fold: target })
  else putFold(draft, later.turn, { ...later.fold, previous: target })
}

/** Says which summary a turn has; null for none. */
export function putFold(draft: Draft, { id }: Turn, fold: Fold | null): void {
  const turn = draft.turn(id)
  const history: TurnHistory = turn.history ?? { after: turn.ordinal - 1, source: null, merges: [], fold: null }
  draft.changeTurn(turn, { history: { ...history, fold } })
}
