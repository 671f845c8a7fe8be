import { InputError } from '../base/error.ts'
import { invalidArgument } from './failure.ts'

/** The text of a file; one that is not UTF-8 or has a NUL is no text. */
export function decodeText(bytes: Uint8Array, path: string): string {
  const text = bytes.includes(0) ? undefined : decoded(bytes)
  if (text !== undefined) return text
  const message = `Not a text file: ${path} (size=${bytes.length}). It has bytes that are not UTF-8.`
  throw new InputError('invalid_input', message, { details: { path } })
}

export function linesOf(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** Every match from the left; with `overlap`, the next may begin that many characters before the end of the last. */
export function matchesIn(text: string, pattern: RegExp, overlap: number): string[] {
  const found: string[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    found.push(match[0])
    pattern.lastIndex = Math.max(match.index + 1, match.index + match[0].length - overlap)
  }
  return found
}

export function checkPattern(pattern: unknown, overlap: number): void {
  if (!(pattern instanceof RegExp) || !pattern.global) {
    throw invalidArgument('pattern', String(pattern), 'give a regular expression with the flag g.')
  }
  if (!(overlap >= 0)) throw invalidArgument('overlap', overlap, 'give 0 or more.')
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

// A byte order mark stays, so that an edit does not lose it.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
