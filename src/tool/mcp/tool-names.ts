import { sha256 } from '../../base/hash.ts'

const LONGEST = 64
const DIGEST = 6

export interface NameOptions {
  /** Characters that the name of the source takes. */
  readonly room: number
  /** What may be seen of a name. */
  readonly shown: (name: string) => string
}

/**
 * Names that every provider takes, for the tools of a server: what cannot be in a name becomes `_`, what is too long is
 * cut, and names that changed or would be one get a digest, so that two stay apart. The same for the same names.
 */
export function toolNames(names: readonly string[], { room, shown }: NameOptions): ReadonlyMap<string, string> {
  const most = Math.max(8, LONGEST - room)
  const plain = names.map((name) => shown(name).replace(/[^a-zA-Z0-9_-]+/g, '_'))
  const counts = new Map<string, number>()
  for (const name of plain) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map(
    names.map((name, index) => {
      const bare = plain[index] ?? ''
      const isFine = bare !== '' && bare.length <= most && counts.get(bare) === 1
      if (isFine) return [name, bare]
      return [name, `${bare.slice(0, most - DIGEST - 1)}_${sha256(name).slice(0, DIGEST)}`]
    }),
  )
}
