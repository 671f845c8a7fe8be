import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isLegateError, messageOf, StoreError } from '../base/error.ts'

/** A folder that is not there is mostly a slip of the pen: a new store beside the right one would look like lost runs. */
export function requireFolder(path: string): void {
  const folder = dirname(path)
  if (statSync(folder, { throwIfNoEntry: false }) !== undefined) return
  const message = `There is no folder ${folder} for the store ${path}. Make the folder first, or name another path.`
  throw new StoreError('store', message, { details: { path } })
}

/** A check costs microseconds; on a slow disk, where it takes longer, it is made less often. */
const LOOK_MS = 100
const SHARE = 50
const LONGEST_MS = 5_000

/**
 * Checks that the files of an open store are still at their paths, with their contents. A file that was removed, renamed or
 * replaced can still be written by a process that has it open, but nobody else will ever read it; one that was emptied has lost
 * its rows. A file that was gone once stays gone until the store is opened again.
 */
export class FilePresence {
  private readonly held = new Map<string, HeldFile>()
  private nextAt = 0
  private gone: StoreError | undefined

  /** Remembers the file that is at this path now, if there is one. It must not become smaller than `leastBytes`. */
  hold(path: string, leastBytes: () => number = () => 0): void {
    const found = lookAt(path)
    if (typeof found === 'object') this.held.set(path, { identity: found.identity, leastBytes })
  }

  /** Throws `store_gone` if a file was found to be gone. Checks at most every 100 ms. */
  require(): void {
    if (this.gone !== undefined) throw this.gone
    if (performance.now() >= this.nextAt) this.requireNow()
  }

  requireNow(): void {
    this.requireUnseen()
    const begin = performance.now()
    for (const [path, { identity, leastBytes }] of this.held) {
      const found = lookAt(path)
      if (found === 'unknown') continue
      if (found === 'missing') this.lose(path, MISSING)
      else if (found.identity !== identity) this.lose(path, 'was replaced by another file')
      else if (found.bytes < leastBytes()) this.lose(path, 'was emptied or cut')
    }
    const end = performance.now()
    this.nextAt = end + Math.min(Math.max(LOOK_MS, SHARE * (end - begin)), LONGEST_MS)
  }

  get isGone(): boolean {
    return this.gone !== undefined
  }

  /** Throws if a file was found to be gone, without a new check. */
  requireUnseen(): void {
    if (this.gone !== undefined) throw this.gone
  }

  private lose(path: string, what: string): never {
    const message = `The store is gone: ${path} ${what} while it was open. What this process wrote last may be in the old file only, and it acknowledges nothing more. Put the file back, or name another one, and start again.`
    this.gone = new StoreError('store_gone', message, { details: { path, isMissing: what === MISSING } })
    throw this.gone
  }
}

const MISSING = 'was removed or renamed'

interface HeldFile {
  /** Identifies the file, whatever its path. */
  readonly identity: string
  readonly leastBytes: () => number
}

interface FoundFile {
  readonly identity: string
  readonly bytes: number
}

/** `unknown` where the path cannot be checked now. */
function lookAt(path: string): FoundFile | 'missing' | 'unknown' {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? 'missing' : { identity: `${stat.dev}:${stat.ino}`, bytes: Number(stat.size) }
  } catch (error) {
    return LOST.has(systemErrorCode(error)) ? 'missing' : 'unknown'
  }
}

const LOST: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ESTALE'])

/**
 * Checks every 100 ms, while there are watchers, whether another process has committed. A vanished file is the last news. Keeps
 * no process alive.
 */
export function watchFile(version: () => number): { add(changed: Watcher['changed']): () => void; end(): void } {
  const watchers = new Set<Watcher>()
  let timer: ReturnType<typeof setInterval> | undefined
  let known = 0
  const end = (): void => {
    clearInterval(timer)
    timer = undefined
    watchers.clear()
  }
  const look = (): void => {
    const seen = versionOr(version, known)
    if (seen === known) return
    known = seen
    const told = [...watchers]
    if (seen === GONE) end()
    for (const { changed } of told) changed(null)
  }
  const add = (changed: Watcher['changed']): (() => void) => {
    const watcher = { changed }
    watchers.add(watcher)
    if (timer === undefined) {
      known = versionOr(version, known)
      timer = setInterval(look, 100).unref()
    }
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0) end()
    }
  }
  return { add, end }
}

/** Hears that a file changed: a file does not tell what. */
interface Watcher {
  readonly changed: (change: null) => void
}

const GONE = -1

/** Ignores other failures: the next reader gets them. */
function versionOr(version: () => number, known: number): number {
  try {
    return version()
  } catch (error) {
    return isLegateError(error, 'store_gone') ? GONE : known
  }
}

/** Turns a failure of the file system into an error for the user of the store. */
export function storeFileError(cause: unknown, path: string): Error {
  if (isLegateError(cause)) return cause
  const details = { path }
  switch (systemErrorCode(cause)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new StoreError('store_full', `The disk of ${path} is full; nothing was written. Make room and go on.`, {
        cause,
        details,
      })
    case 'EACCES':
    case 'EPERM':
    case 'EROFS': {
      const advice = 'The store must be able to write its folder: change the permissions, or name another folder.'
      return new StoreError('store_readonly', `Cannot write ${path} (${messageOf(cause)}). ${advice}`, {
        cause,
        details,
      })
    }
    default:
      return new StoreError('store', `The JSON store cannot use ${path}: ${messageOf(cause)}`, { cause, details })
  }
}

export function systemErrorCode(error: unknown): string {
  const code = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : ''
}
