// An agent with `output` answers with a value of that schema. An answer that does not fit is asked for once more.

import assert from 'node:assert/strict'
import { agent, RunError } from 'legate'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

const City = z.object({ name: z.string(), population: z.number().int().positive() })

const geographer = agent({
  name: 'geographer',
  instructions: 'You know cities.',
  output: City,
  // A real model goes here. This one gets it wrong first: population is a text.
  model: scriptedModel([
    '{ "name": "Bern", "population": "about 134,000" }',
    '```json\n{ "name": "Bern", "population": 134000 }\n```',
  ]),
})

const { output, modelCalls } = await geographer.generate('How many people live in Bern?')

console.log(`${output?.name}: ${output?.population}, after ${modelCalls} calls`)
assert.deepEqual(output, { name: 'Bern', population: 134_000 })
assert.equal(modelCalls, 2)

const stubborn = agent({
  name: 'stubborn',
  instructions: 'You know cities.',
  output: City,
  model: scriptedModel(() => 'I would rather not say.'),
})

// `generate` throws unless the run completed; `runtime.run(...).result` gives any outcome without throwing.
const error = await stubborn.generate('And in Basel?').catch((thrown: unknown) => thrown)

assert.ok(RunError.isInstance(error))
console.log(error.message)
assert.equal((error.outcome as { status: string }).status, 'invalid_output')
