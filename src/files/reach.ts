import type { Layer } from '../grant/grant.ts'
import { OPERATIONS, type Operation } from './failure.ts'

/** A place that rules name, and what may be done there. */
export interface Reach {
  /** `/workspace/docs/` for all below it, else as the rule has it. */
  readonly place: string
  readonly operations: readonly Operation[]
}

/**
 * Where an agent can do something, of the places that some layer names. A place inside another where the same may be
 * done is left out.
 */
export function reachOf(layers: readonly Layer[], may: (operation: Operation, path: string) => boolean): Reach[] {
  const found = placesIn(layers).flatMap((place) => {
    const operations = OPERATIONS.filter((operation) => may(operation, exampleOf(place)))
    return operations.length === 0 ? [] : [{ place, operations }]
  })
  return found.filter((reach) => !found.some((other) => covers(other, reach)))
}

/** `/p/: ls, stat, read, write, delete`, a line for each place. */
export function describeReach(reach: readonly Reach[]): string {
  const lines = reach.map(({ place, operations }) => `${place}: ${operations.map((name) => WORDS[name]).join(', ')}`)
  return lines.join('\n')
}

const WORDS = { list: 'ls, stat', read: 'read', write: 'write', delete: 'delete' } as const

/** `/internal/` is a place only where a rule names it. */
function placesIn(layers: readonly Layer[]): string[] {
  const rules = layers.flatMap(({ allow, ask, deny }) => [...allow, ...ask, ...deny])
  const patterns = rules.filter((rule) => rule.startsWith('file.')).map((rule) => rule.slice(rule.indexOf(':') + 1))
  const places = patterns.map((pattern) => pattern.replace(/\/\*\*$/, '/'))
  return [...new Set(['/userinput/', '/workspace/', ...places])].sort()
}

/** A path there that no rule has in mind. */
function exampleOf(place: string): string {
  return place.replaceAll('*', 'any').replace(/\/$/, '/any')
}

function covers(outer: Reach, inner: Reach): boolean {
  if (outer === inner || !outer.place.endsWith('/') || !inner.place.startsWith(outer.place)) return false
  return inner.operations.join() === outer.operations.join()
}
