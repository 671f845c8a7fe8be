// The tricks that keep compiled code fast. Rows, drafts and claims come and go by the million, and V8 compiles the code that
// reads them for one hidden class: the list of an object's fields, in the order they were set.
//   - Rows have one shape. Every field is always set, in one order, by copies that name each field (graph/rows.made.ts). They
//     are made from `Columns`, a declaration that stands beside the type of the row.
//     Spreads and loops over keys cost 1.3 to 2.5 times as much. Optional fields are set only where they are needed.
//   - `KeptAlive` keeps one instance of a short-lived class alive.
//   - What each node makes anew and lets go of soon is made by a class. Where an object literal has survived a few collections,
//     V8 makes all later objects of that place long-lived, and their garbage keeps the young garbage that they point to.
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

/** One column of a row: its values in rows of several kinds, and how it is written. */
export interface Column<Value, Name extends string = string> {
  /** The value of most rows: the text of a row leaves it out. */
  readonly usual: Value
  /** The value of a new row; absent: the usual one. */
  readonly fresh?: Value
  /** The value in rows for tests; absent: as in a new row. */
  readonly test?: Value
  /** The values that a row from outside may have, where a list of them exists. */
  readonly oneOf?: readonly Value[]
  readonly text?: ColumnText<Name>
}

/**
 * How a column is written, where it is not simply left out when it has its usual value:
 * `always`; `never`, because another column or the turn says it; left out where it is `empty`, or where it is the `same` as
 * another column; `by` a function of `store/codec/parts.ts` that takes the row. `as` is its name in the text, `first` a field
 * of the text that comes before it and the function that gives it.
 */
export type ColumnText<Name extends string = string> =
  | 'always'
  | 'never'
  | 'empty'
  | { readonly same: Name }
  | { readonly as: string; readonly by?: string }
  | { readonly by: string; readonly first?: readonly [name: string, by: string] }

/** The columns of a row. A column that is missing, or that the row does not have, does not compile. */
export type Columns<Row> = { readonly [Key in keyof Required<Row>]: Column<Row[Key], keyof Row & string> }
