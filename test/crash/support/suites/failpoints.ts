import { type Aftermath, crash, FAILPOINTS, type KillPoint } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { figure } from '../figure.ts'
import { isFull } from '../full.ts'
import { inParallel } from '../parallel.ts'
import { Totals } from '../totals.ts'
import { caseOptions, isSmall, type SuitePlace } from './place.ts'

const PROGRAMS = ['delegate', 'limits', 'talk', 'stop', 'cancel', 'tries', 'background', 'eager']
/** How many points of one program a sample kills at. */
const SAMPLE = 5

/** a process is killed at every failpoint, and at every one of the recovery. */
export function failpointSuite(place: SuitePlace): void {
  const killedAt = new Set<string>()
  const totals = new Totals()
  const programs = isSmall(place) ? PROGRAMS.slice(0, 1) : PROGRAMS

  /** Every point that no program was killed at yet, and of the rest each twentieth. */
  const newAndSome = (points: readonly KillPoint[]) =>
    points.filter(({ point }, at) => !killedAt.has(point) || at % 20 === 0)

  /** Every point that no program was killed at yet, and the one in the middle. */
  const newAndMiddle = (points: readonly KillPoint[]) => {
    const middle = Math.floor(points.length / 2)
    return points.filter(({ point }, at) => !killedAt.has(point) || at === middle)
  }

  // A second try would leave out the points that the first one has killed at.
  describe.each(programs)('%s', { retry: 0 }, (name) => {
    let undisturbed: readonly string[] | undefined
    let richest: Recovered | undefined
    const run = async (kills: readonly KillPoint[]): Promise<Aftermath> => {
      const found = await crash(caseOptions(place, name), kills)
      totals.add(found)
      for (const point of lastPoints(found)) killedAt.add(point)
      const ends = endsOf(found)
      undisturbed ??= ends
      expect(ends).toEqual(undisturbed)
      return found
    }

    test('ends the same after a kill at any point', async () => {
      const all = pointsOf(await run([]), 0)
      const points = chosen(all, place, newAndSome)

      const cases = await inParallel(points, async (kill) => ({ kill, recovery: pointsOf(await run([kill]), 1) }))

      richest = cases.reduce((most, one) => (richness(one) > richness(most) ? one : most))
      expect(all.length).toBeGreaterThan(10)
    })

    test('ends the same after another kill at any point of the recovery', async () => {
      if (richest === undefined) throw new Error('no recovery is known')
      const { kill, recovery } = richest
      const points = chosen(recovery, place, newAndMiddle)

      await inParallel(points.slice(0, isSmall(place) ? 1 : points.length), (again) => run([kill, again]))
    })
  })

  test('every kind of commit was the last thing before a kill, and the first thing not done', () => {
    figure(`R-1${place.on}`, `${killedAt.size} failpoints, ${totals}`)

    expect(killedAt.size).toBeGreaterThan(SAMPLE - 2)
    if (!isSmall(place)) expect(FAILPOINTS.filter((point) => !killedAt.has(point))).toEqual([])
  })
}

type Choose = (points: readonly KillPoint[]) => readonly KillPoint[]

/** All points where the figures are full, on a sample the first times of each; else what `choose` leaves of them. */
function chosen(points: readonly KillPoint[], place: SuitePlace, choose: Choose): readonly KillPoint[] {
  if (isFull) return place.isSample ? firstTimes(points) : points
  const first = firstTimes(points)
  if (!place.isSample) return choose(first)
  const step = Math.max(1, Math.floor(first.length / SAMPLE))
  return first.filter((_, at) => at % step === step - 1)
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
