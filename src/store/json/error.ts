import { isLegateError, messageOf, StoreError } from '../../base/error.ts'

/** What a failure of the file system means to the user of the store. */
export function fileError(cause: unknown, path: string): Error {
  if (isLegateError(cause)) return cause
  const details = { path }
  switch (codeOf(cause)) {
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

export function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : ''
}
