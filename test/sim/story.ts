// What happens in one simulation: made from a seed, so that a part of it can be left out and the rest stays the same.

import { Chance } from '../support/chance.ts'
import type { Deed } from './agents.ts'

/** Something that happens at a moment. Each can be left out: see `without`. */
export type Act = { readonly at: number } & (
  | { readonly type: 'run'; readonly on: number; readonly deeds: readonly Deed[]; readonly wallMs: number | null }
  | { readonly type: 'cancel'; readonly on: number; readonly run: number }
  | { readonly type: 'approve'; readonly on: number; readonly allow: boolean }
  | { readonly type: 'die'; readonly on: number; readonly backAfter: number }
  | { readonly type: 'sleep'; readonly on: number; readonly ms: number }
  | { readonly type: 'cut'; readonly on: number; readonly ms: number; readonly ways: 'there' | 'back' | 'both' }
  | { readonly type: 'follow'; readonly on: number; readonly run: number }
)

export interface Story {
  readonly seed: number
  readonly processes: readonly { readonly skew: number; readonly delayMs: number }[]
  readonly loss: number
  readonly twice: number
  readonly failing: number
  readonly acts: readonly Act[]
}

const DEEDS: readonly Deed[] = ['pay', 'look', 'ask', 'sub:pay', 'sub:look', 'sub:ask', 'sub:']
/** Everything that goes wrong does so before that. */
export const TROUBLE_MS = 2_500

/** The story of a seed, without the acts of these numbers. */
export function storyOf(seed: number, without: readonly number[] = []): Story {
  const chance = new Chance(seed * 2 + 1)
  const count = 2 + chance.below(2)
  const processes = Array.from({ length: count }, () => ({
    skew: chance.is(0.3) ? chance.below(7_200_000) - 3_600_000 : chance.below(40) - 20,
    delayMs: 1 + chance.below(chance.is(0.2) ? 80 : 6),
  }))
  const quiet = chance.is(0.4)
  const story = {
    seed,
    processes,
    loss: quiet ? 0 : chance.next() * 0.04,
    twice: quiet ? 0 : chance.next() * 0.05,
    failing: chance.is(0.3) ? 0.2 : 0,
  }
  const acts = actsOf(chance, count).filter((_, at) => !without.includes(at))
  return { ...story, acts }
}

function actsOf(chance: Chance, count: number): Act[] {
  const on = () => chance.below(count)
  const runs = 1 + chance.below(2)
  const busy = on()
  const acts: Act[] = Array.from({ length: runs }, () => {
    const deeds = [chance.pick(DEEDS), ...chance.some(DEEDS, 2)]
    const wallMs = chance.is(0.1) ? 1_000 + chance.below(4_000) : null
    return { at: chance.below(200), type: 'run', on: chance.is(0.7) ? busy : on(), deeds, wallMs }
  })
  const moment = () => chance.below(chance.is(0.8) ? 600 : TROUBLE_MS - 1_000)
  if (chance.is(0.5)) acts.push({ at: chance.below(200), type: 'follow', on: on(), run: chance.below(runs) })
  if (chance.is(0.2)) acts.push({ at: moment(), type: 'cancel', on: on(), run: chance.below(runs) })
  for (let left = chance.below(3); left > 0; left--) {
    acts.push({ at: moment() + 200, type: 'approve', on: on(), allow: chance.is(0.8) })
  }
  for (let left = chance.below(4); left > 0; left--)
    acts.push(trouble(chance, moment() + 50, chance.is(0.7) ? busy : on()))
  return acts
}

function trouble(chance: Chance, at: number, on: number): Act {
  const kind = chance.below(4)
  const ms = 200 + chance.below(chance.is(0.5) ? 1_000 : 4_000)
  if (kind <= 1) return { at, type: 'die', on, backAfter: ms }
  if (kind === 2) return { at, type: 'sleep', on, ms }
  return { at, type: 'cut', on, ms, ways: chance.pick(['there', 'back', 'both'] as const) }
}
