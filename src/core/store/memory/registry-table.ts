import type { RegistryRow } from '../registry.ts'

/** The rows of the registry, by kind and id. */
export type RegistryTable = Map<string, Map<string, RegistryRow>>

/** Puts a row whatever was there. */
export function putRegistered(table: RegistryTable, row: RegistryRow): void {
  const rows = table.get(row.kind) ?? new Map<string, RegistryRow>()
  table.set(row.kind, rows)
  rows.set(row.id, row)
}

export function dropRegistered(table: RegistryTable, kind: string, id: string): boolean {
  return table.get(kind)?.delete(id) === true
}

export function registered(table: RegistryTable): RegistryRow[] {
  return [...table.values()].flatMap((rows) => [...rows.values()])
}
