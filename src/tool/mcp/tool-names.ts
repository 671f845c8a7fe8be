import { sha256 } from '../../base/hash.ts'

const LONGEST = 64
/** Digits of a digest: more where two are the same. */
const DIGITS = [6, 14]

export interface NameOptions {
  /** Characters that the name of the source takes. */
  readonly room: number
  /** What may be seen of a name. */
  readonly shown: (name: string) => string
  /** Names that only a tool which is really called so may have. */
  readonly taken?: Iterable<string>
}

/**
 * Names that every provider takes, for the tools of a server. A name that is fine stays, whatever other tools there are. In
 * others what cannot be in a name becomes `_` and what is too long is cut; where another tool has that name, and where it
 * was cut, a digest follows. No two are the same; a tool for which there is no name is left out.
 */
export function toolNames(
  names: readonly string[],
  { room, shown, taken = [] }: NameOptions,
): ReadonlyMap<string, string> {
  const most = Math.max(20, LONGEST - room)
  const plain = new Map(names.map((name) => [name, shown(name).replace(/[^a-zA-Z0-9_-]+/g, '_')]))
  const isFine = (name: string) => name !== '' && name.length <= most
  const found = new Map(names.filter((name) => plain.get(name) === name && isFine(name)).map((name) => [name, name]))
  const used = new Set([...taken, ...found.values()])
  const candidates = [
    (name: string) => plain.get(name) ?? '',
    ...DIGITS.map((digits) => (name: string) => {
      return `${(plain.get(name) ?? '').slice(0, most - digits - 1)}_${sha256(name).slice(0, digits)}`
    }),
  ]
  for (const candidate of candidates) {
    const left = [...plain.keys()].filter((name) => !found.has(name)).map((name) => [name, candidate(name)] as const)
    const counts = new Map<string, number>()
    for (const [, made] of left) counts.set(made, (counts.get(made) ?? 0) + 1)
    for (const [name, made] of left) {
      if (isFine(made) && counts.get(made) === 1 && !used.has(made)) found.set(name, made)
    }
    for (const [, made] of left) used.add(made)
  }
  return found
}
