import { InputError } from '../base/error.ts'

/** The most a page can hold. */
const MOST = 1_000

/** A whole number, or one in digits: what else is given is a mistake, and is said to be one. At most a thousand. */
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

/** The same, and at least 1. */
export function positiveNumber(value: unknown, name: string): number {
  const number = wholeNumber(value, name)
  if (number < 1) throw new InputError('invalid_input', `${name} must be at least 1, not ${number}.`)
  return number
}

/** A page goes one way. */
export function onlyOneCursor(before: unknown, after: unknown): void {
  if (before === undefined || after === undefined) return
  throw new InputError('invalid_input', 'A page goes back or forward: name one cursor, before or after, not both.')
}
