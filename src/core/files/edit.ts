import { InputError } from '../base/error.ts'
import { invalidArgument } from './failure.ts'

/** The most bytes that one call may read. */
const MOST_LENGTH = 16_000_000

export interface Edit {
  /** The text that is replaced. */
  readonly oldText: string
  /** The text that takes its place. */
  readonly newText: string
  /** Replaces every occurrence. Default: there must be exactly one. */
  readonly replaceAll?: boolean
}

/** Applies edits one after another and returns the text. If one does not fit, none is applied. */
export function applyEdits(text: string, edits: readonly Edit[], path: string): string {
  if (!Array.isArray(edits) || edits.length === 0) throw invalidArgument('edits', edits, 'give at least one edit.')
  return edits.reduce((current, edit, index) => applyEdit(current, edit, `edit ${index + 1} of ${path}`), text)
}

function applyEdit(text: string, { oldText, newText, replaceAll = false }: Edit, where: string): string {
  if (typeof oldText !== 'string' || oldText === '')
    throw invalidArgument('oldText', oldText, 'give the text to replace.')
  if (typeof newText !== 'string') throw invalidArgument('newText', newText, 'give a text.')
  const parts = text.split(oldText)
  const count = parts.length - 1
  const length = text.length + count * (newText.length - oldText.length)
  if (length > MOST_LENGTH) throw invalidArgument('newText', newText, `${where} makes the file too large.`)
  if (count === 1 || (count > 1 && replaceAll)) return parts.join(newText)
  const hint = count === 0 ? absent(text, oldText) : 'Give more of the text around it, or replaceAll.'
  throw new InputError('invalid_input', `Nothing was changed: oldText of ${where} has ${count} matches. ${hint}`, {
    details: { matches: count },
  })
}

function absent(text: string, oldText: string): string {
  const isOtherLineEnd = text.includes('\r\n') && !oldText.includes('\r') && oldText.includes('\n')
  return isOtherLineEnd ? 'Its lines end in \\r\\n.' : 'Read the file and give its exact text.'
}

/** Decodes the text of a file. Bytes that are not UTF-8, or contain NUL, are no text. */
export function decodeText(bytes: Uint8Array, path: string): string {
  const text = bytes.includes(0) ? undefined : decoded(bytes)
  if (text !== undefined) return text
  const message = `Not a text file: ${path} (size=${bytes.length}). It has bytes that are not UTF-8.`
  throw new InputError('invalid_input', message, { details: { path } })
}

export function textLines(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/**
 * Lists every match from the left; with `overlap`, the next may begin that many characters before the end of the last.
 */
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

// Keeps a byte order mark, so that an edit does not lose it.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
