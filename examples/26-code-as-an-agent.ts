// An agent that is code: it asks two experts at once, asks a person when they do not agree, and answers like any agent. It may
// run again after a crash: then each expert and the person are not asked a second time.

import assert from 'node:assert/strict'
import { agent, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

const Estimate = z.object({ days: z.number() })

/** A real model goes here. */
const expert = (name: string, days: number) =>
  agent({
    name,
    instructions: 'Estimate the work in days.',
    output: Estimate,
    model: scriptedModel([JSON.stringify({ days })]),
  })

const estimator = agent({
  name: 'estimator',
  description: 'Estimates a piece of work.',
  input: z.object({ work: z.string() }),
  output: Estimate,
  subagents: { careful: expert('careful', 9), quick: expert('quick', 3) },
  effect: 'pure', // it changes nothing: after a crash it runs again
  async *reply({ work }, { delegate, ask }) {
    yield `Two experts look at "${work}". `
    const [careful, quick] = await Promise.all([delegate('careful', work), delegate('quick', work)])
    const [most = 0, least = 0] = [careful.output?.days, quick.output?.days]
    if (most <= 2 * least) return { days: most }
    yield 'They do not agree: a person decides.'
    const said = await ask(`${work}: ${least} or ${most} days?`)
    return { days: said === null ? most : Number(said) }
  },
})

const runtime = createRuntime()
const run = runtime.run(estimator, { work: 'A new login page' })
for await (const event of run) {
  if (event.type === 'text-delta' && event.path.length === 1) console.log(event.text)
  if (event.type !== 'question' || event.nodeId === null) continue
  console.log(`asked: ${event.text}`)
  await runtime.answer(event.nodeId, { text: '5', by: 'ann' })
}
const { status, output, children, modelCalls } = await run.result
await runtime.close()

assert.equal(status, 'completed')
assert.deepEqual(output, { days: 5 })
assert.deepEqual([children, modelCalls], [2, 0]) // the experts' calls are the experts'
