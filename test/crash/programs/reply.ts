import { agent, type Effect } from 'legate'
import { countEffect, crashWorker, passPoint, workerRole } from 'legate/testing'
import { ANYTHING, QUICK, recorded, roundsOf } from './parts.ts'

/** An agent that is code, with two children that are code, and a person to ask. Its role is its effect. */
const worker = (name: string) =>
  agent({
    name,
    effect: 'idempotent',
    input: ANYTHING,
    reply: async (_, { path }) => {
      await countEffect('model', path.join('/'))
      return `${name} is done.`
    },
  })

const lead = agent({
  name: 'lead',
  effect: workerRole() as Effect,
  subagents: { one: worker('one'), two: worker('two') },
  reply: async (_, { delegate, ask, path }) => {
    passPoint('lead:begins')
    await countEffect('model', path.join('/'))
    const one = await delegate('one', {})
    passPoint('lead:one')
    const word = await ask('Go on?')
    passPoint('lead:asked')
    const two = await delegate('two', {})
    passPoint('lead:two')
    return [one.text, word, two.text].join(' ')
  },
})

await crashWorker({
  options: { agents: [lead], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'reply')).length === 0) await recorded(runtime.run(lead, 'Go.', { title: 'reply' }))
    const answering = setInterval(async () => {
      for (const { nodeId } of await runtime.questions()) {
        passPoint('person:answers')
        await runtime.answer(nodeId, { text: 'Yes.' }).catch(() => undefined)
      }
    }, 5)
    for (const { id } of await roundsOf(store, 'reply')) await (await runtime.attach(id)).result
    clearInterval(answering)
  },
})
