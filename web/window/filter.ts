import { Cell, useCell } from './cell.ts'

/** Which runs the inbox shows; null for all. */
export interface Filter {
  readonly agent: string | null
  readonly owner: string | null
}

const filter = new Cell<Filter>({ agent: null, owner: null })

export function useFilter(): Filter {
  return useCell(filter)
}

export function setFilter(next: Filter): void {
  filter.set(next)
}

/** True for a run, or an item of the inbox, that the filter lets through. */
export function isShown(filter: Filter, run: { readonly agent: string; readonly owner: string | null }): boolean {
  if (filter.agent !== null && run.agent !== filter.agent) return false
  return filter.owner === null || (run.owner ?? '') === filter.owner
}
