// Loads the graph of a conversation: itself, then its subagents and lanes.

import { client } from '../../data/client.ts'
import { type Column, type ColumnNode, columnOf, nearTheirHosts, nextOf } from './columns.ts'

/** More conversations than these are loaded when somebody asks for them. */
const MOST_COLUMNS = 24

export interface LoadedGraph {
  readonly columns: readonly Column[]
  /** Conversations that are not loaded. */
  readonly left: number
}

/** Loads a conversation, its lanes and its subagents, breadth first. */
export async function loadGraph(conversationId: string, turns: number): Promise<LoadedGraph> {
  const columns: Column[] = []
  const wanted: ColumnNode[] = [{ id: conversationId, role: 'lane main', from: null }]
  const seen = new Set([conversationId])
  while (wanted.length > 0 && columns.length < MOST_COLUMNS) {
    const batch = wanted.splice(0, MOST_COLUMNS - columns.length)
    const loaded = await Promise.all(batch.map(({ id }) => client.graph(id, { turns })))
    for (const [at, data] of loaded.entries()) {
      const place = batch[at]
      if (place === undefined) continue
      columns.push(columnOf(data, place))
      for (const next of nextOf(data)) {
        if (seen.has(next.id)) continue
        seen.add(next.id)
        wanted.push(next)
      }
    }
  }
  return { columns: nearTheirHosts(columns), left: wanted.length }
}
