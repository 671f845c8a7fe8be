import { DefinitionError } from '../../base/error.ts'
import type { ExtensionCore } from './extension.ts'

/**
 * Extensions in the order their hooks are called: as given, but for what `before` and `after` say. One that is given
 * twice is there once. Throws a DefinitionError for two of one name, a missing one, and a circle.
 */
export function inOrder(given: readonly ExtensionCore[], where: string): readonly ExtensionCore[] {
  const all = [...new Set(given)]
  const byName = new Map<string, ExtensionCore>()
  for (const extension of all) {
    if (byName.has(extension.name))
      refuse(`${where}: there are two extensions "${extension.name}". Rename one of them.`)
    byName.set(extension.name, extension)
  }
  for (const { name, requires = [] } of all) {
    const missing = requires.find((other) => !byName.has(other))
    if (missing !== undefined) refuse(`${where}: the extension "${name}" requires "${missing}". Use that one too.`)
  }
  return sorted(all, earlierThan(all), where)
}

/** For each name, those that must come sooner. */
function earlierThan(all: readonly ExtensionCore[]): ReadonlyMap<string, ReadonlySet<string>> {
  const earlier = new Map(all.map(({ name }) => [name, new Set<string>()]))
  for (const { name, before = [], after = [], requires = [] } of all) {
    for (const other of before) earlier.get(other)?.add(name)
    // What asks to come before what it requires means it.
    const required = requires.filter((other) => !before.includes(other))
    for (const other of [...after, ...required]) if (earlier.has(other)) earlier.get(name)?.add(other)
  }
  return earlier
}

function sorted(
  all: readonly ExtensionCore[],
  earlier: ReadonlyMap<string, ReadonlySet<string>>,
  where: string,
): readonly ExtensionCore[] {
  const waiting = [...all]
  const done: ExtensionCore[] = []
  const isFree = ({ name }: ExtensionCore) => waiting.every((other) => earlier.get(name)?.has(other.name) !== true)
  while (waiting.length > 0) {
    const next = waiting.findIndex(isFree)
    if (next < 0) {
      const names = waiting.map(({ name }) => name).join(', ')
      refuse(`${where}: these extensions want to come before each other: ${names}. Change "before" or "after".`)
    }
    done.push(...waiting.splice(next, 1))
  }
  return done
}

function refuse(message: string): never {
  throw new DefinitionError('definition', message)
}
