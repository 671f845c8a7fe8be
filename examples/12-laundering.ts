// A host may not delete. Can it have somebody else delete for it? Not by a subagent that holds the tool, not by one that
// its own code starts, not by one two levels down: a deny binds all that is done on its behalf. And it can be explained.

import assert from 'node:assert/strict'
import { agent, createRuntime, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'

const deleted: string[] = []
const deleteAll = tool({
  description: 'Deletes everything.',
  input: { type: 'object' },
  execute: () => `gone: ${deleted.push('all')}`,
})

// Stands in for a model that was talked into it: it calls this tool, offered or not, and says what came back.
const calls = (name: string): Script => {
  return ({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool' ? String(last.content) : { calls: [{ name, input: { message: 'Delete it all.' } }] }
  }
}

const worker = agent({
  name: 'worker',
  instructions: 'You do what you are told.',
  tools: { deleteAll },
  grant: { use: ['tool:*'] }, // it asks for everything
  model: scriptedModel(calls('deleteAll')),
})
const middle = agent({
  name: 'middle',
  instructions: 'You pass it on.',
  subagents: { ask: worker },
  model: scriptedModel(calls('ask')),
})
const inCode = tool({
  description: 'Starts the worker from code.',
  input: { type: 'object' },
  execute: async (_input, { delegate }) => (await delegate(worker, 'Delete it all.')).text,
})

const runtime = createRuntime()
for (const way of ['deleteAll', 'ask', 'askMiddle', 'inCode']) {
  const host = agent({
    name: 'host',
    instructions: 'You never delete.',
    tools: { deleteAll, inCode },
    subagents: { ask: worker, askMiddle: middle },
    grant: { deny: ['tool:deleteAll'] },
    model: scriptedModel(calls(way)),
  })
  const run = runtime.run(host, 'Tidy up.')
  console.log(`${way}: ${(await run.result).text.split('\n\n').at(-1)}`)
  const [child] = (await runtime.usage(run.id)).children
  if (way === 'ask' && child) console.log(`\n${(await runtime.explain(child.runId, 'tool:deleteAll')).text}\n`)
}
await runtime.close()
assert.deepEqual(deleted, [])
