import { Cell, useCell } from './cell.ts'

/** Failed runs that a person has put away. They are kept in this browser. */
const KEY = 'legate.away'
const MOST_KEPT = 500
const away = new Cell<ReadonlySet<string>>(new Set(stored()))

function stored(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(kept) ? kept.map(String) : []
  } catch {
    return []
  }
}

export function useAway(): ReadonlySet<string> {
  return useCell(away)
}

export function putAway(runId: string): void {
  const next = [...away.get(), runId].slice(-MOST_KEPT)
  away.set(new Set(next))
  try {
    localStorage.setItem(KEY, JSON.stringify(next))
  } catch {
    // Then it is away until the page is loaded again.
  }
}
