import { CrashCase, type TreeRows } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { programFile } from './support/program.ts'

const program = programFile('keys')
const counter = await useCounter()
const ORDERS = 12

test('two processes that start the same keys at the same moment make one run of each', async () => {
  const test = new CrashCase({ program, counter })
  const role = `${Date.now() + 1_500}/${ORDERS}`
  const workers = [test.start({ role }), test.start({ role })]
  const exits = []
  for (const worker of workers) exits.push(await test.ended(worker))

  expect(exits).toMatchObject([
    { code: 0, errors: '' },
    { code: 0, errors: '' },
  ])
  const calls = test.evidence().effects?.filter(({ name }) => name === 'model') ?? []
  const { lines, trees } = await test.conclude()
  expectOneOfEach(trees)
  expect(calls).toHaveLength(ORDERS)
  // The store took one start of each: the other was refused, and found the run.
  const makers = lines.filter((line) => line.type === 'commit' && line.kind === 'say').map(({ pid }) => pid)
  expect(makers).toHaveLength(ORDERS)
})

test.each([
  ['between the commit and the answer', 'after:say'],
  ['before the commit', 'before:say'],
  ['before the end', 'before:end'],
])('a process that is killed %s has started nothing twice when it starts again', async (_, point) => {
  const test = new CrashCase({ program, counter })
  const role = `0/${ORDERS}`
  for (const hit of [1, 2, 3]) {
    const { signal } = await test.ended(test.start({ role, killAt: { point, hit } }))
    expect(signal).toBe('SIGKILL')
    await test.checkStanding()
  }
  expect(await test.ended(test.start({ role }))).toMatchObject({ code: 0, errors: '' })

  expectOneOfEach((await test.conclude()).trees)
})

/** Half of the orders are conversations of their own, the other half are turns of one. */
function expectOneOfEach(trees: readonly TreeRows[]): void {
  const turns = trees.flatMap((tree) => [...tree.turns.values()])
  const orders = Array.from({ length: ORDERS }, (_, n) => `order ${n}`)
  expect(turns.map(({ input }) => input).toSorted()).toEqual(orders.toSorted())
  expect(turns.every(({ outcome }) => outcome?.status === 'completed')).toBe(true)
  expect(trees).toHaveLength(ORDERS / 2 + 1)
}
