import { isLegateError, messageOf, StoreError } from '../../base/error.ts'
import { RESULT, resultCode } from './driver.ts'

/** What a failure of SQLite or of the file system means to the user of the store. */
export function storeError(cause: unknown, path: string): Error {
  if (isLegateError(cause)) return cause
  const said = messageOf(cause)
  const details = { path }
  switch (kindOf(cause)) {
    case 'busy':
      return new StoreError('store_busy', busyMessage(path), { cause, details })
    case 'full':
      return new StoreError('store_full', `The disk of ${path} is full; nothing was written. Make room and go on.`, {
        cause,
        details,
      })
    case 'readonly': {
      const advice =
        'The store must be able to write the file and its folder: change their permissions, or name another path.'
      return new StoreError('store_readonly', `Cannot write ${path} (${said}). ${advice}`, { cause, details })
    }
    case 'foreign':
      return new StoreError('store_foreign_file', foreignMessage(path, 'is not a SQLite database'), { cause, details })
    case 'corrupt':
      return new StoreError('store', `The database ${path} is damaged (${said}). Restore it from a backup.`, {
        cause,
        details,
      })
    default:
      return new StoreError('store', `The database ${path} failed: ${said}`, { cause, details })
  }
}

export function busyMessage(path: string): string {
  return `Another process has kept ${path} locked for too long. Try again, or look what holds it.`
}

export function foreignMessage(path: string, why: string): string {
  return `The file ${path} ${why}; it was left as it is. Name another path for the store.`
}

type Kind = 'busy' | 'full' | 'readonly' | 'foreign' | 'corrupt' | 'other'

/** When the shared index of the write-ahead log cannot grow, the disk is full. */
const sharedMemorySize = RESULT.io | (19 << 8)

const kinds: ReadonlyMap<number | string, Kind> = new Map<number | string, Kind>([
  [RESULT.busy, 'busy'],
  [RESULT.locked, 'busy'],
  [RESULT.full, 'full'],
  [RESULT.readonly, 'readonly'],
  [RESULT.notADatabase, 'foreign'],
  [RESULT.corrupt, 'corrupt'],
  [sharedMemorySize, 'full'],
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['EACCES', 'readonly'],
  ['EPERM', 'readonly'],
  ['EROFS', 'readonly'],
])

function kindOf(cause: unknown): Kind {
  const code = resultCode(cause)
  if (code !== 0) return kinds.get(code) ?? kinds.get(code & 0xff) ?? 'other'
  const name = typeof cause === 'object' && cause !== null ? Reflect.get(cause, 'code') : undefined
  return (typeof name === 'string' ? kinds.get(name) : undefined) ?? 'other'
}
