import { sizeOf } from '../base/json.ts'
import { isOwnersFolder } from '../base/owner-folder.ts'
import { invalidPath } from './failure.ts'

/**
 * The three areas: files that people gave, files that agents make, and files that agents reach only with a grant for
 * them.
 */
export const AREAS = ['userinput', 'workspace', 'internal'] as const
export type Area = (typeof AREAS)[number]

/** A checked name in the file domain. It has no slash at its end; its first segment is the area. */
export interface LogicalPath {
  readonly text: string
  readonly segments: readonly string[]
}

/**
 * Reads a path that a model or a tool wrote. It normalises nothing: a text is a valid path or refused, so that rules
 * match exactly the path that is opened (I10). Case and spaces count. Only a directory may end in a slash.
 */
export function readFilePath(given: unknown, kind: 'file' | 'directory' = 'file'): LogicalPath {
  if (typeof given !== 'string' || !given.startsWith('/')) throw invalidPath(given)
  if (kind === 'directory' && given === '/') return { text: '/', segments: [] }
  const text = kind === 'directory' && given.endsWith('/') ? given.slice(0, -1) : given
  const segments = text.slice(1).split('/')
  const isTooLong = segments.length > MOST_SEGMENTS || sizeOf(text) > MOST_BYTES
  if (isTooLong || !segments.every(isName)) throw invalidPath(given)
  return { text, segments }
}

/**
 * True when a file can have this name. Names found on a disk are checked too: a file that cannot be named stays
 * invisible.
 */
export function isName(segment: string): boolean {
  if (segment === '' || segment === '.' || segment.includes('..') || sizeOf(segment) > MOST_NAME_BYTES) return false
  return !FORBIDDEN.test(segment) && segment.isWellFormed() && !isTemporary(segment) && !isOwnersFolder(segment)
}

/** The path of an entry of a directory. */
export function below({ text, segments }: LogicalPath, name: string): LogicalPath {
  return { text: text === '/' ? `/${name}` : `${text}/${name}`, segments: [...segments, name] }
}

/** The name of a half-written file beside its final one. No valid path can name it. */
export function temporaryName(random: string): string {
  return `.legate.${random}.tmp`
}

function isTemporary(segment: string): boolean {
  return segment.startsWith('.legate.') && segment.endsWith('.tmp')
}

const FORBIDDEN = /[\p{Cc}*?\\/]/u
const MOST_NAME_BYTES = 255
const MOST_SEGMENTS = 64
/** Leaves as much again for the real directory of an area. */
const MOST_BYTES = 2_048
