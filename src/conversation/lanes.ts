import type { Reader } from '../graph/reader.ts'
import type { Id, Node, Turn } from '../graph/rows.ts'

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
  const turn = reader.turn(node.turnId)
  if (turn === undefined) return []
  const skips = row.lane?.skips ?? []
  const first = Math.min(turn.ordinal, skips[0]?.[0] ?? turn.ordinal)
  const last = Math.max(turn.ordinal, (skips.at(-1)?.[1] ?? 0) + 1)
  const turns = reader.turnsOf(laneId, { last, limit: Math.min(MOST_LOOKED_AT, last + 1 - first) })
  // An answer stands in the place of those that its turn, made anew, took the place of.
  const answers = turn.outcome?.answerNodeId === nodeId ? answersLike(turns, turn) : NO_IDS
  const isVersion = ({ id, versionSet }: Node) => versionSet === node.versionSet || answers.has(id)
  return turns.flatMap(({ id }) => reader.nodesOf(id).filter(isVersion))
}

function answersLike(turns: readonly Turn[], turn: Turn): ReadonlySet<Id> {
  const byId = new Map(turns.map((one) => [one.id, one]))
  const firstOf = (one: Turn): Id => {
    const source = byId.get(one.history?.source ?? '')
    return source === undefined ? one.id : firstOf(source)
  }
  const first = firstOf(turn)
  return new Set(turns.flatMap((one) => (firstOf(one) === first ? (one.outcome?.answerNodeId ?? []) : [])))
}

const NO_IDS: ReadonlySet<Id> = new Set()
