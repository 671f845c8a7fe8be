import { chmodSync } from 'node:fs'
import path from 'node:path'
import { CrashCase, type KillPoint } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { programFile } from './support/program.ts'
import { HIDDEN, noHiding, startedBy, type Wrapper, withDescriptors } from './support/started-by.ts'

const counter = await useCounter()
const program = programFile('neighbour')
const why = noHiding()

// The neighbour may be another user.
for (const folder of [path.dirname(program), path.dirname(counter.address)]) chmodSync(folder, 0o755)
chmodSync(counter.address, 0o777)

/** A process works while a neighbour with the same code sweeps the same store every 20 ms. */
async function workBeside(role: string, wrapper: Wrapper, killAt?: KillPoint) {
  const pair = new CrashCase({ program, counter, timeoutMs: 60_000 })
  chmodSync(pair.folder, 0o777)
  const neighbour = startedBy(wrapper, () => pair.start({ role }))
  expect(await neighbour.hears('looks on')).toBe(true)
  const worker = pair.start({ role: 'works', ...(killAt === undefined ? {} : { killAt }) })
  const exits = [await pair.ended(worker), await pair.ended(neighbour)]
  const { trees } = await pair.conclude()
  const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
  const calls = nodes.filter(({ kind }) => kind === 'task')
  const [outcome] = trees.flatMap((tree) => [...tree.turns.values()].map((turn) => turn.outcome?.status))
  return { exits, outcome, calls: calls.map(({ input, state, epoch }) => [input.call?.name, state, epoch]) }
}

const UNTOUCHED = {
  exits: [expect.objectContaining({ code: 0, errors: '' }), expect.objectContaining({ code: 0, errors: '' })],
  outcome: 'completed',
  calls: [
    ['pay', 'finished', 1],
    ['look', 'finished', 1],
  ],
}

test.skipIf(why !== undefined)(
  `I4: a process that is alive keeps its work where /proc hides it from another user${why === undefined ? '' : `; ${why}`}`,
  async () => expect(await workBeside('hidden', HIDDEN)).toEqual(UNTOUCHED),
)

test.skipIf(why !== undefined)(
  'I4: a killed process is proven gone where /proc hides it: others take its work at once',
  async () => {
    const begin = performance.now()

    const { outcome, calls } = await workBeside('hidden', HIDDEN, { point: 'look:after', hit: 1 })

    // Its lease would have lasted for 15 seconds.
    expect(performance.now() - begin).toBeLessThan(12_000)
    expect([outcome, ...calls.map(([name, state]) => `${name} ${state}`)]).toEqual([
      'completed',
      'pay uncertain',
      'look finished',
    ])
  },
)

test.skipIf(process.platform === 'win32')(
  'I4: a process that has no file descriptors left takes nobody’s work',
  async () => expect(await workBeside('starves', withDescriptors(100))).toEqual(UNTOUCHED),
)
