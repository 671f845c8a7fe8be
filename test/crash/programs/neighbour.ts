import { closeSync, openSync } from 'node:fs'
import { agent } from 'legate'
import { crashWorker, tellTest, workerRole } from 'legate/testing'
import { allRounds, call, counted, QUICK, roundsOf, steppingModel, until } from './parts.ts'

/** One process works at two calls, and another that has the same code looks on: a neighbour that sees little, or has nothing left. */
const worker = agent({
  name: 'worker',
  instructions: 'Work.',
  tools: { pay: counted('pay', 'effectful', { lastsMs: 1_500 }), look: counted('look', 'pure', { lastsMs: 1_500 }) },
  model: steppingModel({ calls: [call('pay'), call('look')] }),
})

await crashWorker({
  options: { agents: [worker], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if (workerRole() === 'works') return void (await runtime.run(worker, 'Go.', { title: 'neighbour' }).result)
    const held = workerRole() === 'starves' ? takeAllDescriptors() : []
    tellTest('looks on')
    await until(async () => (await allRounds(store, 'neighbour')).find(({ outcome }) => outcome !== null))
    for (const descriptor of held) closeSync(descriptor)
    for (const { id } of await roundsOf(store, 'neighbour')) await (await runtime.attach(id)).result
  },
})

function takeAllDescriptors(): number[] {
  const held: number[] = []
  for (;;) {
    try {
      held.push(openSync('/dev/null', 'r'))
    } catch {
      return held
    }
  }
}
