import { SubAgentUnavailable } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'

/**
 * What becomes of a tool whose name another has: both are refused (`raise`, the default), it replaces the other
 * (`override`), it is left out (`skip`), or it gets a name of its own (`rename`).
 */
export type NameClash = 'raise' | 'override' | 'skip' | 'rename'

export const NAME_CLASHES: readonly NameClash[] = ['raise', 'override', 'skip', 'rename']

/** Which of two of one name stays under it, and whether the other gets a new one; null when both are refused. */
export interface Settled {
  readonly stays: 'first' | 'second'
  readonly isRenamed: boolean
}

/** The one that comes later says it; where it says nothing, the first. */
export function settleClash(first: NameClash | undefined, second: NameClash | undefined): Settled | null {
  const isSaidBySecond = second !== undefined && second !== 'raise'
  const how = isSaidBySecond ? second : (first ?? 'raise')
  if (how === 'raise') return null
  const [speaker, other] = isSaidBySecond ? (['second', 'first'] as const) : (['first', 'second'] as const)
  return { stays: how === 'override' ? speaker : other, isRenamed: how === 'rename' }
}

const TRIES = 100
const LONGEST = 64
const SUFFIX = 5

/** The name and five characters more; the same each time, so that every process has the same tools. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  for (let at = 0; at < TRIES; at++) {
    const suffix = sha256(`${name}/${at}`).slice(0, SUFFIX)
    const free = `${name.slice(0, LONGEST - SUFFIX - 1)}_${suffix}`
    if (!isTaken(free)) return free
  }
  throw new SubAgentUnavailable('subagent_unavailable', `No name like "${name}" is free after ${TRIES} tries.`)
}
