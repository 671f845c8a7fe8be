import { createHash } from 'node:crypto'
import { isFull } from '../../../crash/support/full.ts'
import type { Definition } from './definition.ts'
import { MODES, type Mode } from './play.ts'

export type Case = readonly [name: string, mode: Mode, definition: Definition]

/** Every file in every mode with the full figures; else one file of each kind, in one mode after the other. */
export function shareOf(definitions: readonly Definition[], kindOf: (definition: Definition) => string): Case[] {
  if (isFull) return definitions.flatMap((one) => MODES.map((mode): Case => [one.name, mode, one]))
  const kinds = [...new Set(definitions.map(kindOf))].sort()
  return kinds.flatMap((kind, at) => {
    const [one] = definitions.filter((definition) => kindOf(definition) === kind).toSorted(byHash)
    const mode = MODES[at % MODES.length]
    return one === undefined || mode === undefined ? [] : [[one.name, mode, one] as const]
  })
}

function byHash(one: Definition, other: Definition): number {
  return hashOf(one) < hashOf(other) ? -1 : 1
}

function hashOf({ name }: Definition): string {
  return createHash('sha256').update(name).digest('hex')
}
