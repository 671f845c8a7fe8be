import { agent, type Effect } from 'legate'
import { countEffect, crashWorker, scriptedModel, workerRole } from 'legate/testing'
import { call, counted, QUICK, recorded, roundsOf } from './parts.ts'

/** One agent that acts twice, and then says what it was told of both. Its role is the effect of what it does. */
const actor = agent({
  name: 'actor',
  instructions: 'Act.',
  tools: { act: counted('act', workerRole() as Effect, { lastsMs: 3 }) },
  model: scriptedModel(async ({ messages, path }) => {
    await countEffect('model', path.join('/'))
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    return results.length < 2 ? { calls: [call('act')] } : results.join('\n')
  }),
})

await crashWorker({
  options: { agents: [actor], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'act')).length === 0) await recorded(runtime.run(actor, 'Go.', { title: 'act' }))
    for (const { id } of await roundsOf(store, 'act')) await (await runtime.attach(id)).result
  },
})
