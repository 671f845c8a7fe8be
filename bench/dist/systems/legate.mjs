// Legate on its public API: host -> sub -> host with a model that answers at once.

import { agent, createRuntime, tool } from '../../../dist/index.js'
import { postgresStore } from '../../../dist/stores/postgres/index.js'
import { scriptedModel } from '../../../dist/testing/index.js'

const MANY = 100_000
const ANYTHING = { type: 'object', properties: {} }
const now = () => Number(process.hrtime.bigint()) / 1e6

/** `workers: 0` starts runs and leaves them to others. */
export async function open({ url, schema, workers = 256, tell }) {
  const isTold = (messages) => messages.some(({ role }) => role === 'tool')
  const sub = agent({ name: 'sub', instructions: 'You work.', model: scriptedModel(() => 'done') })
  const host = agent({
    name: 'host',
    instructions: 'You delegate.',
    subagents: { sub: { agent: sub, briefing: 'none' } },
    budget: { children: MANY, concurrency: MANY, toolCalls: MANY },
    model: scriptedModel(({ messages }) =>
      isTold(messages) ? 'finished' : { calls: children(Number(messages.at(-1).content)) },
    ),
  })
  const children = (count) => Array.from({ length: count }, () => ({ name: 'sub', input: { message: 'work' } }))
  const publish = tool({ description: 'Publishes.', input: ANYTHING, effect: 'pure', execute: () => 'it is out' })
  const asking = agent({
    name: 'asking',
    instructions: 'You ask.',
    tools: { publish },
    grant: { use: ['model:*'], ask: ['tool:publish'] },
    model: scriptedModel(({ messages }) =>
      isTold(messages) ? 'finished' : { calls: [{ name: 'publish', input: {} }] },
    ),
  })
  const waked = agent({
    name: 'waked',
    instructions: 'You wake.',
    model: scriptedModel(() => {
      tell({ wokeAt: now() })
      return 'awake'
    }),
  })
  const store = postgresStore({ url, schema })
  const runtime = createRuntime({ store, agents: [host, asking, waked], engine: { workers } })
  await runtime.resume()

  const run = async (chosen, input) => {
    const { status, error } = await runtime.run(chosen, input).result
    if (status !== 'completed') throw error ?? new Error(status)
  }
  let parked = []
  return {
    delegate: () => run(host, '1'),
    fanOut: () => run(host, '100'),
    /** Starts so many conversations that all come to wait for a person. */
    park: async (count) => {
      parked = Array.from({ length: count }, () => runtime.run(asking, 'go').result)
      await until(async () => (await openRequests(runtime)).length === count)
    },
    /** Answers all that wait, and sees them end. */
    answer: async () => {
      const nodes = await openRequests(runtime)
      await Promise.all(nodes.map(({ nodeId }) => runtime.answer(nodeId, { allow: true })))
      const ended = await Promise.all(parked)
      return ended.filter(({ status }) => status === 'completed').length
    },
    /** Says when the commit of a new run was acknowledged. Somebody else runs it. */
    wake: async () => {
      const started = runtime.run(waked, 'go')
      const first = started.events()[Symbol.asyncIterator]()
      await first.next()
      const committedAt = now()
      await started.result
      return committedAt
    },
  }
}

async function openRequests(runtime) {
  const all = []
  for (let after; ; ) {
    const page = await runtime.approvals({ limit: 1_000, ...(after === undefined ? {} : { after }) })
    all.push(...page)
    if (page.length < 1_000) return all
    after = page.at(-1)
  }
}

async function until(isTrue) {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20))
}
