import { CrashCase } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { programFile } from './support/program.ts'

const program = programFile('loop')
const counter = await useCounter()

/** The first try, and one more for each recovery. */
const TRIES = 6

test.each(['pure', 'idempotent'])(
  'a %s tool that kills its process is given up, and the model is told',
  async (role) => {
    const { kills, turn, nodes, text } = await loop(role)

    expect(kills).toBe(TRIES)
    expect(nodes.find(({ kind }) => kind === 'task')).toMatchObject({
      state: 'errored',
      recoveries: TRIES,
      failure: { code: 'dead_letter' },
    })
    expect(turn?.outcome).toMatchObject({ status: 'completed', uncertain: [] })
    expect(text).toContain(`I was told: Error: Given up after its process was lost ${TRIES} times`)
  },
)

test('a model call that kills its process is given up, and the outcome says so', async () => {
  const { kills, turn } = await loop('model')

  expect(kills).toBe(TRIES)
  expect(turn?.outcome).toMatchObject({ status: 'failed', error: { code: 'dead_letter' } })
})

test('I4: an effectful tool that kills its process is uncertain at once', async () => {
  const { kills, turn, nodes, text } = await loop('effectful')

  expect(kills).toBe(1)
  const task = nodes.find(({ kind }) => kind === 'task')
  expect(task?.state).toBe('uncertain')
  expect(turn?.outcome).toMatchObject({ status: 'completed', uncertain: [task?.id] })
  expect(text).toContain('It may or may not have taken effect.')
})

async function loop(role: string) {
  const test = new CrashCase({ program, counter, role })
  await test.runToEnd()
  const { kills, trees } = await test.conclude()
  const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
  const [turn] = trees.flatMap((tree) => [...tree.turns.values()])
  return { kills, turn, nodes, text: String(nodes.at(-1)?.output.content ?? '') }
}
