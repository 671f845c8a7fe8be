import type { Commit } from '../graph/commit.ts'
import type { Conversation, Id, Link, Node, Turn } from '../graph/rows.ts'

/** Rows as this process last read or wrote them. Whoever uses it clears it when others may have written. */
export interface RowCache {
  readonly conversations: Map<Id, Conversation>
  readonly turns: Map<Id, Turn>
  readonly nodes: Map<Id, Node>
  readonly links: Map<Id, Link>
}

export function emptyCache(): RowCache {
  return { conversations: new Map(), turns: new Map(), nodes: new Map(), links: new Map() }
}

export function clearCache(cache: RowCache): void {
  for (const rows of [cache.conversations, cache.turns, cache.nodes, cache.links]) rows.clear()
}

/** Takes what an accepted commit wrote. */
export function cacheCommit(cache: RowCache, commit: Commit): void {
  for (const row of commit.conversations) cacheRow(cache.conversations, row)
  for (const row of commit.turns) cacheRow(cache.turns, row)
  for (const row of commit.nodes) cacheRow(cache.nodes, row)
  for (const row of commit.links) cacheRow(cache.links, row)
}

/** A full cache starts anew: what is in use comes back at the price of one read. */
export function cacheRow<Row extends { readonly id: Id }>(rows: Map<Id, Row>, row: Row): void {
  if (rows.size >= MAX_ROWS) rows.clear()
  rows.set(row.id, row)
}

const MAX_ROWS = 2000
