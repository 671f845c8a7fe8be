import { agent } from 'legate'
import { countEffect, crashWorker, scriptedModel } from 'legate/testing'
import { ANYTHING, call, counted, QUICK, recorded, roundsOf, steppingModel } from './parts.ts'

/** Delegations that fail or take too long and are tried again, one at a time and few in the whole tree. */
const BROKEN = new Error('Not today.')

/** Looks, and then fails, each time it is tried. */
const shaky = agent({
  name: 'shaky',
  instructions: 'Try.',
  input: ANYTHING,
  tools: { look: counted('look', 'pure') },
  model: scriptedModel(async ({ messages, path }) => {
    await countEffect('model', path.join('/'))
    const hasLooked = messages.some(({ role }) => role === 'tool')
    return hasLooked ? { error: BROKEN } : { calls: [call('look')] }
  }),
})

const slow = agent({
  name: 'slow',
  instructions: 'Take your time.',
  input: ANYTHING,
  model: steppingModel({ text: 'never', delayMs: 60_000 }),
})

const steady = agent({
  name: 'steady',
  instructions: 'Work.',
  input: ANYTHING,
  tools: { book: counted('book', 'idempotent') },
  model: steppingModel({ calls: [call('book')] }),
})

const boss = agent({
  name: 'boss',
  instructions: 'Delegate.',
  subagents: {
    shaky: { agent: shaky, retries: 1, retryDelayMs: 5, concurrency: 1 },
    slow: { agent: slow, retries: 1, retryDelayMs: 5, timeoutMs: 40 },
    steady: { agent: steady, concurrency: 1, concurrencyKey: 'shaky' },
  },
  budget: { treeConcurrency: 2 },
  model: steppingModel({ calls: [call('shaky'), call('steady'), call('slow')] }),
})

await crashWorker({
  options: { agents: [boss], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'boss')).length === 0) await recorded(runtime.run(boss, 'Go.', { title: 'boss' }))
    for (const { id } of await roundsOf(store, 'boss')) await (await runtime.attach(id)).result
  },
})
