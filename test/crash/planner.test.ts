import { crash, FAILPOINTS, type KillPoint } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'

const counter = await useCounter()
const program = programFile('planner')

/** The nodes of the lead's run, and what it said. */
async function run(kills: readonly KillPoint[]) {
  const { trees, lines } = await crash({ program, counter }, kills)
  const nodes = trees.flatMap(({ nodes: all, conversations }) =>
    [...all.values()].filter(({ conversationId }) => conversations.get(conversationId)?.path.length === 1),
  )
  const said = nodes
    .toSorted((a, b) => a.ordinal - b.ordinal)
    .map(({ kind, purpose, output }) => {
      return [purpose ?? kind, purpose === 'answer' ? output.content : null]
    })
  const points = lines.flatMap((line) =>
    line.type === 'pass' && FAILPOINTS.some((known) => known === line.point)
      ? [{ point: line.point, hit: line.hit }]
      : [],
  )
  return { said, points }
}

test('plan, tool and answer end the same, whenever the process is killed', async () => {
  const undisturbed = await run([])

  expect(undisturbed.said).toEqual([
    ['user_message', null],
    ['plan', null],
    ['task', null],
    ['plan', null],
    ['task', null],
    ['plan', null],
    ['answer', 'Both were used.'],
  ])
  const kills = isFull ? undisturbed.points : undisturbed.points.filter((_, at) => at % 6 === 0)
  const ends = await inParallel(kills, (kill) => run([kill]))

  for (const { said } of ends) expect(said).toEqual(undisturbed.said)
  expect(undisturbed.points.length).toBeGreaterThan(10)
})
