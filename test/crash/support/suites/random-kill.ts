import { type Aftermath, CrashCase, type KillMoment } from 'legate/testing'
import { expect, test } from 'vitest'
import { figure } from '../figure.ts'
import { isFull } from '../full.ts'
import { inParallel } from '../parallel.ts'
import { firstSeed, seededRandom } from '../random.ts'
import { Totals } from '../totals.ts'
import { caseOptions, isSmall, type SuitePlace } from './place.ts'

/** About how long an undisturbed worker lives: until it is ready, and from then on. */
const START_MS = 150
const LIFE_MS = 300

/** processes are killed at random moments. */
export function randomKillSuite(place: SuitePlace): void {
  const least = killsOf(place)

  test(`R-2: nothing is lost, doubled or left open after ${least} kills at random moments`, async () => {
    const totals = new Totals()
    const first = firstSeed()
    console.info(`R-2${place.on} begins with LEGATE_SEED=${first}`)

    await inParallel(
      seeds(first, () => totals.kills < least),
      async (seed) => {
        const found = await oneCase(place, seed).catch((error: unknown) => {
          // Said at once: the report comes when all suites have ended, and that may be an hour later.
          console.error(`R-2${place.on} with LEGATE_SEED=${seed}:`, error)
          throw new Error(`repeat it with LEGATE_SEED=${seed}`, { cause: error })
        })
        totals.add(found)
      },
    )

    figure(`R-2${place.on}`, `at random moments: ${totals}`)
    expect(totals.kills).toBeGreaterThanOrEqual(least)
  })
}

function killsOf(place: SuitePlace): number {
  if (isFull) return place.isSample ? 1_000 : 10_000
  return isSmall(place) ? 6 : 24
}

/** One seed per case, until there were enough kills. */
function* seeds(first: number, isMore: () => boolean): Generator<number> {
  for (let seed = first; isMore(); seed++) yield seed
}

/** Up to four times a worker, or two at once, are killed and started again. */
async function oneCase(place: SuitePlace, seed: number): Promise<Aftermath> {
  const random = seededRandom(seed)
  const test = new CrashCase(caseOptions(place, 'mixed'))
  const roles = random() < 0.5 ? ['main'] : ['main', 'help']
  for (let round = 1 + Math.floor(random() * 4); round > 0; round--) {
    const moments = roles.map(() => momentOf(random))
    await Promise.all(moments.map((moment, at) => test.kill(test.start({ role: roles[at] ?? '' }), moment)))
    await test.checkStanding()
  }
  await test.runToEnd()
  return test.conclude()
}

/** Now and then before it is ready: while it opens the database, or makes it. */
function momentOf(random: () => number): KillMoment {
  return random() < 0.1 ? { afterMs: random() * START_MS, from: 'start' } : { afterMs: random() * LIFE_MS }
}
