import type { Effect } from 'legate'
import type { Node } from 'legate/rows'
import { type Aftermath, CrashCase, type Kill } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'
import { firstSeed, seededRandom } from './support/random.ts'
import { Totals } from './support/totals.ts'

const EFFECTS: readonly Effect[] = ['pure', 'idempotent', 'effectful']
/** Those at chosen points, and from there on at random moments. */
const KILLS = isFull ? 3_000 : 32

/** What a kill at a point leaves of an effectful call: was its effect seen outside, and what is it called? */
const WINDOW: readonly (readonly [point: string, seen: number, state: Node['state']])[] = [
  ['before:expand', 1, 'finished'],
  ['after:expand', 0, 'uncertain'],
  ['act:before', 0, 'uncertain'],
  ['act:after', 1, 'uncertain'],
  ['before:result', 1, 'uncertain'],
  ['after:result', 1, 'finished'],
]

const program = programFile('effects')
const counter = await useCounter()
const totals = new Totals()

test.each(WINDOW)('R-7: killed at %s, an effect was seen %d times and is %s', async (point, seen, state) => {
  await inParallel([1, 2], async (hit) => {
    const { tasks, effects, text } = await act('effectful', { point, hit })

    const [killed, other] = hit === 1 ? tasks : tasks.toReversed()
    expect(killed?.state).toBe(state)
    expect(effects.filter((key) => key === killed?.id)).toHaveLength(seen)
    expect(other?.state).toBe('finished')
    expect(text.includes('It may or may not have taken effect.')).toBe(state === 'uncertain')
  })
})

test.each(WINDOW)('R-7: killed at %s, what may be repeated is, with the same key', async (point) => {
  const all = EFFECTS.slice(0, 2).flatMap((effect) => [1, 2].map((hit) => ({ effect, hit })))
  const crossed = all.filter(({ effect, hit }) => (effect === 'pure') === (hit === 1))

  await inParallel(isFull ? all : crossed, async ({ effect, hit }) => {
    const { tasks, effects } = await act(effect, { point, hit })

    expect(tasks.map(({ state }) => state)).toEqual(['finished', 'finished'])
    expect(new Set(effects)).toEqual(new Set(tasks.map(({ id }) => id)))
    expect(effects.length).toBeLessThanOrEqual(3)
  })
})

test(`R-7: killed at random moments, ${KILLS} times in all`, async () => {
  const first = firstSeed()
  console.info(`R-7 begins with LEGATE_SEED=${first}`)

  await inParallel(seeds(first), async (seed) => {
    const random = seededRandom(seed)
    const effect = EFFECTS[seed % EFFECTS.length] ?? 'effectful'

    const { effects } = await act(effect, { afterMs: random() * 120 }).catch((error: unknown) => {
      throw new Error(`repeat it with LEGATE_SEED=${seed}`, { cause: error })
    })

    if (effect === 'effectful') expect({ seed, keys: new Set(effects).size }).toEqual({ seed, keys: effects.length })
  })

  figure('R-7', String(totals))
})

function* seeds(first: number): Generator<number> {
  for (let seed = first; totals.kills < KILLS; seed++) yield seed
}

interface Acted {
  /** The two calls, in order. */
  readonly tasks: readonly Node[]
  /** The keys of the effects that were seen outside. */
  readonly effects: readonly string[]
  readonly text: string
}

async function act(role: Effect, kill: Kill): Promise<Acted> {
  const test = new CrashCase({ program, counter, role })
  await test.runAndKill(kill)
  await test.runToEnd()
  const effects = test.evidence().effects ?? []
  const found = test.conclude()
  totals.add(found)
  return {
    tasks: nodesOf(found).filter(({ kind }) => kind === 'task'),
    effects: effects.filter(({ name }) => name === 'act').map(({ key }) => key),
    text: String(nodesOf(found).at(-1)?.output.content ?? ''),
  }
}

function nodesOf({ trees }: Aftermath): Node[] {
  const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
  return nodes.toSorted((a, b) => a.ordinal - b.ordinal)
}
