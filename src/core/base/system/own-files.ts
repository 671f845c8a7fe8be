// The files of this machine that belong to the runtime: stores, tokens, recordings, settings. For an agent they do not exist.
//
// Owns:      the list of them in this process, and the two questions: is a file of this name one of them, and is this file?
// Called by: whoever makes or opens such a file puts it on the list (stores, recordings, the server, the command line).
//            `files/held-directory` and `files/text-file` ask before they touch anything.
// Must stay true (I11):
//   - A file is known by its name in its folder, so it is on the list before it is made, and by what it is (device, inode and
//     birth), so it stays there under every other name.
//   - Nothing is ever taken off the list.

import type { BigIntStats, Stats } from 'node:fs'
import { foldedName } from '../folded-name.ts'
import { nodeFs, nodePath } from '../node-system.ts'
import { settingsFile, stateFolder } from './user-folders.ts'

/** A file or folder of the runtime. */
export interface OwnPlace {
  readonly path: string
  /** Its name for people: `the store`. */
  readonly what: string
}

/** A folder that somebody holds open. */
export interface SeenFolder {
  /** Where it is, without links. */
  readonly path: string
  stat(): Stats
}

/** SQLite writes these beside a database. A journal that somebody else put there would be played into it. */
export const DATABASE_ENDINGS: readonly string[] = ['-wal', '-shm', '-journal']

/** Puts a file on the list, and the files beside it whose names add one of these endings. It need not be there yet. */
export function ownFile(path: string, what: string, endings: readonly string[] = []): void {
  for (const place of spellings(path)) {
    for (const ending of ['', ...endings]) put({ path: place + ending, what })
  }
}

/** Puts a folder on the list with all that is in it. */
export function ownFolder(path: string, what: string): void {
  for (const place of spellings(path)) put({ path: place, what })
}

/** The whole list, by path. */
export function ownPlaces(): readonly OwnPlace[] {
  listUsual()
  return [...entries.values()]
}

/** True for a file or folder that is on the list, whatever it is called now. */
export function isOwn(found: Stats | BigIntStats): boolean {
  listUsual()
  return identities.has(identityOf(found))
}

/** True where the file of this name in this folder is on the list, or would be if it were there. Case does not count. */
export function isOwnName(folder: SeenFolder, name: string): boolean {
  listUsual()
  return names.get(foldedName(name))?.some((entry) => isIn(entry, folder)) === true
}

/** As both, for a path of this machine without links: the file there, or a folder above it. */
export function isOwnPath(path: string, found: Stats | BigIntStats | undefined = statOf(path)): boolean {
  if (found !== undefined && isOwn(found)) return true
  const { dirname, basename } = nodePath()
  for (let [at, above] = [path, dirname(path)]; above !== at; [at, above] = [above, dirname(above)]) {
    const place = above
    if (isOwnName({ path: place, stat: () => nodeFs.statSync(place) }, basename(at))) return true
  }
  return false
}

interface Entry extends OwnPlace {
  /** The folder that it is in: its path, and what was found there. */
  readonly folder: string
  readonly folders: Set<string>
}

const entries: Map<string, Entry> = new Map()
const names: Map<string, Entry[]> = new Map()
const identities: Set<string> = new Set()

/** The path as it is written, and the path without links: SQLite writes beside the file that a link leads to. */
function spellings(given: string): ReadonlySet<string> {
  const { resolve, join, dirname, basename } = nodePath()
  const path = resolve(given)
  const folder = realOf(dirname(path))
  const inFolder = folder === undefined ? path : join(folder, basename(path))
  return new Set([inFolder, realOf(path) ?? inFolder])
}

function put(place: OwnPlace): void {
  const { dirname, basename } = nodePath()
  const entry = entries.get(place.path) ?? { ...place, folder: dirname(place.path), folders: new Set() }
  const above = statOf(entry.folder)
  if (above !== undefined) entry.folders.add(identityOf(above))
  const found = statOf(place.path)
  if (found !== undefined) identities.add(identityOf(found))
  if (entries.has(place.path)) return
  entries.set(place.path, entry)
  const name = foldedName(basename(place.path))
  names.set(name, [...(names.get(name) ?? []), entry])
}

/** The folder may have been moved or replaced since, or be mounted at a second place. */
function isIn({ folder, folders }: Entry, seen: SeenFolder): boolean {
  if (seen.path === folder) return true
  const identity = identityOf(seen.stat())
  const now = statOf(folder)
  return folders.has(identity) || (now !== undefined && identityOf(now) === identity)
}

/** An inode is used again for another file, which is born later. */
function identityOf(found: Stats | BigIntStats): string {
  const born = 'birthtimeNs' in found ? msOf(found.birthtimeNs) : found.birthtimeMs
  return `${found.dev}:${Number(found.ino)}:${born}`
}

/** Equals the number that Node works out itself. */
function msOf(ns: bigint): number {
  return Number(ns / SECOND) * 1_000 + Number(ns % SECOND) / 1e6
}

const SECOND = 1_000_000_000n

function statOf(path: string): Stats | undefined {
  try {
    return nodeFs.statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function realOf(path: string): string | undefined {
  try {
    return nodeFs.realpathSync.native(path)
  } catch {
    return undefined
  }
}

let isListed = false

/** The runtime's own files in every process: the user's folder and settings, and files that gave Node its variables. */
function listUsual(): void {
  if (isListed) return
  isListed = true
  ownFolder(stateFolder(), 'the state folder of Legate')
  ownFile(settingsFile().file, 'the settings of Legate')
  for (const [at, word] of process.execArgv.entries()) {
    const [, given] = /^--env-file(?:-if-exists)?(?:=(.*))?$/s.exec(word) ?? []
    if (word.startsWith('--env-file')) ownFile(given ?? process.execArgv[at + 1] ?? '', 'a file of variables')
  }
}
