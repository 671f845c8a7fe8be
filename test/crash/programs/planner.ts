// An agent whose tools are planned: a tool, then a subagent, then the answer.

import { agent, tool } from 'legate'
import { planner } from 'legate/hooks'
import { countEffect, crashWorker, scriptedModel } from 'legate/testing'
import { ANYTHING, QUICK, roundsOf, steppingModel } from './parts.ts'

const expert = agent({ name: 'expert', instructions: 'You know.', input: ANYTHING, model: steppingModel({}) })

const look = tool({
  description: 'Looks',
  input: { type: 'object' },
  effect: 'idempotent',
  execute: async (_, { idempotencyKey }) => {
    await countEffect('tool', idempotencyKey)
    return { seen: 'all' }
  },
})

const plan = (tool_name: string, tool_kwargs: object) =>
  JSON.stringify({ use_tool: true, tool_command: { purpose: `use ${tool_name}`, tool_name, tool_kwargs } })

const model = scriptedModel(async ({ messages, outputSchema, path }) => {
  await countEffect('model', path.join('/'))
  const asked = String(messages.at(-1)?.content)
  if (outputSchema === null) return asked.includes('use ask') ? 'Both were used.' : 'Something is missing.'
  if (!asked.includes('use look')) return plan('look', {})
  return asked.includes('use ask') ? '{"use_tool": false}' : plan('ask', { a: '1' })
})

const lead = agent({ name: 'lead', instructions: 'You lead.', model, tools: { look }, subagents: { ask: expert } }).use(
  planner({ strategy: 'planner', maxRounds: 3 }),
)

await crashWorker({
  options: { agents: [lead], engine: QUICK },
  drive: async ({ runtime, store }) => {
    const [known] = await roundsOf(store, 'planner')
    const run = known === undefined ? runtime.run(lead, 'Go.', { title: 'planner' }) : await runtime.attach(known.id)
    await run.result
  },
})
