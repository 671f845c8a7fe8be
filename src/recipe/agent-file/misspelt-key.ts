import { nearest } from '../../base/nearest.ts'
import type { Entry, MapTree } from '../text/tree.ts'

/** Keys that take something away from an agent. */
const RESTRICTIONS: readonly string[] = [
  ...['tools', 'disallowedTools', 'permissionMode', 'permission', 'sandbox_mode', 'readonly', 'grant', 'budget'],
  ...['maxTurns', 'max_turns', 'steps', 'timeout_mins', 'disable', 'neverAsks', 'disable-model-invocation'],
]

/** Of a beginning that is told from any other word. */
const SHORTEST = 5

/** The key that restricts and that was probably meant, of those that a dialect reads: in other letters, its beginning, or a slip away. */
export function meantRestriction(key: string, read: ReadonlySet<string>): string | undefined {
  return meantKey(
    key,
    RESTRICTIONS.filter((one) => read.has(one)),
  )
}

/** The one of these keys that was probably meant. */
export function meantKey(key: string, known: readonly string[]): string | undefined {
  const same = known.find((one) => plain(one) === plain(key))
  if (same !== undefined) return same
  // `sandbox` for `sandbox_mode`.
  const longer = key.length < SHORTEST ? undefined : known.find((one) => plain(one).startsWith(plain(key)))
  if (longer !== undefined) return longer
  const near = nearest(plain(key), known.map(plain))
  return near === undefined ? undefined : known.find((one) => plain(one) === near)
}

function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[_-]/g, '')
}

/**
 * The same keys, and instead of one that is nearly one that restricts, that one. Where both stand there, it stays, and is told
 * of as a key that is not known.
 */
export function withMeantKeys(tree: MapTree, meantBy: (key: string) => string | undefined, tell: TellMeant): MapTree {
  const entries = new Map<string, Entry>()
  for (const [key, entry] of tree.entries) {
    const meant = meantBy(key)
    const isTaken = meant === undefined || tree.entries.has(meant) || entries.has(meant)
    const name = isTaken || plain(meant)[0] !== plain(key)[0] ? key : meant
    if (name !== key) tell(key, name, entry.line)
    entries.set(name, entry)
  }
  return { ...tree, entries }
}

type TellMeant = (key: string, meant: string, line: number) => void
