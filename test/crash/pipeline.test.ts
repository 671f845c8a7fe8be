import { CrashCase, type KillPoint } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { programFile } from './support/program.ts'

const counter = await useCounter()

interface Order {
  /** How many model calls are answered before the others hang. */
  readonly answers: number
  readonly reversed?: boolean
}

/** Runs 40 items through two stages, is killed at the point, goes on in the other order, and tells who was asked when. */
async function run(first: Order, killAt: KillPoint, then: Order) {
  const place = new CrashCase({ program: programFile('pipeline'), counter, maxWorkers: 4 })
  const killed = await place.ended(place.start({ role: JSON.stringify(first), killAt }))
  expect(killed.signal).toBe('SIGKILL')
  await place.checkStanding()
  const before = callsIn(place)
  await place.ended(place.start({ role: JSON.stringify(then) }))
  const all = callsIn(place)
  const { trees } = await place.conclude()
  const turns = trees.flatMap((tree) => [...tree.turns.values()])
  const own = turns.find(({ conversationId, rootId }) => conversationId === rootId)
  return { outcome: own?.outcome, children: turns.length - 1, before, after: all.slice(before.length) }
}

/** Who was asked what, in order. */
function callsIn(place: CrashCase): string[] {
  return place.evidence().lines.flatMap((line) => {
    return line.type === 'pass' && line.point.startsWith('asks: ') ? [line.point] : []
  })
}

const ALL = { answers: 1_000 }

test('I4: a pipeline without a barrier that is killed after 53 of its 80 children asks for 27 more, and for none of the 53 again', async () => {
  const { outcome, children, before, after } = await run({ answers: 53 }, { point: 'all:asked', hit: 1 }, ALL)
  expect([outcome?.status, children]).toEqual(['completed', 80])
  expect([before.length, after.length]).toEqual([62, 27])
  const ended = new Set(before.slice(0, 53))
  expect(after.filter((key) => ended.has(key))).toEqual([])
})

test('code that makes its 80 calls in another order when it runs again asks for none of them again', async () => {
  const { outcome, children, before, after } = await run(
    ALL,
    { point: 'lead:done', hit: 1 },
    { ...ALL, reversed: true },
  )
  expect([outcome?.status, children, before.length, after]).toEqual(['completed', 80, 80, []])
})

test('five equal calls are five children, and after kill -9 each call finds its own: the two that ended are not asked again', async () => {
  const place = new CrashCase({ program: programFile('equals'), counter })
  const killed = await place.ended(place.start({ role: '2', killAt: { point: 'all:asked', hit: 1 } }))
  expect(killed.signal).toBe('SIGKILL')
  await place.checkStanding()
  const before = callsIn(place)
  await place.ended(place.start({ role: '1000' }))
  const after = callsIn(place).slice(before.length)
  const { trees } = await place.conclude()
  const turns = trees.flatMap((tree) => [...tree.turns.values()])
  const own = turns.find(({ conversationId, rootId }) => conversationId === rootId)

  expect(new Set(before).size).toBe(5)
  expect(after.toSorted()).toEqual(before.slice(2).toSorted())
  expect(own?.outcome).toMatchObject({ status: 'completed', children: 5 })
  const answer = trees.flatMap((tree) => [...tree.nodes.values()]).find(({ id }) => id === own?.outcome?.answerNodeId)
  const told = String(answer?.output.content).split(' ')
  expect(told.map((id) => `asks: ${id}`).toSorted()).toEqual(before.toSorted())
})
