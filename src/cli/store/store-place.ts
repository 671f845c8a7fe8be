// Stores of any kind by their place: PostgreSQL by its address, JSON by its folder, SQLite by its file.
//
// Called by: `copy` and `restored`. All other commands work on PostgreSQL and SQLite.

import { mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Store } from '../../index.ts'
import { jsonStore } from '../../store/json/index.ts'
import { isPostgresUrl, postgresStore } from '../../store/postgres/index.ts'
import { sqliteStore } from '../../store/sqlite/index.ts'
import { CliError } from '../command/command.ts'
import { openPlace } from './open-store.ts'

/** Opens a store that must be there. */
export function openAnyStore(place: string, use: 'read' | 'write'): Store {
  if (!isFolder(place)) return openPlace(place, use)
  if (statSync(join(place, 'store.journal'), { throwIfNoEntry: false }) !== undefined) return jsonStore(place)
  throw new CliError(`${place} is a folder without a store of JSON: name the file of the store in it.`)
}

/** Opens a store, and makes it where there is none: a store of JSON where the name is that of a folder, or ends in a slash. */
export function makeAnyStore(place: string, named: string): Store {
  if (isPostgresUrl(place)) return postgresStore(place)
  if (named.endsWith('/') || isFolder(place)) return jsonStore(place)
  mkdirSync(dirname(place), { recursive: true, mode: 0o700 })
  return sqliteStore(place)
}

function isFolder(place: string): boolean {
  return !isPostgresUrl(place) && statSync(place, { throwIfNoEntry: false })?.isDirectory() === true
}
