/** The kinds of values as bits of one number. */
export const OBJECT = 1
export const LIST = 2
export const STRING = 4
export const NUMBER = 8
export const BOOLEAN = 16
export const NULL = 32
export const ANY = 63

export function kindOf(value: unknown): number {
  if (value === null) return NULL
  if (typeof value === 'string') return STRING
  if (typeof value === 'number') return NUMBER
  if (typeof value === 'boolean') return BOOLEAN
  return Array.isArray(value) ? LIST : OBJECT
}
