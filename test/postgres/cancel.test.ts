import { describe, expect, test } from 'vitest'
import { createRuntime } from '../../src/core/runtime/runtime.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { Chance } from '../support/chance.ts'
import { cancelMany, expectNothingOpen, Garden, running, timeAt, timesIn } from '../support/garden.ts'
import { noPostgres, usePostgres } from '../support/postgres.ts'
import { until } from '../support/process.ts'

const SEED = Number(process.env['LEGATE_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const CANCELS = isFull ? 300 : 4
/** A second is measured where the full figures are; here other tests run beside it. */
const LONGEST_MS = isFull ? 1_000 : 15_000

describe.skipIf(noPostgres !== undefined)('R-9: a 3x5 tree on PostgreSQL', async () => {
  const url = noPostgres === undefined ? (await usePostgres()).url() : ''

  test('ends within a second wherever it is cancelled, and nothing of it is left', async () => {
    const runtime = createRuntime({ store: postgresStore(url), engine: { sweepMs: 1_000, graceMs: 5_000 } })
    const garden = new Garden(new Chance(SEED))

    const took = await cancelMany(runtime, garden, CANCELS).catch((error: unknown) => {
      throw new Error(`seed ${SEED}`, { cause: error })
    })

    const times = timesIn(took)
    figure('R-9 on PostgreSQL', `${CANCELS} cancels, ${garden.programs} programs: ${times}, 0 left`)
    expect(timeAt(took, 0.99), `seed ${SEED}: ${times}`).toBeLessThan(LONGEST_MS)
    await expectNothingOpen(runtime.store)
    await until('the programs to be gone', () => running(garden.mark).length === 0)
    await runtime.close()
  })
})
