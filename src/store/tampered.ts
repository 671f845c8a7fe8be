import { StoreError } from '../base/error.ts'
import type { Id } from '../graph/rows.ts'

/** `what` is wrong, as a sentence without its end. */
export function tampered(what: string, { rootId, path }: { rootId: Id | null; path: string }): StoreError {
  const where = rootId === null ? path : `the tree ${rootId} in ${path}`
  const remove = rootId === null ? '' : `, or delete the tree: \`legate forget ${rootId}\``
  const message = `${what}: somebody changed ${where} outside of the runtime. Nothing more is written to that tree, not even that it is cancelled; others go on. \`legate audit --verify\` lists all that is wrong; restore the file from a backup${remove}.`
  return new StoreError('tampered', message, { details: { rootId, path } })
}
