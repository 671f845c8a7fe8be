import { deliver } from '../child/background.ts'
import { isTold } from '../child/meant-session.ts'
import { stopBackground } from '../child/stop-runs.ts'
import type { Draft } from '../draft.ts'
import { refused } from '../refused.ts'
import type { Id, Turn } from '../rows.ts'
import { foldUpTo } from './fold-chain.ts'
import { turnAt } from './history.ts'
import { changeLane, headOf, laneOf, withSkip } from './lane.ts'
import { type ChangeScope, type Remade, type Remake, remakeTurn } from './remake-turn.ts'

/** A turn made anew in its own lane: it stands in the place of the old one and of all that came after that. */
export function replaceTurn(draft: Draft, remake: Omit<Remake, 'after'> & Pick<ChangeScope, 'background'>): Remade {
  const { source } = remake
  const after = source.history?.after ?? source.ordinal - 1
  const lane = draft.conversation(source.laneId)
  const told = toldChildren(draft, lane.id)
  const { skips, fold: current } = laneOf(lane)
  const fold = foldUpTo(draft, lane, { last: after, from: current })
  changeLane(draft, lane, { skips: withSkip(skips, [source.ordinal, lane.turnCount - 1]), fold })
  const remade = remakeTurn(draft, draft.conversation(lane.id), { ...remake, after })
  leaveChildren(draft, told, remake.background)
  return remade
}

/** Children in the background that the history of a lane tells of now. */
export function toldChildren(draft: Draft, laneId: Id): Id[] {
  return draft.conversation(laneId).background.filter((id) => isTold(draft, draft.link(id)))
}

/** Of children that were told of, those that were started in what is set aside: the new history does not tell of them. */
export function leaveChildren(draft: Draft, told: readonly Id[], background: ChangeScope['background']): void {
  const left = told.map((id) => draft.link(id)).filter((link) => !isTold(draft, link))
  for (const link of left) if (link.outcome !== null) deliver(draft, link, 'undeliverable')
  if (background === 'keep' || left.length === 0) return
  const open = left.filter(({ outcome }) => outcome === null)
  stopBackground(draft, open, { cause: 'cancelled', reason: 'The turn that started it was set aside.' })
}

/** Only the last turn of a lane can be taken back without what was said after it. */
export function requireLast(draft: Draft, turn: Turn): void {
  const head = headOf(draft.conversation(turn.laneId))
  if (turn.ordinal === head) return
  const later = turnAt(draft.stored, turn.laneId, head)?.id
  const message = `Later turns were built on ${turn.id}: fork there instead, which leaves them as they are.`
  throw refused('later_turns', message, { turnId: turn.id, lastTurnId: later ?? null })
}

/** The newest version of a node that took another's place with its turn. */
export function newestVersion(draft: Draft, { versionSet, laneId, turnId }: VersionOf): Id | undefined {
  const from = draft.turn(turnId).ordinal
  const lane = draft.stored.turnsOf(laneId, { limit: MOST_VERSIONS }).filter(({ ordinal }) => ordinal > from)
  for (const { id } of lane.toReversed()) {
    const found = draft.nodesOf(id).find((node) => node.versionSet === versionSet)
    if (found !== undefined) return found.id
  }
  return undefined
}

interface VersionOf {
  readonly versionSet: Id
  readonly laneId: Id
  readonly turnId: Id
}

const MOST_VERSIONS = 1_000
