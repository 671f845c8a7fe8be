/** A row that nobody else has seen yet: it may be changed in place. */
export type Own<Row> = { -readonly [Key in keyof Row]: Row[Key] }

/**
 * Writes `patch` into a row that nobody else has seen yet. Objects that have their fields in one order share one hidden class,
 * and code that reads them stays fast: so rows are copied field by field (`graph/rows.made.ts`) and then patched, never spread.
 */
export function patched<T extends object>(copy: T, patch: Partial<T>): T {
  for (const key in patch) copy[key] = patch[key] as T[typeof key]
  return copy
}
