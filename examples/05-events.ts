// A run is an async iterable of events: its own and those of everything it delegated, each with the path of agents that
// leads to it. Any number of readers, each from the beginning or after a sequence number.

import assert from 'node:assert/strict'
import { agent, createRuntime, type RunEvent } from 'legate'
import { scriptedModel } from 'legate/testing'

const poet = agent({
  name: 'poet',
  description: 'Writes one line.',
  instructions: 'You write one line of verse.',
  // A real model goes here. Its text arrives in pieces.
  model: scriptedModel([{ chunks: ['A line ', 'of ', 'verse.'] }]),
})

const host = agent({
  name: 'host',
  instructions: 'You ask the poet.',
  model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'A line, please.' } }] }, 'Here it is.']),
  subagents: { ask: poet },
})

const runtime = createRuntime()
const run = runtime.run(host, 'Some verse?')
const seen: RunEvent[] = []
for await (const event of run) {
  seen.push(event)
  if (event.type === 'text-delta') console.log(`${event.path.join(' > ')}: ${JSON.stringify(event.text)}`)
  if (event.type === 'delegation-start') console.log(`${event.path.join(' > ')}: asks ${event.agent}`)
  if (event.type === 'run-end') console.log(`${event.path.join(' > ')}: ${event.outcome.status}`)
}

// Durable events have whole numbers without gaps; what was streamed lies between them.
const durable = seen.filter(({ seq }) => Number.isInteger(seq))
assert.deepEqual(
  durable.map(({ seq }) => seq),
  durable.map((_, index) => index + 1),
)
const verse = seen.flatMap((event) => (event.type === 'text-delta' && event.path.length === 2 ? [event.text] : []))
assert.equal(verse.join(''), 'A line of verse.')

// Another reader goes on where this one was after its third event.
const rest: number[] = []
for await (const { seq } of run.events({ after: 3 })) rest.push(seq)
assert.equal(rest[0], 4)
await runtime.close()
