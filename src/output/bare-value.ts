import { isDigit, minus } from './chars.ts'
import { BOOLEAN, NULL, NUMBER } from './kinds.ts'
import { readLooseNumber, readNumber } from './number.ts'

/**
 * What `text` spells between two places without quotes: a number, true, false or null; undefined for anything else.
 * Numbers beyond the finite ones, and NaN, are given as they are.
 */
export function readBareValue(text: string, from: number, to: number): number | boolean | null | undefined {
  const first = text.charCodeAt(from)
  if (isDigit(first) || first === minus) {
    const value = readNumber(text, from, to)
    return Number.isNaN(value) ? undefined : value
  }
  return literals.get(text.slice(from, to))
}

/** The same with what JSON5 and Python add. */
export function readLooseValue(text: string, from: number, to: number): number | boolean | null | undefined {
  const value = readBareValue(text, from, to)
  if (value !== undefined) return value
  const token = text.slice(from, to)
  if (looseLiterals.has(token)) return looseLiterals.get(token)
  const loose = readLooseNumber(token)
  return Number.isNaN(loose) ? undefined : loose
}

/** The kind that the beginning of a number or literal shows, or 0. */
export function kindBegun(token: string): number {
  const first = token.charCodeAt(0)
  if (isDigit(first) || first === minus) return NUMBER
  if ('true'.startsWith(token) || 'false'.startsWith(token)) return BOOLEAN
  return 'null'.startsWith(token) ? NULL : 0
}

const literals = new Map<string, boolean | null>([
  ['true', true],
  ['false', false],
  ['null', null],
])

const looseLiterals = new Map<string, number | boolean | null>([
  ['True', true],
  ['False', false],
  ['None', null],
  ['NaN', Number.NaN],
  ['+NaN', Number.NaN],
  ['-NaN', Number.NaN],
])
