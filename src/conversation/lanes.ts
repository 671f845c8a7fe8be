import { rangeOf } from '../graph/history/lane.ts'
import type { Reader } from '../graph/reader.ts'
import type { Id, Node } from '../graph/rows.ts'

/** A lane as the one it was forked from lists it. */
export interface LaneInfo {
  readonly id: Id
  readonly title: string | null
  /** The node it was forked at. */
  readonly forkedAt: Id
  readonly turns: number
  readonly isRunning: boolean
  readonly archivedAt: number | null
  readonly createdAt: number
}

const MOST_LANES = 1_000

/** The lanes that were forked from one, newest first. */
export function lanesOf(reader: Pick<Reader, 'conversation'>, laneId: Id): LaneInfo[] {
  const found: LaneInfo[] = []
  let at = reader.conversation(laneId)?.lane?.newest ?? null
  while (at !== null && found.length < MOST_LANES) {
    const row = reader.conversation(at)
    if (row?.lane == null) break
    const { from, before, archivedAt } = row.lane
    found.push({
      id: row.id,
      title: row.title,
      forkedAt: from?.nodeId ?? '',
      turns: row.turnCount,
      isRunning: row.activeTurnId !== null,
      archivedAt,
      createdAt: row.createdAt,
    })
    at = before
  }
  return found
}

const MOST_LOOKED_AT = 1_000

/** All versions of a node in its lane, oldest first: those that counted once, and the one that does. */
export function versionsOf(reader: Reader, laneId: Id, nodeId: Id): Node[] {
  const node = reader.node(nodeId)
  const row = reader.conversation(laneId)
  if (node === undefined || node.conversationId !== laneId || row === undefined) return []
  const ordinal = reader.turn(node.turnId)?.ordinal ?? 0
  // What has versions in other turns is among the turns that were replaced, or right after them.
  const range = rangeOf(row.lane, ordinal) ?? rangeOf(row.lane, ordinal - 1) ?? [ordinal, ordinal]
  const limit = Math.min(MOST_LOOKED_AT, range[1] + 2 - range[0])
  const turns = reader.turnsOf(laneId, { last: range[1] + 1, limit })
  return turns.flatMap(({ id }) => reader.nodesOf(id).filter(({ versionSet }) => versionSet === node.versionSet))
}
