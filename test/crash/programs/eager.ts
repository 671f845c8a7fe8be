import { agent, type StandardSchema } from 'legate'
import { countEffect, crashWorker, scriptedModel } from 'legate/testing'
import { call, counted, QUICK, recorded, roundsOf, slowed } from './parts.ts'

/**
 * A plan whose items start children while it is written. Its first form does not fit: the second keeps one of its items,
 * and the child of the other, which would never end, is superseded.
 */
const Plan: StandardSchema<unknown, { goal: string; tasks: string[] }> = {
  '~standard': {
    version: 1,
    vendor: 'crash',
    validate: (value) => {
      const { goal } = value as { goal?: unknown }
      if (typeof goal !== 'string') return { issues: [{ message: 'goal must be a text' }] }
      return { value: value as { goal: string; tasks: string[] } }
    },
    jsonSchema: { input: () => PLAN_SCHEMA, output: () => PLAN_SCHEMA },
  },
}

const PLAN_SCHEMA = { type: 'object', properties: { goal: {}, tasks: { type: 'array', items: { type: 'string' } } } }

const FIRST = ['{"goal":7,"tasks":["pay one"', ',"sleep"', ']}']
const SECOND = ['{"goal":"x","tasks":["pay two"', ',"pay one"', ']}']

const paying = scriptedModel(async ({ messages, path }) => {
  await countEffect('model', path.join('/'))
  return messages.at(-1)?.role === 'user' ? { calls: [call('pay')] } : 'Paid.'
})

const worker = agent({
  name: 'worker',
  instructions: 'Work.',
  tools: { pay: counted('pay', 'effectful') },
  model: {
    id: paying.id,
    async *stream(request, options) {
      if (request.messages.at(-1)?.content === 'sleep') await never(options.signal)
      yield* paying.stream(request, options)
    },
  },
})

function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}

const lead = agent({
  name: 'lead',
  instructions: 'Plan.',
  output: Plan,
  eager: { 'tasks[*]': worker },
  model: slowed(
    scriptedModel(async ({ messages, path }) => {
      await countEffect('model', path.join('/'))
      const isAgain = String(messages.at(-1)?.content).startsWith('Your answer does not fit')
      return { chunks: isAgain ? SECOND : FIRST }
    }),
    2,
  ),
})

await crashWorker({
  options: { agents: [lead], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'eager')).length === 0) await recorded(runtime.run(lead, 'Go.', { title: 'eager' }))
    await runtime.idle()
  },
})
