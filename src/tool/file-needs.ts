import type { Operation } from '../files/failure.ts'
import { readPath } from '../files/path.ts'
import { fileRequest, type Request } from '../grant/request.ts'

/**
 * What a tool that does this with a path asks for before it runs. Nothing where it is no path, which the files refuse, and
 * for "/", which shows what may be seen.
 */
export function fileNeed(operation: Operation, given: string): readonly Request[] {
  try {
    const path = readPath(given, 'directory')
    return path.text === '/' ? [] : [fileRequest(operation, path)]
  } catch {
    return []
  }
}
