// An extension that keeps secrets from the model: what tools find is cleaned before the model reads it.

import assert from 'node:assert/strict'
import { agent, createRuntime, tool } from 'legate'
import { extension } from 'legate/hooks'
import { scriptedModel } from 'legate/testing'

const SECRET = /sk-[a-z0-9]{6,}|\b\d{4}(?: \d{4}){3}\b/g

const redaction = extension({
  name: 'redaction',
  onError: 'fail', // a result that could not be cleaned is withheld
  hooks: {
    afterTool: (_call, { content, isError }) => {
      return { result: JSON.parse(JSON.stringify(content).replace(SECRET, '***')), isError }
    },
  },
})

const read = tool({
  description: 'Reads the notes.',
  input: { type: 'object' },
  execute: () => 'Key sk-abc123def, card 4111 1111 1111 1111, call Ann.',
})
const model = scriptedModel([{ calls: [{ name: 'read', input: {} }] }, 'Call Ann.'])
const clerk = agent({ name: 'clerk', instructions: 'You read notes.', model, tools: { read } }).use(redaction)

const runtime = createRuntime()
const { text } = await runtime.run(clerk, 'What do the notes say?').result
await runtime.close()

const seen = JSON.stringify(model.requests)
console.log(text)
assert.match(seen, /Key \*\*\*, card \*\*\*, call Ann\./)
assert.doesNotMatch(seen, /sk-abc|4111/)
