import type { Edge, Id } from '../../graph/rows.ts'
import type { NodeCell, RowCache, TreeRows, TurnCell } from '../row-cache.ts'
import { parseRow } from './parse.ts'
import { type EdgeEnds, edgeType, SPAN, toConversation, toLink, toNode, toTurn } from './rows.ts'
import type { ReadSpan } from './span-check.ts'

/** Puts the rows of a span, as they are stored, into the cache unless they are there. The rows of their tree. */
export function cacheSpan(cache: RowCache, span: ReadSpan): TreeRows | undefined {
  span.packed ??= span.rows.map(([, data]) => parseRow(data))
  const [packed] = span.packed
  if (packed === undefined) return undefined
  if ('conversation' in packed) {
    const row = toConversation(packed)
    const tree = cache.tree(row.rootId)
    if (!tree.conversations.has(row.id)) cache.addConversation(row, span.first)
    return tree
  }
  if (!('turn' in packed)) return undefined
  const row = toTurn(packed)
  const tree = cache.tree(row.rootId)
  if (!tree.turns.has(row.id)) cacheMembers(cache, cache.addTurn(row, span.first), span)
  return tree
}

function cacheMembers(cache: RowCache, turn: TurnCell, { rows, packed = [] }: ReadSpan): void {
  const places = new Map<number | Id, NodeCell>()
  packed.forEach((one, at) => {
    const n = Number(rows[at]?.[0])
    turn.last = n
    if ('node' in one) places.set(n % SPAN, cache.addNode(turn, toNode(one, turn.row), n))
    else if ('link' in one) cache.addLink(turn, toLink(one, turn.row), n)
    else if ('edges' in one) for (const ends of one.edges) cacheEdge(turn, places, ends)
  })
}

/** Of nodes elsewhere nothing is put: they are known with all of their turn, or not at all. */
function cacheEdge({ row }: TurnCell, places: ReadonlyMap<number | Id, NodeCell>, [from, to, letter]: EdgeEnds): void {
  const [source, target] = [places.get(from), places.get(to)]
  const edge: Edge = {
    rootId: row.rootId,
    conversationId: row.conversationId,
    from: source?.row.id ?? String(from),
    to: target?.row.id ?? String(to),
    type: edgeType(letter) ?? 'sequence',
  }
  if (source !== undefined) source.edgesFrom = [...source.edgesFrom, edge]
  if (target !== undefined) target.edgesTo = [...target.edgesTo, edge]
}
