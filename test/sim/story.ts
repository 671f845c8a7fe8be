// What happens in one simulation: made from a seed, so that a part of it can be left out and the rest stays the same.

import { Chance } from '../support/chance.ts'
import type { Deed } from './agents.ts'
import { LEASE_MS, SWEEP_MS } from './process.ts'

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
  /** True where processes keep few rows of a tree. */
  readonly fewRows: boolean
  readonly acts: readonly Act[]
}

const DEEDS: readonly Deed[] = ['pay', 'look', 'ask', 'sub:pay', 'sub:look', 'sub:ask', 'sub:']

/** The story of a seed, without the acts of these numbers. Most are small: two processes, a run, a trouble. */
export function storyOf(seed: number, without: readonly number[] = []): Story {
  const chance = new Chance(seed * 2 + 1)
  const isLarge = chance.is(0.03)
  const count = isLarge || chance.is(0.15) ? 3 : 2
  const processes = Array.from({ length: count }, () => ({
    skew: chance.is(0.3) ? chance.below(7_200_000) - 3_600_000 : chance.below(40) - 20,
    delayMs: 1 + chance.below(chance.is(0.2) ? 80 : 6),
  }))
  const quiet = chance.is(0.4)
  const story = {
    seed,
    processes,
    loss: quiet ? 0 : chance.next() * 0.08,
    twice: quiet ? 0 : chance.next() * 0.08,
    failing: chance.is(0.2) ? 0.3 : 0,
    fewRows: chance.is(0.3),
  }
  const acts = actsOf(chance, count, isLarge).filter((_, at) => !without.includes(at))
  return { ...story, acts }
}

function actsOf(chance: Chance, count: number, isLarge: boolean): Act[] {
  const on = () => chance.below(count)
  const busy = on()
  const runs = isLarge ? 3 : chance.pick([1, 1, 1, 1, 1, 2])
  const acts: Act[] = Array.from({ length: runs }, () => {
    const deeds = [chance.pick(DEEDS), ...(isLarge || chance.is(0.4) ? chance.some(DEEDS, 2) : [])]
    const wallMs = chance.is(0.1) ? 500 + chance.below(2_000) : null
    return { at: 10 + chance.below(60), type: 'run', on: chance.is(0.8) ? busy : on(), deeds, wallMs }
  })
  // Most runs take less than half a second; what comes later meets those that are held up.
  const moment = () => 60 + chance.below(chance.is(0.9) ? 250 : 1_500)
  if (chance.is(0.3)) acts.push({ at: moment(), type: 'follow', on: on(), run: chance.below(runs) })
  if (chance.is(0.15)) acts.push({ at: moment(), type: 'cancel', on: on(), run: chance.below(runs) })
  if (chance.is(0.5)) acts.push({ at: moment() + 200, type: 'approve', on: on(), allow: chance.is(0.8) })
  for (let left = isLarge ? 4 : chance.pick([0, 1, 1, 1, 1, 2, 2, 2]); left > 0; left--)
    acts.push(trouble(chance, moment(), chance.is(0.8) ? busy : on()))
  return acts
}

/** Half of it is over soon, half of it takes longer than a lease and the sweep that finds it out. */
function trouble(chance: Chance, at: number, on: number): Act {
  const kind = chance.below(8)
  const ms = chance.is(0.5) ? 100 + chance.below(900) : LEASE_MS + chance.below(SWEEP_MS + 500)
  if (kind <= 3) return { at, type: 'die', on, backAfter: ms }
  if (kind <= 5) return { at, type: 'sleep', on, ms }
  return { at, type: 'cut', on, ms, ways: chance.pick(['there', 'back', 'both'] as const) }
}

/** When all trouble of a story is over. */
export function troubleMs({ acts }: Story): number {
  return Math.max(300, ...acts.map((act) => act.at + troubleOf(act)))
}

function troubleOf(act: Act): number {
  if (act.type === 'die') return act.backAfter
  return act.type === 'sleep' || act.type === 'cut' ? act.ms : 0
}
