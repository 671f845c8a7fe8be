import { describe, expect, test } from 'vitest'
import { useCounter } from '../crash/support/counter.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { noPostgres, usePostgres } from '../support/postgres.ts'
import { CrewCase, quantile, told } from './support/crew.ts'

const WORKERS = isFull ? 10 : 2
const JOBS = isFull ? 10_000 : 40
/** So many runs are open at once. More would only wait for the two processors that all these processes share. */
const WIDTH = isFull ? 30 : 20
const WARM_UP = isFull ? 500 : 0
const SECOND_MS = 1_000

describe.skipIf(noPostgres !== undefined)('load', async () => {
  const url = noPostgres === undefined ? (await usePostgres({ settings: ['max_connections=200'] })).url() : ''
  const counter = await useCounter()

  test(`${WORKERS} processes work on ${JOBS} conversations three levels deep, which others begin, approve and cancel`, async () => {
    const crew = new CrewCase({ counter, url }, { jobs: JOBS, leaseMs: 15_000, sweepMs: 1_000 })
    const work = Array.from({ length: WORKERS }, () => crew.start({ begins: false, reads: 1 }))
    // Cancels are measured with processes that work, not with those that are about to.
    await crew.untilAlive(WORKERS)
    const began = performance.now()
    const begins = crew.start({ workers: 0, width: WIDTH, warmUp: WARM_UP })

    const found = await crew.check([begins, ...work])

    const seconds = Math.round((performance.now() - began) / SECOND_MS)
    const { cancels } = found
    const times = `p50 ${quantile(cancels, 0.5)} ms, p99 ${quantile(cancels, 0.99)} ms, longest ${quantile(cancels, 1)} ms`
    expect(found.wrong).toEqual([])
    expect(cancels.length).toBe((JOBS - WARM_UP) / 5)
    figure('D-7 on PostgreSQL', `${WORKERS} workers, ${WIDTH} open at once: ${told(found)}, ${seconds} s`)
    figure('D-7, cancels', `${cancels.length} by another process: ${times}`)
    // A second is measured where the full figures are; here other tests run beside it.
    if (isFull) expect(quantile(cancels, 0.99), times).toBeLessThanOrEqual(SECOND_MS)
    await crew.crash.drop()
  })
})
