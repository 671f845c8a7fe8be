import { crash, FAILPOINTS, type KillPoint } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'

const counter = await useCounter()
const program = programFile('brief')

/** What every child was told, in the order of the children. */
async function run(kills: readonly KillPoint[]) {
  const { trees, lines } = await crash({ program, counter }, kills)
  const told = trees.flatMap(({ nodes, conversations }) =>
    [...nodes.values()]
      .filter(({ kind, purpose }) => kind === 'developer_message' || purpose === 'brief')
      .map(({ conversationId, output, input }) => {
        const path = conversations.get(conversationId)?.path.join('/')
        return `${path}: ${JSON.stringify(output.content ?? input.content).replace(/[0-9a-f-]{36}|\d{4}-[^"]*Z/g, '')}`
      }),
  )
  const points = lines.flatMap((line) =>
    line.type === 'pass' && FAILPOINTS.some((known) => known === line.point)
      ? [{ point: line.point, hit: line.hit }]
      : [],
  )
  return { told: told.toSorted(), points }
}

test('a briefing that was recorded is not made again, whenever the process is killed', async () => {
  const undisturbed = await run([])

  expect(undisturbed.told.filter((text) => text.includes('They talk of crashes.'))).toHaveLength(3)
  const kills = isFull ? undisturbed.points : undisturbed.points.filter((_, at) => at % 8 === 0)
  const ends = await inParallel(kills, (kill) => run([kill]))

  for (const { told } of ends) expect(told).toEqual(undisturbed.told)
  expect(undisturbed.points.length).toBeGreaterThan(20)
})

test('a program that is not there, and a point that does not exist, are refused', async () => {
  await expect(crash({ program: 'nope.mjs' }, [])).rejects.toThrow(
    expect.objectContaining({ code: 'invalid_input', message: 'crash(): there is no program "nope.mjs".' }),
  )
  await expect(crash({ program, counter }, [{ point: 'after:spwan', hit: 1 }])).rejects.toThrow(
    /^crash\(\): no worker passes a point "after:spwan"\. There are after:spawn, /,
  )
  await expect(crash({ program, counter }, [{ point: 'after:spawn', hit: 0 }])).rejects.toThrow('hit must be')
})
