// A tool is a function with a schema and an effect. The effect says what may happen after a crash in the middle of it:
// 'pure' and 'idempotent' run again, 'effectful' (the default) is marked uncertain instead of being repeated.

import assert from 'node:assert/strict'
import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

const stock = new Map([['lamp', 3]])
const orders = new Map<string, string>()

const inStock = tool({
  description: 'How many of an article are in stock.',
  input: z.object({ article: z.string() }),
  effect: 'pure',
  execute: ({ article }) => stock.get(article) ?? 0,
})

const order = tool({
  description: 'Orders one article.',
  input: z.object({ article: z.enum(['lamp', 'chair']) }),
  effect: 'idempotent',
  timeoutMs: 10_000,
  // The key is the same on every try of this call: whoever is called with it can do it once.
  execute: ({ article }, { idempotencyKey }) => {
    orders.set(idempotencyKey, article)
    return { ordered: article }
  },
})

const clerk = agent({
  name: 'clerk',
  instructions: 'You take orders.',
  tools: { in_stock: inStock, order },
  // A real model goes here.
  model: scriptedModel([
    { calls: [{ name: 'in_stock', input: { article: 'lamp' } }] },
    { calls: [{ name: 'order', input: { article: 'sofa' } }] }, // refused by the schema; the model reads why
    { calls: [{ name: 'order', input: { article: 'lamp' } }] },
    'One lamp is on its way.',
  ]),
})

const run = clerk.stream('I would like a lamp.')
for await (const event of run) {
  if (event.type === 'tool-result') console.log(`${event.tool}: ${event.content}`)
}

const { text, toolCalls } = await run.result
console.log(text)
assert.equal(toolCalls, 3)
assert.deepEqual([...orders.values()], ['lamp'])
