// Cancelling a run ends its whole tree: what waits is stopped at once, what runs gets its abort signal and may keep what
// it has, programs are ended with all they have started. A child its host would not miss goes on. Nothing is thrown.

import assert from 'node:assert/strict'
import { agent, createRuntime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { runProcess } from 'legate/tools'

const build = tool({
  description: 'Builds for a very long time.',
  input: { type: 'object' },
  effect: 'idempotent',
  execute: async (_, { signal, progress }) => {
    progress('building') // for whoever watches the run, never for the model
    return (await runProcess('sh', ['-c', 'sleep 60 & sleep 60'], { signal })).exitCode
  },
})

const builder = agent({
  name: 'builder',
  instructions: 'You build.',
  tools: { build },
  // A real model goes here.
  model: scriptedModel([{ text: 'One moment.', calls: [{ name: 'build', input: {} }] }]),
})

const archivist = agent({
  name: 'archivist',
  instructions: 'You file what you are given.',
  model: scriptedModel([{ text: 'Filed all the same.', delayMs: 2_000 }]),
})

const calls = ['build', 'file'].map((name) => ({ name, input: { message: 'Version 2' } }))
const host = agent({
  name: 'host',
  instructions: 'You have things built and filed.',
  model: scriptedModel([{ calls }]),
  subagents: { build: builder, file: { agent: archivist, onParentClose: 'abandon' } },
})

const runtime = createRuntime()
const controller = new AbortController()
const run = runtime.run(host, 'Build and file it.', { abortSignal: controller.signal })
for await (const event of run) {
  if (event.type === 'progress') controller.abort('nobody waits any more')
  if (event.type === 'run-end')
    console.log(`${event.path.join(' > ')}: ${event.outcome.status}, "${event.outcome.error?.message}"`)
}
const { status, text, durationMs } = await run.result
console.log(text)
const links = (await runtime.store.tree(run.conversationId)).linksOf(run.id)
const abandoned = await runtime.attach(links.find(({ agentName }) => agentName === 'archivist')?.id ?? '')
const filed = await abandoned.result
console.log(`archivist: ${filed.status}, ${filed.text}`)
await runtime.close()
assert.equal(status, 'cancelled')
assert.match(text, /One moment/)
assert.equal(filed.status, 'completed')
assert.ok(durationMs < 5_000)
