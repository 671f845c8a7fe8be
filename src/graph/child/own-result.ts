import { lineage, turnAt } from '../history/history.ts'
import type { Reader } from '../reader.ts'
import type { Node } from '../rows.ts'

/** Is a result one of those that led to where a node is (I9): of its own lane, or of those it comes from, up to the fork? */
export function isOwnResult(reader: Reader, node: Pick<Node, 'conversationId'>, task: Node): boolean {
  if (task.conversationId === node.conversationId) return true
  const ordinal = reader.turn(task.turnId)?.ordinal ?? Number.POSITIVE_INFINITY
  const [own, ...above] = lineage(reader, { laneId: node.conversationId, last: 0 })
  if (above.some(({ laneId, last }) => laneId === task.laneId && ordinal <= last)) return true
  return [own, ...above].some((place) => place !== undefined && hasCopy(reader, place.laneId, task))
}

/** A lane that was forked in the middle of a turn begins with what it took over of it. */
function hasCopy(reader: Reader, laneId: string, task: Node): boolean {
  const first = turnAt(reader, laneId, 0)
  if (first?.history?.source !== task.turnId) return false
  return reader.nodesOf(first.id).some(({ metadata }) => metadata['copyOf'] === task.id)
}
