import { isLegateError, type LegateError, ToolError } from '../base/error.ts'
import { conflict, denied, IS_DIRECTORY, invalidPath, notFound, type Operation } from './failure.ts'
import { Moved, NotPlain } from './held-directory.ts'

/** What the system said, in words that name logical paths only: where an area really lies is nobody's business. */
export function diskFailure(error: unknown, operation: Operation, path: string): LegateError {
  if (isLegateError(error)) return error
  if (error instanceof NotPlain) return denied(operation, path, error.message)
  if (error instanceof Moved) return conflict(path, 'It was moved or replaced at the same time: try again.')
  const { code = 'unknown' } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return notFound(path)
    case 'EISDIR':
      return notFound(path, IS_DIRECTORY)
    case 'ELOOP':
    case 'ENXIO':
    case 'ENODEV':
      return denied(operation, path, 'it is no plain file')
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return denied(operation, path, `the system refuses it (${code})`)
    case 'EEXIST':
      return conflict(path, 'It is there already.')
    case 'ENAMETOOLONG':
      return invalidPath(path)
    default:
      return new ToolError('tool', `The ${operation} of ${path} failed: ${code}.`, { details: { path, code } })
  }
}
