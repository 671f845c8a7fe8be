// The graph is the only state, so a run outlives its process. Here the first runtime is closed in the middle of a run;
// the second one opens the same file and goes on. (`npx legate demo` does it with two processes and kill -9.)

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, createRuntime, tool } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

const folder = mkdtempSync(join(tmpdir(), 'legate-example-'))
const path = join(folder, 'runs.db')
const sent: string[] = []

const send = tool({
  description: 'Sends a letter.',
  input: z.object({ to: z.string() }),
  execute: ({ to }) => {
    sent.push(to)
    return 'sent'
  },
})

const secretary = agent({
  name: 'secretary',
  instructions: 'You send letters.',
  tools: { send },
  // A real model goes here. The second call takes long: long enough to close the runtime while it runs.
  model: scriptedModel(({ messages }, call) => {
    if (messages.at(-1)?.role !== 'tool') return { calls: [{ name: 'send', input: { to: 'Bern' } }] }
    return { text: 'The letter is on its way.', delayMs: call === 1 ? 60_000 : 0 }
  }),
})

const first = createRuntime({ store: sqliteStore(path), agents: [secretary], engine: { graceMs: 50 } })
const run = first.run(secretary, 'A letter to Bern, please.')
for await (const event of run) if (event.type === 'tool-result') break
await first.close()
console.log(`closed in the middle; sent so far: ${sent.join(', ')}`)

const second = createRuntime({ store: sqliteStore(path), agents: [secretary] })
const [resumed] = await second.resume()
const outcome = await resumed?.result
await second.close()
rmSync(folder, { recursive: true })

console.log(`${outcome?.status}: ${outcome?.text}`)
assert.equal(outcome?.status, 'completed')
assert.deepEqual(sent, ['Bern']) // finished before the close, so not run again
