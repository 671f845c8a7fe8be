// The tricks that keep compiled code fast. Rows, drafts and claims come and go by the million, and V8 compiles the code that
// reads them for one hidden class: the list of an object's fields, in the order they were set.
//   - Rows have one shape. Every field is always set, in one order, by copies that name each field (graph/rows.made.ts).
//     Spreads and loops over keys cost 1.3 to 2.5 times as much. Optional fields are set only where they are needed.
//   - `KeptAlive` keeps one instance of a short-lived class alive.
// No other file explains shapes or V8. A trick that does not pay for itself in `npm run bench` goes.

/** A row that only its maker has seen, and may still change in place. */
export type Own<Row> = { -readonly [Key in keyof Row]: Row[Key] }

/** Writes `patch` into a row that only its maker has seen. The copy already has all fields, so its shape stays. */
export function patched<T extends object>(copy: T, patch: Partial<T>): T {
  for (const key in patch) copy[key] = patch[key] as T[typeof key]
  return copy
}

/**
 * A field that holds the last object of a short-lived class, for nobody to read. V8 discards the code that it compiled for a
 * class when a full collection finds no instance alive. A draft lives for microseconds, so without such a field every
 * collection would discard the compiled rules, and the next commit would run slowly.
 */
export type KeptAlive = unknown
