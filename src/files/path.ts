import { sizeOf } from '../base/json.ts'
import { invalidPath } from './failure.ts'

/** The three places there are: what people gave, what agents make, and what is not for agents unless they are granted it. */
export const AREAS = ['userinput', 'workspace', 'internal'] as const
export type Area = (typeof AREAS)[number]

/** A checked name in the file domain. It has no slash at its end; its first segment is the area. */
export interface LogicalPath {
  readonly text: string
  readonly segments: readonly string[]
}

/**
 * Reads a path as a model or a tool writes it. Nothing is normalised: a text is a good path or it is refused, so that
 * what rules are matched against is what is opened (I10). Case and spaces count. Only a directory may end in a slash.
 */
export function readPath(given: unknown, kind: 'file' | 'directory' = 'file'): LogicalPath {
  if (typeof given !== 'string' || !given.startsWith('/')) throw invalidPath(given)
  if (kind === 'directory' && given === '/') return { text: '/', segments: [] }
  const text = kind === 'directory' && given.endsWith('/') ? given.slice(0, -1) : given
  const segments = text.slice(1).split('/')
  const isTooLong = segments.length > MOST_SEGMENTS || sizeOf(text) > MOST_BYTES
  if (isTooLong || !segments.every(isName)) throw invalidPath(given)
  return { text, segments }
}

/** Can a file have this name? Also asked of names found on a disk: what cannot be named cannot be seen. */
export function isName(segment: string): boolean {
  if (segment === '' || segment === '.' || segment.includes('..') || sizeOf(segment) > MOST_NAME_BYTES) return false
  return !FORBIDDEN.test(segment) && segment.isWellFormed() && !isTemporary(segment)
}

/** The path of an entry of a directory. */
export function below({ text, segments }: LogicalPath, name: string): LogicalPath {
  return { text: text === '/' ? `/${name}` : `${text}/${name}`, segments: [...segments, name] }
}

/** Half-written files lie beside the file they will become; nobody can name them. */
export function temporaryName(random: string): string {
  return `.legate.${random}.tmp`
}

function isTemporary(segment: string): boolean {
  return segment.startsWith('.legate.') && segment.endsWith('.tmp')
}

const FORBIDDEN = /[\p{Cc}*?\\/]/u
const MOST_NAME_BYTES = 255
const MOST_SEGMENTS = 64
/** Leaves as much again for the directory an area lies in. */
const MOST_BYTES = 2_048
