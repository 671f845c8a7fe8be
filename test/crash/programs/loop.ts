import { agent, type Effect, tool } from 'legate'
import { countEffect, crashWorker, scriptedModel, workerRole } from 'legate/testing'
import { ANYTHING, call, QUICK, recorded, roundsOf } from './parts.ts'

/** A process that dies of what it does: its role is the effect of a tool, or `model`. */
const killing = tool({
  description: 'Ends the process.',
  input: ANYTHING,
  effect: workerRole() === 'model' ? 'pure' : (workerRole() as Effect),
  execute: async (_, { idempotencyKey }) => {
    await countEffect('kill', idempotencyKey)
    process.kill(process.pid, 'SIGKILL')
    return 'never'
  },
})

const victim = agent({
  name: 'victim',
  instructions: 'Try it.',
  tools: { kill: killing },
  model: scriptedModel(({ messages }) => {
    if (workerRole() === 'model') process.kill(process.pid, 'SIGKILL')
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    return results.length === 0 ? { calls: [call('kill')] } : `I was told: ${results.join()}`
  }),
})

await crashWorker({
  options: { agents: [victim], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'loop')).length === 0) await recorded(runtime.run(victim, 'Go.', { title: 'loop' }))
    for (const { id } of await roundsOf(store, 'loop')) await (await runtime.attach(id)).result
  },
})
