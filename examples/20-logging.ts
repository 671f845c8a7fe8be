// An extension that tells what every agent of a runtime does: what it is asked, what it asks others, how it ends.

import assert from 'node:assert/strict'
import { agent, createRuntime } from 'legate'
import { extension } from 'legate/hooks'
import { scriptedModel } from 'legate/testing'

const lines: string[] = []

const logging = extension({
  name: 'logging',
  state: () => ({ calls: 0 }), // of one run: never shared
  hooks: {
    onStreamStart: ({ state }) => {
      state.calls++
    },
    onDelegationStart: ({ agent: child }, { path }) => lines.push(`${path.join(' > ')} asks ${child}`),
    onEvent: { 'tool-result': ({ tool, isError }) => lines.push(`${tool} ${isError ? 'failed' : 'gave a result'}`) },
    onFinally: ({ status, usage }, { agent: name, state }) => {
      lines.push(`${name}: ${status}, ${state.calls} calls, ${usage.inputTokens} tokens`)
    },
  },
})

const expert = agent({
  name: 'expert',
  instructions: '',
  model: scriptedModel([{ text: '42', usage: { inputTokens: 7 } }]),
})
const host = agent({
  name: 'host',
  instructions: '',
  model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'What is it?' } }] }, 'It is 42.']),
  subagents: { ask: expert },
})

const runtime = createRuntime({ extensions: [logging] })
await runtime.run(host, 'Find out.').result
await runtime.close()

console.log(lines.join('\n'))
assert.deepEqual(lines, [
  'host asks expert',
  'ask gave a result',
  'expert: completed, 1 calls, 7 tokens',
  'host: completed, 2 calls, 7 tokens',
])
