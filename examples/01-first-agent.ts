// An agent is a definition: a name, instructions, a model. `generate` runs it and gives the outcome.

import assert from 'node:assert/strict'
import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'

// A scripted model says what it is told to. A real one goes here: any object with `id` and `stream(request, { signal })`.
const model = scriptedModel(['A legate acts with exactly the authority it was given.'])

const clerk = agent({
  name: 'clerk',
  instructions: 'You answer in one sentence.',
  model,
})

const { status, text, usage, durationMs } = await clerk.generate('What is a legate?')

console.log(text)
console.log(`${status} in ${durationMs} ms, ${usage.outputTokens} tokens`)
assert.equal(status, 'completed')
assert.match(text, /authority/)
model.assertComplete()
