// Lists as pages: the form in which HTTP and the client give them.

import { fitting } from '../../base/page/json-bytes.ts'
import { PageRoom } from '../../base/page/room.ts'

/** A page of a list: the items under their name, and where the next page begins; null where there is none. */
export type Page<Name extends string, Item> = { readonly [Key in Name]: readonly Item[] } & {
  readonly next: string | number | null
}

/** How much of a list to give. */
export interface LimitQuery {
  /** The most items. Default 50. */
  readonly limit?: number
}

/** Where a list goes on. */
export interface FromQuery {
  /** The `next` of the page before. */
  readonly from?: number
}

/** A part of a list that is read from its beginning. */
export type PartQuery = LimitQuery & FromQuery

const USUAL = 50

/** Where the next page of a list with cursors begins: behind the last item of a full page. */
export function cursorAfter<Item, Cursor>(
  items: readonly Item[],
  { limit = USUAL }: LimitQuery,
  cursorOf: (item: Item) => Cursor,
): Cursor | null {
  const last = items.at(-1)
  return items.length < limit || last === undefined ? null : cursorOf(last)
}

/** The query that reads a list as far as a part of it reaches. */
export function upTo<Query extends PartQuery>({ from = 0, limit = USUAL, ...query }: Query) {
  return { ...query, limit: from + limit }
}

/** The part: as many items as the caller wants and as fit into 8 MB. */
export function pagePart<Item>(found: readonly Item[], { from = 0, limit = USUAL }: PartQuery) {
  const items = fitting(found.slice(from), new PageRoom())
  const end = from + items.length
  return { items, next: items.length > 0 && (end < found.length || items.length === limit) ? end : null }
}
