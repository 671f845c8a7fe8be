// A run is recorded once, with real models and tools. After that it is played back: the same graph, events and outcome,
// offline, in milliseconds, and nothing is really done. What would be asked differently fails with the difference.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, createRuntime, tool } from 'legate'
import { record, replay, scriptedModel } from 'legate/testing'

const folder = mkdtempSync(join(tmpdir(), 'legate-example-'))
const file = join(folder, 'weather.jsonl') // In a project: beside the test, checked in.

let calls = 0
const weather = tool({
  description: 'The weather of a city',
  input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: () => ({ sky: 'grey', key: `sk-secret-${++calls}23456` }),
})

const reporter = (instructions: string) =>
  agent({
    name: 'reporter',
    instructions,
    tools: { weather },
    // A real model goes here.
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'It is grey.' : { calls: [{ name: 'weather', input: { city: 'Graz' } }] },
    ),
  })

// Once.
const recorded = record(createRuntime(), file)
await recorded.run(reporter('You report the weather.'), 'How is Graz?').result
await recorded.close()

// In every test, three lines.
const runtime = replay(file)
const { text } = await runtime.run(reporter('You report the weather.'), 'How is Graz?').result
runtime.assertComplete()
await runtime.close()
console.log(text, `(${calls} real call)`)

// Somebody has changed the instructions.
const changed = replay(file, { logger: { debug() {}, info() {}, warn() {}, error() {} } })
const { error } = await changed.run(reporter('You praise the weather.'), 'How is Graz?').result
await changed.close()
console.log(error?.message)

assert.equal(calls, 1)
assert.doesNotMatch(readFileSync(file, 'utf8'), /sk-secret/)
assert.match(error?.message ?? '', /recorded: "You report .* now: +"You praise/)
rmSync(folder, { recursive: true })
