import { crash, type Kill } from 'legate/testing'
import { expect, test } from 'vitest'
import { buildProgram } from './support/build.ts'
import { useCounter } from './support/counter.ts'
import { figure, isFull } from './support/figure.ts'
import { inParallel } from './support/parallel.ts'
import { firstSeed, seededRandom } from './support/random.ts'
import { Totals } from './support/totals.ts'

const KILLS = isFull ? 10_000 : 200
/** About how long an undisturbed worker lives once it is ready. */
const LIFE_MS = 300

const program = await buildProgram('mixed')
const counter = await useCounter()

test(`R-2: nothing is lost, doubled or left open after ${KILLS} kills at random moments`, async () => {
  const totals = new Totals()
  const first = firstSeed()
  console.info(`R-2 begins with LEGATE_SEED=${first}`)

  await inParallel(seeds(first, totals), async (seed) => {
    const found = await crash({ program, counter }, killsOf(seed)).catch((error: unknown) => {
      throw new Error(`repeat it with LEGATE_SEED=${seed}`, { cause: error })
    })
    totals.add(found)
  })

  figure(`R-2 ${totals}`)
  expect(totals.kills).toBeGreaterThanOrEqual(KILLS)
})

/** One seed per case, until there were enough kills. */
function* seeds(first: number, totals: Totals): Generator<number> {
  for (let seed = first; totals.kills < KILLS; seed++) yield seed
}

/** Up to five kills, one after the other. */
function killsOf(seed: number): Kill[] {
  const random = seededRandom(seed)
  return Array.from({ length: 1 + Math.floor(random() * 5) }, () => ({ afterMs: random() * LIFE_MS }))
}
