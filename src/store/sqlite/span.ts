import type { Edge, Id } from '../../graph/rows.ts'
import type { NodeCell, RowCache, TreeRows, TurnCell } from '../row-cache.ts'
import { type EdgeEnds, edgeType, SPAN, toConversation, toLink, toNode, toTurn } from './rows.ts'
import type { ReadSpan } from './span-check.ts'
import type { SpanRow } from './span-text.ts'

/** Puts the rows of a span, as they are stored, into the cache unless they are there. The rows of their tree. */
export function cacheSpan(cache: RowCache, { text: { first }, rows }: ReadSpan): TreeRows | undefined {
  const packed = rows[0]?.packed
  if (packed === undefined) return undefined
  if ('conversation' in packed) {
    const row = toConversation(packed)
    const tree = cache.tree(row.rootId)
    if (!tree.conversations.has(row.id)) cache.addConversation(row, first)
    return tree
  }
  if (!('turn' in packed)) return undefined
  const row = toTurn(packed)
  const tree = cache.tree(row.rootId)
  if (!tree.turns.has(row.id)) cacheMembers(cache, cache.addTurn(row, first), rows)
  return tree
}

function cacheMembers(cache: RowCache, turn: TurnCell, rows: readonly SpanRow[]): void {
  const places = new Map<number | Id, NodeCell>()
  for (const { n, packed } of rows) {
    turn.last = n
    if ('node' in packed) places.set(n % SPAN, cache.addNode(turn, toNode(packed, turn.row), n))
    else if ('link' in packed) cache.addLink(turn, toLink(packed, turn.row), n)
    else if ('edges' in packed) for (const ends of packed.edges) cacheEdge(turn, places, ends)
  }
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
