import { agent } from 'legate'
import { countEffect, crashWorker, passPoint, scriptedModel, workerRole } from 'legate/testing'
import { QUICK, recorded, roundsOf } from './parts.ts'

// Code that makes five equal calls. Its role says how many model calls are answered before the others hang.
const answers = Number(workerRole())
const CALLS = 5
const AT_ONCE = 3

let asked = 0

const worker = agent({
  name: 'worker',
  instructions: 'Work.',
  model: scriptedModel(async ({ path }) => {
    await countEffect('model', path.join('/'))
    const number = ++asked
    if (number <= answers) return `answer ${number}`
    // So many are asked only when all that were answered have ended.
    if (number === answers + AT_ONCE) passPoint('all:asked')
    return new Promise(() => undefined)
  }),
  hooks: { onRequest: (_, { runId }) => passPoint(`asks: ${runId}`) },
})

const lead = agent({
  name: 'lead',
  effect: 'idempotent',
  subagents: { worker },
  budget: { concurrency: AT_ONCE },
  reply: async (_, { delegate, path }) => {
    await countEffect('model', path.join('/'))
    const outcomes = await Promise.all(Array.from({ length: CALLS }, () => delegate('worker', 'Work.')))
    return outcomes.map(({ runId }) => runId).join(' ')
  },
})

await crashWorker({
  options: { agents: [lead], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'equals')).length === 0) await recorded(runtime.run(lead, 'Go.', { title: 'equals' }))
    for (const { id } of await roundsOf(store, 'equals')) await (await runtime.attach(id)).result
  },
})
