import { type Aftermath, crash, FAILPOINTS, type KillPoint } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { buildProgram } from './support/build.ts'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { inParallel } from './support/parallel.ts'

const counter = await useCounter()
const killedAt = new Set<string>()
const totals = { kills: 0, events: 0, uncertain: 0 }
const started = performance.now()

describe.each(['delegate', 'talk', 'stop'])('%s', async (name) => {
  const program = await buildProgram(name)
  const run = async (kills: readonly KillPoint[]): Promise<Aftermath> => {
    const found = await crash({ program, counter }, kills)
    totals.kills += found.kills
    totals.events += found.events
    totals.uncertain += found.uncertain
    for (const point of lastPoints(found)) killedAt.add(point)
    return found
  }
  let richest: Recovered | undefined

  test('is the same after a kill at any point', async () => {
    const undisturbed = await run([])
    const points = pointsOf(undisturbed, 0)

    const cases = await inParallel(points, async (kill) => ({ kill, recovery: pointsOf(await run([kill]), 1) }))

    richest = cases.reduce((most, one) => (richness(one) > richness(most) ? one : most))
    expect(points.length).toBeGreaterThan(20)
  })

  test('is the same after another kill at any point of the recovery', async () => {
    if (richest === undefined) throw new Error('no recovery is known')
    const { kill, recovery } = richest

    await inParallel(recovery, (again) => run([kill, again]))
  })
})

/** A kill, and what the worker passed that went on after it. */
interface Recovered {
  readonly kill: KillPoint
  readonly recovery: readonly KillPoint[]
}

/** Many different things happen in it, again and again. */
function richness({ recovery }: Recovered): number {
  const recovered = recovery.filter(({ point }) => point === 'after:recover').length
  return recovered === 0 ? 0 : new Set(recovery.map(({ point }) => point)).size + recovered
}

test('every kind of commit was the last thing before a kill, and the first thing not done', () => {
  const seconds = Math.round((performance.now() - started) / 1000)
  figure(
    `R-1 ${totals.kills} kills at ${killedAt.size} failpoints, ${totals.events} events, 0 lost, 0 duplicated, ${totals.uncertain} uncertain (all reported), ${seconds} s`,
  )

  expect(FAILPOINTS.filter((point) => !killedAt.has(point))).toEqual([])
})

/** The points that the n-th worker of a case passed, each as often as it did. */
function pointsOf({ lines }: Aftermath, worker: number): KillPoint[] {
  const pid = [...new Set(lines.map((line) => line.pid))][worker]
  return lines.flatMap((line) =>
    line.type === 'pass' && line.pid === pid ? [{ point: line.point, hit: line.hit }] : [],
  )
}

/** Where each worker of a case was killed: its last line. */
function lastPoints({ lines, exits }: Aftermath): string[] {
  const killed = exits.filter(({ signal }) => signal === 'SIGKILL')
  return killed.flatMap(({ pid }) => {
    const last = lines.findLast((line) => line.pid === pid)
    return last?.type === 'pass' ? [last.point] : []
  })
}
