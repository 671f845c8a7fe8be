import type { Spent } from '../../graph/commit.ts'
import { type ChangePage, readCursor } from '../feed.ts'
import { forgottenStone } from '../not-found.ts'
import type { SpentQuery } from '../spent.ts'
import type { Feed, Tables } from './tables.ts'

export function readChanges({ changes, before }: Feed, after: string | null, limit: number): ChangePage {
  const last = before + changes.length
  if (after === null && limit <= 0) return { changes: [], cursor: String(last), isCut: false }
  const from = readCursor(after, before + 1, last)
  const end = Math.min(last, from.after + Math.max(0, limit))
  const found = changes.slice(from.after - before, end - before)
  return { changes: found.filter((one) => one !== null), cursor: String(end), isCut: from.isCut }
}

/** Erases the changes of an owner. Their numbers stay taken. */
function forgetChanges({ changes }: Feed, owner: string): void {
  changes.forEach((change, at) => {
    if (change?.owner === owner) changes[at] = null
  })
}

export function readSpent({ spent }: Tables, { owner, from, to }: SpentQuery): Spent[] {
  const found = [...spent.values()].filter(
    (one) => one.day >= from && one.day <= to && (owner === undefined || one.owner === owner),
  )
  const order = ({ day, ...one }: Spent) => `${day}\n${one.owner}\n${one.agent}\n${one.model}`
  return found.sort((a, b) => (order(a) < order(b) ? -1 : 1))
}

/** Erases everything about an owner that is beside the trees. */
export function forgetOwnerRows(tables: Tables, owner: string, keptDay?: string): void {
  forgetChanges(tables.feed, owner)
  for (const [key, one] of tables.spent) if (one.owner === owner && one.day !== keptDay) tables.spent.delete(key)
  for (const rows of tables.registry.values()) {
    for (const row of rows.values()) if (row.owner === owner) rows.delete(row.id)
  }
  tables.tombstones.forEach((stone, at) => {
    if (stone.owner === owner) tables.tombstones[at] = forgottenStone(stone)
  })
}
