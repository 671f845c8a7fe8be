import {
  copiedRegistryRow,
  type Registry,
  type RegistryRow,
  requireRegistryRow,
  staleRegistryRow,
} from '../registry.ts'
import { dropRegistered, putRegistered, type RegistryTable } from './registry-table.ts'

/** How a store writes a change down before the rows in memory have it. */
export interface RegistryLog {
  put(row: RegistryRow): void
  drop(kind: string, id: string): void
}

/** A registry over rows in memory. */
export function memoryRegistry(table: () => RegistryTable, log?: RegistryLog): Registry {
  return {
    get: (kind, id) => table().get(kind)?.get(id),
    list: (kind, { owner, after = '', before, limit }) => {
      const rows = [...(table().get(kind)?.values() ?? [])].filter(
        (row) =>
          (owner === undefined || row.owner === owner) && row.id > after && (before === undefined || row.id < before),
      )
      const up = before === undefined ? 1 : -1
      return rows.sort((a, b) => (a.id < b.id ? -up : up)).slice(0, Math.max(0, limit))
    },
    put: (row) => {
      requireRegistryRow(row)
      const known = table().get(row.kind)?.get(row.id)
      if ((known?.version ?? 0) !== row.version - 1) throw staleRegistryRow(row)
      const copy = copiedRegistryRow(row)
      log?.put(copy)
      putRegistered(table(), copy)
    },
    drop: (kind, id) => {
      if (table().get(kind)?.has(id) !== true) return false
      log?.drop(kind, id)
      return dropRegistered(table(), kind, id)
    },
  }
}
