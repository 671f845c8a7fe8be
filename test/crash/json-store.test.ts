import { type Aftermath, CrashCase, crash, FAILPOINTS, type KillPoint } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'

const counter = await useCounter()

describe.each(isFull ? ['delegate', 'sessions'] : ['sessions'])('%s on a JSON store', async (name) => {
  const program = programFile(name)

  test('I3: ends the same after a kill at any point, with every document whole', async () => {
    const undisturbed = await crash({ program, counter, store: 'json' }, [])
    const points = pointsOf(undisturbed)

    const found = await inParallel(isFull ? points : fewOf(points), (kill) =>
      crash({ program, counter, store: 'json' }, [kill]),
    )

    expect(points.length).toBeGreaterThan(20)
    for (const one of found) expect(endsOf(one)).toEqual(endsOf(undisturbed))
  })

  test('the same after kills at moments that nobody chose', async () => {
    const moments = Array.from({ length: isFull ? 200 : 3 }, () => Math.random() * 80)

    await inParallel(moments, async (afterMs) => {
      const one = new CrashCase({ program, counter, store: 'json' })
      await one.runAndKill({ afterMs })
      await one.runAndKill({ afterMs: afterMs / 2 })
      await one.runToEnd()
      await one.conclude()
    })
  })
})

/** How every run ended. */
function endsOf({ trees }: Aftermath): string[] {
  return trees
    .flatMap(({ turns, conversations }) =>
      [...turns.values()].map(({ conversationId, outcome }) => {
        return `${conversations.get(conversationId)?.path.join('/')} ${outcome?.status}`
      }),
    )
    .toSorted()
}

/** The failpoints that the only worker of a case passed, each as often as it did. */
function pointsOf({ lines }: Aftermath): KillPoint[] {
  return lines.flatMap((line) => {
    if (line.type !== 'pass' || !FAILPOINTS.some((known) => known === line.point)) return []
    return [{ point: line.point, hit: line.hit }]
  })
}

/** The last of each kind that matters to a session: then most is there to be lost. */
function fewOf(points: readonly KillPoint[]): KillPoint[] {
  const last = new Map(points.map((point) => [point.point, point]))
  return [...last.values()].filter(({ point }) => /:(?:spawn|result|end)$/.test(point))
}
