import { statSync } from 'node:fs'
import { StoreError } from '../base/error.ts'
import { codeOf } from './json/error.ts'

/** A look costs microseconds, but on a slow disk it may take longer: then it is made less often. */
const LOOK_MS = 100
const SHARE = 50
const LONGEST_MS = 5_000

/**
 * Whether the files of an open store are still at their paths. A file that was removed, renamed or replaced can still be
 * written by who has it open, but nobody else will ever read it. Once gone, it stays gone until the store is opened again.
 */
export class FilePresence {
  private readonly held = new Map<string, string>()
  private nextAt = 0
  private gone: StoreError | undefined

  /** Remembers the file that is at this path now, if there is one. */
  hold(path: string): void {
    const identity = identityOf(path)
    if (identity !== undefined) this.held.set(path, identity)
  }

  /** Throws `store_gone` if a file was seen to be gone. Looks itself at most every 100 ms. */
  require(): void {
    if (this.gone !== undefined) throw this.gone
    if (performance.now() >= this.nextAt) this.requireNow()
  }

  requireNow(): void {
    this.requireUnseen()
    const begin = performance.now()
    for (const [path, identity] of this.held) {
      const now = lookAt(path, identity)
      if (now !== identity) this.lose(path, now === undefined)
    }
    const end = performance.now()
    this.nextAt = end + Math.min(Math.max(LOOK_MS, SHARE * (end - begin)), LONGEST_MS)
  }

  get isGone(): boolean {
    return this.gone !== undefined
  }

  /** The same without looking. */
  requireUnseen(): void {
    if (this.gone !== undefined) throw this.gone
  }

  private lose(path: string, isMissing: boolean): never {
    const what = isMissing ? 'was removed or renamed' : 'was replaced by another file'
    const message = `The store is gone: ${path} ${what} while it was open. What this process wrote last may be in the old file only, and it acknowledges nothing more. Put the file back, or name another one, and start again.`
    this.gone = new StoreError('store_gone', message, { details: { path, isMissing } })
    throw this.gone
  }
}

/** Which file is at the path; undefined when there is none. */
function identityOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`
}

/** A path that cannot be looked at now says nothing of its file. */
function lookAt(path: string, identity: string): string | undefined {
  try {
    return identityOf(path)
  } catch (error) {
    return LOST.has(codeOf(error)) ? undefined : identity
  }
}

const LOST: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ESTALE'])
