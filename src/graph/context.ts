import type { Reader } from './reader.ts'
import type { Node, Turn } from './rows.ts'

export const CONTEXT_TURNS = 50

/**
 * What a node may know: the nodes before it in its turn and those of the latest rounds before, oldest first. Only what
 * has ended is shown, so a sibling that still runs never is. Bounded by rounds; nothing loads a whole conversation.
 */
export function contextOf(reader: Reader, node: Node, limitTurns: number = CONTEXT_TURNS): Node[] {
  const turn = reader.turn(node.turnId)
  if (turn === undefined) return []
  const nodes: Node[] = []
  for (const earlier of earlierTurns(reader, turn, limitTurns - 1)) {
    for (const known of reader.nodesOf(earlier.id)) if (known.endedAt !== null) nodes.push(known)
  }
  for (const known of reader.nodesOf(turn.id)) {
    if (known.ordinal < node.ordinal && known.endedAt !== null) nodes.push(known)
  }
  return nodes
}

function earlierTurns(reader: Reader, turn: Turn, limit: number): readonly Turn[] {
  if (turn.ordinal === 0 || limit < 1) return []
  return reader.turnsOf(turn.laneId, { last: turn.ordinal - 1, limit })
}
