import { isLegateError, StoreError } from '../base/error.ts'
import type { Id } from '../graph/rows.ts'

interface TamperedPlace {
  readonly rootId: Id | null
  readonly path: string
  /** Of which the events were changed: its number in its tree. */
  readonly commit?: number
}

/** `what` is wrong, as a sentence without its end. */
export function tampered(what: string, place: TamperedPlace): StoreError {
  const { rootId, path } = place
  const where = rootId === null ? path : `the tree ${rootId} in ${path}`
  const remove = rootId === null ? '' : `, or delete the tree: \`legate forget ${rootId}\``
  const message = `${what}: somebody changed ${where} outside of the runtime. Nothing more is written to that tree, not even that it is cancelled; others go on. \`legate audit --verify\` lists all that is wrong; restore the file from a backup${remove}.`
  return new StoreError('tampered', message, { details: { ...place } })
}

/** Undefined where what is read was changed from outside: the store then names its tree by itself. */
export function unlessTampered<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isLegateError(error, 'tampered')) return undefined
    throw error
  }
}
