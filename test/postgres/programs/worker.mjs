// A process that works on the jobs of a fault test: each job is a run by a key, so that it is begun once by whoever comes first.
//   node worker.mjs '{"url", "jobs", "effects", "leaseMs"}'; descriptor 3 is the log of what was acknowledged.

import { appendFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, createRuntime, tool } from '../../../dist/index.js'
import { postgresStore } from '../../../dist/store/postgres/index.js'
import { scriptedModel } from '../../../dist/testing/index.js'

const { url, jobs, effects, leaseMs } = JSON.parse(process.argv[2] ?? '{}')

const ANYTHING = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => ({ value }),
    jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
  },
}

const pay = tool({
  description: 'Pays, and may not be repeated.',
  input: ANYTHING,
  effect: 'effectful',
  execute: async (_, { idempotencyKey }) => {
    appendFileSync(effects, `${idempotencyKey}\n`)
    await sleep(5)
    return 'paid'
  },
})

const isTold = (messages) => messages.some(({ role }) => role === 'tool')
const sub = agent({
  name: 'sub',
  instructions: 'Work.',
  tools: { pay },
  model: scriptedModel(async ({ messages }) => {
    await sleep(10)
    return isTold(messages) ? 'done' : { calls: [{ name: 'pay', input: {} }] }
  }),
})
const host = agent({
  name: 'host',
  instructions: 'Delegate.',
  subagents: { sub: { agent: sub, briefing: 'none' } },
  model: scriptedModel(({ messages }) =>
    isTold(messages) ? 'finished' : { calls: [{ name: 'sub', input: { message: 'work' } }] },
  ),
})

const store = postgresStore({ url, busyMs: 60_000 })
const commit = store.commit
store.commit = async (given) => {
  await commit(given)
  if (given.rootId === null || given.kind === 'stream') return
  const seqs = given.events.map(({ seq }) => seq)
  writeSync(3, `${JSON.stringify({ id: given.id, rootId: given.rootId, seqs, at: Date.now() })}\n`)
}
const logger = { debug() {}, info() {}, warn() {}, error() {} }
const engine = { leaseMs, sweepMs: 200, graceMs: 500, workers: 16 }
const runtime = createRuntime({ store, agents: [host, sub], engine, logger })
process.stdout.write('ready\n')
await runtime.resume()
await Promise.all(
  Array.from({ length: jobs }, async (_, job) => {
    const { result } = await startPatiently(`job-${job}`)
    await result
    process.stdout.write(`ended ${job}\n`)
  }),
)
await runtime.close()

/** While the database is away, a run cannot be begun; its key makes sure that it is begun once. */
async function startPatiently(key) {
  for (;;) {
    try {
      const run = runtime.run(host, 'go', { key })
      run.result.catch(() => undefined)
      await runtime.recorded?.(run)
      return run
    } catch (error) {
      if (error?.code !== 'store_busy') throw error
      await sleep(100)
    }
  }
}
