// Cancelling a run ends its whole tree: what waits is stopped at once, what runs gets its abort signal and may keep what
// it has. The outcome says so; nothing is thrown.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, createRuntime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'

let stopped = false

const wait = tool({
  description: 'Waits for a very long time.',
  inputSchema: { type: 'object' },
  effect: 'pure',
  execute: async (_, { signal, progress }) => {
    signal.addEventListener('abort', () => {
      stopped = true
    })
    progress('waiting') // for whoever watches the run, never for the model
    await sleep(60_000, undefined, { signal })
  },
})

const sleeper = agent({
  name: 'sleeper',
  description: 'Takes its time.',
  instructions: 'You wait.',
  tools: { wait },
  // A real model goes here.
  model: scriptedModel([{ text: 'One moment.', calls: [{ name: 'wait', input: {} }] }]),
})

const host = agent({
  name: 'host',
  instructions: 'You ask the sleeper.',
  model: scriptedModel([{ calls: [{ name: 'call_sleeper', input: { message: 'Anything new?' } }] }]),
  subagents: [sleeper], // without a key the tool is named call_<agent>
})

const runtime = createRuntime()
const controller = new AbortController()
const run = runtime.run(host, 'Ask the sleeper.', { abortSignal: controller.signal })
for await (const event of run) {
  if (event.type === 'progress') controller.abort('nobody waits any more')
  if (event.type === 'run-end') console.log(`${event.path.join(' > ')}: ${event.outcome.status}`)
}

const { status, error, durationMs } = await run.result
await runtime.close()

console.log(`${status}: ${error?.message}`)
assert.equal(status, 'cancelled')
assert.ok(stopped)
assert.ok(durationMs < 5_000)
