// The registry: rows of a store that belong to no tree.
//
// Owns:      the `Registry` part of the store port, and the rules that every registry keeps.
// Called by: whoever keeps tokens, webhooks, keys and limits; the stores implement it.
// Must stay true:
//   - A row is replaced whole, and only by the version after it: of two writers that read the same row, one is refused.
//   - A row is seen by every process that shares the store as soon as `put` is done, and survives what a commit survives.
//   - No export has a row of the registry: a tree that moves to another store takes no token with it.

import { ConflictError, InputError } from '../base/error.ts'
import { type Json, parseOwnJson } from '../base/json.ts'
import type { Later } from '../base/maybe.ts'

/** One row of the registry. */
export interface RegistryRow {
  /** The sort of row: `token`, `webhook`. */
  readonly kind: string
  /** Unique among the rows of its kind. */
  readonly id: string
  /** Whose row it is; null for nobody's. `archive.forgetOwner` drops the rows of an owner. */
  readonly owner: string | null
  /** 1 for a new row, then one more each time. */
  readonly version: number
  /** When it was written, in milliseconds since 1970. */
  readonly at: number
  /** Anything that can be written as JSON. */
  readonly data: Json
}

/** Which rows of a kind to list. */
export interface RegistryQuery {
  /** Only rows of this owner. */
  readonly owner?: string
  /** Only rows with a greater id: the last id of the page before. */
  readonly after?: string
  /** Only rows with a lesser id, the greatest first: a list from its end. */
  readonly before?: string
  /** The most rows to give. */
  readonly limit: number
}

/** Rows that belong to no tree. Reads see every write that was acknowledged before them. */
export interface Registry {
  /** Undefined when there is none. */
  get(kind: string, id: string): Later<RegistryRow | undefined>
  /** The rows of a kind, by id; with `before` from the greatest id down. */
  list(kind: string, query: RegistryQuery): Later<readonly RegistryRow[]>
  /**
   * Writes version n of a row where version n - 1 is stored; version 1 where there is no row. Else throws ConflictError with
   * `details.stale`: read the row again, and decide again.
   */
  put(row: RegistryRow): Later<void>
  /** Drops a row whatever its version. False when there was none. */
  drop(kind: string, id: string): Later<boolean>
}

/** Why a row is refused: another writer was faster. */
export function staleRegistryRow({ kind, id, version }: RegistryRow): ConflictError {
  const found = version === 1 ? 'is there already' : `is not at version ${version - 1} any more`
  const message = `The row ${kind} ${id} of the registry ${found}.`
  return new ConflictError('conflict', message, { details: { table: 'registry', kind, id, stale: true } })
}

/** Refuses a row that no store could give back as it was put. */
export function requireRegistryRow({ kind, id, version, at }: RegistryRow): void {
  const isNamed = [kind, id].every((name) => typeof name === 'string' && name !== '')
  if (isNamed && Number.isSafeInteger(version) && version >= 1 && Number.isSafeInteger(at)) return
  const message = `A row of the registry has a kind, an id, a version from 1 on and a time in whole milliseconds; got ${JSON.stringify({ kind, id, version, at })}.`
  throw new InputError('invalid_input', message)
}

/** A copy that shares nothing with the row: its writer may change its own data afterwards. */
export function copiedRegistryRow({ kind, id, owner, version, at, data }: RegistryRow): RegistryRow {
  return { kind, id, owner, version, at, data: parseOwnJson(JSON.stringify(data)) as Json }
}
