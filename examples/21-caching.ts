// An extension that asks a model only once for the same thing: `wrapModel` answers instead of it.

import assert from 'node:assert/strict'
import { agent, createRuntime } from 'legate'
import { extension } from 'legate/hooks'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'

const caching = (kept: Map<string, readonly Part[]>) =>
  extension({
    name: 'caching',
    hooks: {
      async *wrapModel(request, next) {
        const { path: _path, ...asked } = request
        const key = JSON.stringify(asked)
        const known = kept.get(key)
        if (known !== undefined) return yield* known
        const parts: Part[] = []
        for await (const part of next(request)) {
          parts.push(part)
          yield part
        }
        kept.set(key, parts) // only whole answers get here
      },
    },
  })

const model = scriptedModel(({ messages }) => `You said ${messages.at(-1)?.content}.`)
const parrot = agent({ name: 'parrot', instructions: 'You repeat.', model }).use(caching(new Map()))

const runtime = createRuntime()
const texts: string[] = []
for (const input of ['hello', 'goodbye', 'hello']) texts.push((await runtime.run(parrot, input).result).text)
await runtime.close()

console.log(texts.join('\n'))
assert.deepEqual(texts, ['You said hello.', 'You said goodbye.', 'You said hello.'])
assert.equal(model.requests.length, 2)
