import { InputError } from '../base/error.ts'

/** The most that a page can hold. */
const MOST = 1_000

/** Reads a whole number, also in digits, of at most a thousand. Throws for anything else. */
export function wholeNumber(value: unknown, name: string): number {
  const isDigits = typeof value === 'string' && /^-?\d{1,15}$/.test(value)
  const number = isDigits ? Number(value) : value
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) {
    throw new InputError(
      'invalid_input',
      `${name} must be a whole number, not ${JSON.stringify(value) ?? typeof value}.`,
    )
  }
  return Math.min(number, MOST)
}

/** Like `wholeNumber`, and at least 1. */
export function positiveNumber(value: unknown, name: string): number {
  const number = wholeNumber(value, name)
  if (number < 1) throw new InputError('invalid_input', `${name} must be at least 1, not ${number}.`)
  return number
}

/** A page takes one cursor at most. */
export function onlyOneCursor(before: unknown, after: unknown): void {
  if (before === undefined || after === undefined) return
  throw new InputError('invalid_input', 'A page goes back or forward: name one cursor, before or after, not both.')
}
