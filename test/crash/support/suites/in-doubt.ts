import type { Effect } from 'legate'
import type { Node } from 'legate/rows'
import { type Aftermath, CrashCase, type Kill } from 'legate/testing'
import { expect, test } from 'vitest'
import { figure } from '../figure.ts'
import { isFull } from '../full.ts'
import { inParallel } from '../parallel.ts'
import { firstSeed, seededRandom } from '../random.ts'
import { Totals } from '../totals.ts'
import { caseOptions, isSmall, type SuitePlace } from './place.ts'

const EFFECTS: readonly Effect[] = ['pure', 'idempotent', 'effectful']
/** What a kill at a point leaves of an effectful call: was its effect seen outside, and what is it called? */
const WINDOW: readonly (readonly [point: string, seen: number, state: Node['state']])[] = [
  ['before:expand', 1, 'finished'],
  ['after:expand', 0, 'uncertain'],
  ['act:before', 0, 'uncertain'],
  ['act:after', 1, 'uncertain'],
  ['before:result', 1, 'uncertain'],
  ['after:result', 1, 'finished'],
]

/** what a kill around an effect leaves. */
export function inDoubtSuite(place: SuitePlace): void {
  const totals = new Totals()
  const isSampled = isSmall(place)
  const windows = isSampled ? WINDOW.filter(([point]) => point === 'act:after') : WINDOW
  const hits = isSampled ? [1] : [1, 2]
  const kills = isSampled ? 4 : killsOf(place)

  test.each(windows)('R-7: killed at %s, an effect was seen %d times and is %s', async (point, seen, state) => {
    await inParallel(hits, async (hit) => {
      const { tasks, effects, text } = await act(place, totals, { role: 'effectful', kill: { point, hit } })

      const [killed, other] = hit === 1 ? tasks : tasks.toReversed()
      expect(killed?.state).toBe(state)
      expect(effects.filter((key) => key === killed?.id)).toHaveLength(seen)
      expect(other?.state).toBe('finished')
      expect(text.includes('It may or may not have taken effect.')).toBe(state === 'uncertain')
    })
  })

  test.each(windows)('R-7: killed at %s, what may be repeated is, with the same key', async (point) => {
    const all = EFFECTS.slice(0, 2).flatMap((role) => hits.map((hit) => ({ role, hit })))
    const crossed = all.filter(({ role, hit }) => (role === 'pure') === (hit === 1))

    await inParallel(isFull ? all : crossed, async ({ role, hit }) => {
      const { tasks, effects } = await act(place, totals, { role, kill: { point, hit } })

      expect(tasks.map(({ state }) => state)).toEqual(['finished', 'finished'])
      expect(new Set(effects)).toEqual(new Set(tasks.map(({ id }) => id)))
      expect(effects.length).toBeLessThanOrEqual(3)
    })
  })

  test(`R-7: killed at random moments, ${kills} times in all`, async () => {
    const first = firstSeed()
    console.info(`R-7${place.on} begins with LEGATE_SEED=${first}`)

    await inParallel(
      seeds(first, () => totals.kills < kills),
      async (seed) => {
        const random = seededRandom(seed)
        const role = EFFECTS[seed % EFFECTS.length] ?? 'effectful'

        const { effects } = await act(place, totals, { role, kill: { afterMs: random() * 120 } }).catch(
          (error: unknown) => {
            throw new Error(`repeat it with LEGATE_SEED=${seed}`, { cause: error })
          },
        )

        if (role === 'effectful') expect({ seed, keys: new Set(effects).size }).toEqual({ seed, keys: effects.length })
      },
    )

    figure(`R-7${place.on}`, String(totals))
  })
}

/** Those at chosen points, and from there on at random moments. */
function killsOf({ isSample }: SuitePlace): number {
  if (isFull) return isSample ? 300 : 3_000
  return 32
}

function* seeds(first: number, isMore: () => boolean): Generator<number> {
  for (let seed = first; isMore(); seed++) yield seed
}

interface Acted {
  /** The two calls, in order. */
  readonly tasks: readonly Node[]
  /** The keys of the effects that were seen outside. */
  readonly effects: readonly string[]
  readonly text: string
}

interface Act {
  /** The effect of the calls. */
  readonly role: Effect
  readonly kill: Kill
}

async function act(place: SuitePlace, totals: Totals, { role, kill }: Act): Promise<Acted> {
  const test = new CrashCase({ ...caseOptions(place, 'effects'), role })
  await test.runAndKill(kill)
  await test.runToEnd()
  const effects = test.evidence().effects ?? []
  const found = await test.conclude()
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
