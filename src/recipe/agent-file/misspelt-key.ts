import { nearest } from '../../base/nearest.ts'

/** Keys that take something away from an agent. */
const RESTRICTIONS: readonly string[] = [
  ...['tools', 'disallowedTools', 'permissionMode', 'permission', 'sandbox_mode', 'readonly', 'grant', 'budget'],
  ...['maxTurns', 'max_turns', 'steps', 'timeout_mins', 'disable', 'neverAsks', 'disable-model-invocation'],
]

/** Of a beginning that is told from any other word. */
const SHORTEST = 5

/** The key that restricts and that was probably meant, of those that a dialect reads: in other letters, its beginning, or a slip away. */
export function meantRestriction(key: string, read: ReadonlySet<string>): string | undefined {
  const known = RESTRICTIONS.filter((one) => read.has(one))
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
