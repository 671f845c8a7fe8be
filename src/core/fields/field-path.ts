import type { Path } from '../base/text.ts'

/**
 * The paths of a value of type `T` as text: `plan`, `tasks[*]`, `tasks[0].title`, `/tasks/0/title`; empty for the root.
 * The compiler checks five levels; a type that says nothing allows any text.
 */
export type FieldPath<T> = IsUnknown<T> extends true ? string : '' | WithoutDot<DotBelow<T, 5>> | SlashBelow<T, 5>

/** The type of the finished value at that path. */
export type FieldValue<T, P> =
  IsUnknown<T> extends true
    ? unknown
    : P extends `/${string}`
      ? AtSlash<T, P>
      : P extends '' | `[${string}`
        ? AtDot<T, P>
        : AtDot<T, `.${P & string}`>

type IsUnknown<T> = unknown extends T ? true : false

/** Counts levels down, so that a recursive type ends. */
type Less = { 5: 4; 4: 3; 3: 2; 2: 1; 1: 0; 0: 0 }
type Level = keyof Less

type DotBelow<T, L extends Level> =
  IsUnknown<T> extends true
    ? AnyDot
    : L extends 0
      ? AnyDot
      : T extends readonly (infer Item)[]
        ? `[${number | '*'}]${'' | DotBelow<Item, Less[L]>}`
        : T extends object
          ? { [K in keyof T & string]-?: `${DotKey<K>}${'' | DotBelow<T[K], Less[L]>}` }[keyof T & string]
          : never

type AnyDot = `${'.' | '['}${string}`

/** `.name`, or `["a b"]` for a key that is not a word. */
type DotKey<K extends string> = string extends K
  ? `.${string}` | `["${string}"]`
  : K extends `${string}${'.' | '[' | ']' | '"' | ' ' | '-' | '/' | ':'}${string}`
    ? `["${K}"]`
    : `.${K}`

type WithoutDot<P> = P extends `.${infer Rest}` ? Rest : P

type SlashBelow<T, L extends Level> =
  IsUnknown<T> extends true
    ? `/${string}`
    : L extends 0
      ? `/${string}`
      : T extends readonly (infer Item)[]
        ? `/${number | '*'}${'' | SlashBelow<Item, Less[L]>}`
        : T extends object
          ? { [K in keyof T & string]-?: `/${SlashKey<K>}${'' | SlashBelow<T[K], Less[L]>}` }[keyof T & string]
          : never

type SlashKey<K extends string> = K extends `${string}${'/' | '~'}${string}` ? string : K

type AtDot<T, P> = P extends ''
  ? T
  : P extends `["${infer Key}"]${infer Rest}`
    ? AtDot<Step<T, Key>, Rest>
    : P extends `[${infer Index}]${infer Rest}`
      ? AtDot<Step<T, Index>, Rest>
      : P extends `.${infer Names}`
        ? AtName<T, SplitName<Names>>
        : unknown

type AtName<T, Split> = Split extends [infer Name, infer Rest] ? AtDot<Step<T, Name>, Rest> : unknown

/** The first name, and the rest from its dot or bracket on. */
type SplitName<P extends string> = P extends `${infer Names}[${infer Rest}`
  ? Names extends `${infer Name}.${infer More}`
    ? [Name, `.${More}[${Rest}`]
    : [Names, `[${Rest}`]
  : P extends `${infer Name}.${infer Rest}`
    ? [Name, `.${Rest}`]
    : [P, '']

type AtSlash<T, P> = P extends `/${infer Key}/${infer Rest}`
  ? AtSlash<Step<T, Key>, `/${Rest}`>
  : P extends `/${infer Key}`
    ? Step<T, Key>
    : T

/** JSON has no undefined: an optional field that is done is there. */
type Step<T, K> =
  IsUnknown<T> extends true
    ? unknown
    : T extends readonly (infer Item)[]
      ? Item
      : T extends object
        ? K extends keyof T
          ? Exclude<T[K], undefined>
          : K extends '*'
            ? Exclude<T[keyof T], undefined>
            : never
        : never

/** A path as people write it: `tasks[0].title`, `headers["content-type"]`; empty for the root. */
export function dotPath(path: Path): string {
  return spell(path, (index) => `[${index}]`)
}

/** A path with `[*]` for every index: `tasks[*].title`. */
export function wildcardPath(path: Path): string {
  return spell(path, () => '[*]')
}

/** A JSON pointer, RFC 6901: `/tasks/0/title`; empty for the root. */
export function slashPath(path: Path): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

const word = /^[\p{L}_$][\p{L}\p{N}_$]*$/u

function spell(path: Path, spellIndex: (index: number) => string): string {
  let text = ''
  for (const key of path) {
    if (typeof key === 'number') text += spellIndex(key)
    else if (word.test(key)) text += text === '' ? key : `.${key}`
    else text += `[${JSON.stringify(key)}]`
  }
  return text
}
