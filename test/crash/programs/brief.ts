// A host briefs its experts in every way; one of them by a call of its own model. Then it hears something in passing.

import { agent } from 'legate'
import { countEffect, crashWorker, scriptedModel } from 'legate/testing'
import { ANYTHING, call, QUICK, roundsOf, steppingModel } from './parts.ts'

const expert = (name: string) =>
  agent({ name, instructions: `You are ${name}.`, input: ANYTHING, model: steppingModel({}) })

const experts = {
  summed: { agent: expert('summed'), briefing: 'summary' },
  kept: { agent: expert('kept'), briefing: 'summary', memory: 'session' },
  forked: { agent: expert('forked'), briefing: 'fork' },
  told: { agent: expert('told'), briefing: () => ({ hint: 'be short' }) },
} as const

/** Briefs when it is asked to; else it asks two experts at once, then the others. */
const model = scriptedModel(async ({ messages, path }) => {
  await countEffect('model', path.join('/'))
  const usage = { inputTokens: 7, outputTokens: 3 }
  if (path.length > 1) return { text: 'They talk of crashes.', usage }
  const said = messages.filter(({ role }) => role === 'assistant').length
  if (said === 0) return { calls: [call('summed', { a: '1' }), call('kept', { a: '2' })], usage }
  if (said === 1) return { calls: [call('kept', { a: '3' }), call('forked'), call('told')], usage }
  return { text: 'Done.', usage }
})

const lead = agent({ name: 'lead', instructions: 'You lead.', model, subagents: experts })

await crashWorker({
  options: { agents: [lead], engine: QUICK },
  drive: async ({ runtime, store }) => {
    const known = await roundsOf(store, 'brief')
    const run =
      known[0] === undefined ? runtime.run(lead, 'Go.', { title: 'brief' }) : await runtime.attach(known[0].id)
    const { conversationId } = await run.result
    if (known.length < 2) await (await runtime.conversation(conversationId)).observe('It rains.')
  },
})
