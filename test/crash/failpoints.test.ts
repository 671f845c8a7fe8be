import { type Aftermath, crash, FAILPOINTS, type KillPoint } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'
import { Totals } from './support/totals.ts'

const counter = await useCounter()
const killedAt = new Set<string>()
const totals = new Totals()

const PROGRAMS = ['delegate', 'limits', 'talk', 'stop', 'cancel', 'tries', 'background', 'eager']

// A second try would leave out the points that the first one has killed at.
describe.each(PROGRAMS)('%s', { retry: 0 }, async (name) => {
  const program = programFile(name)
  const run = async (kills: readonly KillPoint[]): Promise<Aftermath> => {
    const found = await crash({ program, counter }, kills)
    totals.add(found)
    for (const point of lastPoints(found)) killedAt.add(point)
    const ends = endsOf(found)
    undisturbed ??= ends
    expect(ends).toEqual(undisturbed)
    return found
  }
  let undisturbed: readonly string[] | undefined
  let richest: Recovered | undefined

  test('reliability L1-L9: ends the same after a kill at any point', async () => {
    const all = pointsOf(await run([]), 0)
    const points = isFull ? all : newAndSome(firstTimes(all))

    const cases = await inParallel(points, async (kill) => ({ kill, recovery: pointsOf(await run([kill]), 1) }))

    richest = cases.reduce((most, one) => (richness(one) > richness(most) ? one : most))
    expect(all.length).toBeGreaterThan(10)
  })

  test('ends the same after another kill at any point of the recovery', async () => {
    if (richest === undefined) throw new Error('no recovery is known')
    const { kill, recovery } = richest
    const points = isFull ? recovery : newAndMiddle(firstTimes(recovery))

    await inParallel(points, (again) => run([kill, again]))
  })
})

/** Every point that no program was killed at yet, and of the rest each twentieth. */
function newAndSome(points: readonly KillPoint[]): KillPoint[] {
  return points.filter(({ point }, at) => !killedAt.has(point) || at % 20 === 0)
}

/** Every point that no program was killed at yet, and the one in the middle. */
function newAndMiddle(points: readonly KillPoint[]): KillPoint[] {
  const middle = Math.floor(points.length / 2)
  return points.filter(({ point }, at) => !killedAt.has(point) || at === middle)
}

function firstTimes(points: readonly KillPoint[]): KillPoint[] {
  return points.filter(({ hit }) => hit === 1)
}

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
  figure('R-1', `${killedAt.size} failpoints, ${totals}`)

  expect(FAILPOINTS.filter((point) => !killedAt.has(point))).toEqual([])
})

/** How every run of every tree ended. How many turns it takes to tell of background children depends on when they end. */
function endsOf({ trees }: Aftermath): string[] {
  const ends = trees.flatMap(({ turns, conversations }) =>
    [...turns.values()].flatMap(({ conversationId, outcome, wokenBy }) => {
      const path = conversations.get(conversationId)?.path.join('/')
      return wokenBy === null ? [`${path} ${outcome?.status}`] : []
    }),
  )
  return ends.toSorted()
}

/** The failpoints that the n-th worker of a case passed, each as often as it did. */
function pointsOf({ lines }: Aftermath, worker: number): KillPoint[] {
  const pid = [...new Set(lines.map((line) => line.pid))][worker]
  return lines.flatMap((line) => {
    if (line.type !== 'pass' || line.pid !== pid || !FAILPOINTS.some((known) => known === line.point)) return []
    return [{ point: line.point, hit: line.hit }]
  })
}

/** Where each worker of a case was killed: its last line. */
function lastPoints({ lines, exits }: Aftermath): string[] {
  const killed = exits.filter(({ signal }) => signal === 'SIGKILL')
  return killed.flatMap(({ pid }) => {
    const last = lines.findLast((line) => line.pid === pid)
    return last?.type === 'pass' ? [last.point] : []
  })
}
