import type { TreePlaces } from '../rows.ts'

/** What a run counts that nobody above it limits. */
export function newTree(limit: number | null): TreePlaces | null {
  return limit === null ? null : { limit, live: 0, waiting: [] }
}
