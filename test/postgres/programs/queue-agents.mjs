// Agents for workers that a queue wakes: `legate worker -m queue-agents.mjs`. EFFECTS is the file of what was done.

import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, tool } from '../../../dist/index.js'
import { scriptedModel } from '../../../dist/testing/index.js'

const pay = tool({
  description: 'Pays, and may not be repeated.',
  input: { type: 'object' },
  effect: 'effectful',
  execute: async (_, { idempotencyKey }) => {
    appendFileSync(process.env.EFFECTS, `${idempotencyKey}\n`)
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

export const host = agent({
  name: 'host',
  instructions: 'Delegate.',
  subagents: { sub: { agent: sub, briefing: 'none' } },
  model: scriptedModel(({ messages }) =>
    isTold(messages) ? 'finished' : { calls: [{ name: 'sub', input: { message: 'work' } }] },
  ),
})
