// A grant says what an agent may use and what it may pass on. A child never has more than its host may pass on, whatever
// the child's own definition says.

import assert from 'node:assert/strict'
import { agent, createRuntime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'

const done: string[] = []
const named = (name: string) =>
  tool({ description: `Does ${name}.`, input: { type: 'object' }, execute: () => done.push(name) })

const worker = agent({
  name: 'worker',
  description: 'Does what it can.',
  instructions: 'You try everything.',
  tools: { search: named('search'), deploy: named('deploy'), pay: named('pay') },
  grant: { use: ['tool:*'] }, // it would like to have everything
  // A real model goes here. This one tries what it was not even offered.
  model: scriptedModel(({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    if (results.length > 0) return results.join('\n')
    return { calls: ['search', 'deploy', 'pay'].map((name) => ({ name, input: {} })) }
  }),
})

const host = agent({
  name: 'host',
  instructions: 'You delegate.',
  subagents: { work: worker },
  grant: {
    use: ['agent:worker', 'tool:*'],
    delegate: ['tool:search', 'tool:pay'], // no tool:deploy: silence denies
    ask: ['tool:pay'], // only after a person has said yes
  },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return String(last.content)
    return { calls: [{ name: 'work', input: { message: 'Do it all.' } }] }
  }),
})

const runtime = createRuntime()
const run = runtime.run(host, 'Go.')
for await (const event of run) {
  if (event.type !== 'approval-request' || event.nodeId === null) continue
  console.log(`${event.path.join(' > ')} wants ${event.call?.name}: ${event.reason}`)
  await runtime.answer(event.nodeId, { allow: false, by: 'ann', reason: 'Not today.' })
}

const { text } = await run.result
await runtime.close()

console.log(text)
assert.deepEqual(done, ['search'])
assert.match(text, /no rule of host allows tool:deploy/)
assert.match(text, /Not today/)
