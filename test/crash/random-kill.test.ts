import { type Aftermath, CrashCase, type KillMoment } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'
import { firstSeed, seededRandom } from './support/random.ts'
import { Totals } from './support/totals.ts'

const KILLS = isFull ? 10_000 : 40
/** About how long an undisturbed worker lives: until it is ready, and from then on. */
const START_MS = 150
const LIFE_MS = 300

const program = programFile('mixed')
const counter = await useCounter()

test(`R-2, reliability L1-L9: nothing is lost, doubled or left open after ${KILLS} kills at random moments`, async () => {
  const totals = new Totals()
  const first = firstSeed()
  console.info(`R-2 begins with LEGATE_SEED=${first}`)

  await inParallel(seeds(first, totals), async (seed) => {
    const found = await oneCase(seed).catch((error: unknown) => {
      // Said at once: the report comes when all suites have ended, and that may be an hour later.
      console.error(`R-2 with LEGATE_SEED=${seed}:`, error)
      throw new Error(`repeat it with LEGATE_SEED=${seed}`, { cause: error })
    })
    totals.add(found)
  })

  figure('R-2', `at random moments: ${totals}`)
  expect(totals.kills).toBeGreaterThanOrEqual(KILLS)
})

/** One seed per case, until there were enough kills. */
function* seeds(first: number, totals: Totals): Generator<number> {
  for (let seed = first; totals.kills < KILLS; seed++) yield seed
}

/** Up to four times a worker, or two at once, are killed and started again. */
async function oneCase(seed: number): Promise<Aftermath> {
  const random = seededRandom(seed)
  const test = new CrashCase({ program, counter })
  const roles = random() < 0.5 ? ['main'] : ['main', 'help']
  for (let round = 1 + Math.floor(random() * 4); round > 0; round--) {
    const moments = roles.map(() => momentOf(random))
    await Promise.all(moments.map((moment, at) => test.kill(test.start({ role: roles[at] ?? '' }), moment)))
    test.checkStanding()
  }
  await test.runToEnd()
  return test.conclude()
}

/** Now and then before it is ready: while it opens the database, or makes it. */
function momentOf(random: () => number): KillMoment {
  return random() < 0.1 ? { afterMs: random() * START_MS, from: 'start' } : { afterMs: random() * LIFE_MS }
}
