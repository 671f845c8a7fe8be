import { agent, tool } from 'legate'
import { type CrashWorker, countEffect } from 'legate/testing'
import { ANYTHING, allowAll, call, counted, roundsOf, steppingModel } from './parts.ts'

/** Delegation two deep and in parallel, tools of the three effects, children started by code, and an approval. */
const reader = agent({
  name: 'reader',
  instructions: 'Read.',
  input: ANYTHING,
  tools: { look: counted('look', 'pure') },
  model: steppingModel({ calls: [call('look')] }),
})

const researcher = agent({
  name: 'researcher',
  instructions: 'Research.',
  input: ANYTHING,
  tools: { book: counted('book', 'idempotent') },
  subagents: { read: reader },
  model: steppingModel({ calls: [call('book'), call('read', { topic: 'a page' })] }),
})

export const asker = agent({ name: 'asker', instructions: 'Ask.', input: ANYTHING, model: steppingModel() })

const survey = tool({
  description: 'Asks around.',
  input: ANYTHING,
  effect: 'idempotent',
  execute: async (_, { delegate, idempotencyKey }) => {
    await countEffect('survey', idempotencyKey)
    await Promise.all([delegate(asker, { topic: 'one' }), delegate(asker, { topic: 'two' })])
    return 'survey is done.'
  },
})

export const lead = agent({
  name: 'lead',
  instructions: 'Lead.',
  grant: { ask: ['tool:sign'] },
  tools: { pay: counted('pay', 'effectful'), sign: counted('sign', 'effectful'), survey },
  subagents: { research: researcher },
  model: steppingModel({
    calls: [
      call('research', { topic: 'a' }),
      call('research', { topic: 'b' }),
      call('pay'),
      call('sign'),
      call('survey'),
    ],
  }),
})

/** Runs it once, whatever there is of it already, and plays the person who is asked. */
export async function driveLead({ runtime, store }: CrashWorker): Promise<void> {
  const [known] = await roundsOf(store, 'lead')
  const run = known === undefined ? runtime.run(lead, 'Write.', { title: 'lead' }) : await runtime.attach(known.id)
  await allowAll(runtime, run)
  await run.result
}
