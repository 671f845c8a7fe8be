// Code inside a tool may start agents. What it starts is a child of the running call: bound by what its host may pass
// on, counted with it, cancelled with it, and linked in the graph. No parameter has to be handed through.

import assert from 'node:assert/strict'
import { agent, createRuntime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

const translator = agent({
  name: 'translator',
  instructions: 'You translate one word to French.',
  input: z.object({ word: z.string() }),
  // A real model goes here.
  model: scriptedModel(({ messages }) => {
    const { word } = JSON.parse(String(messages.at(-1)?.content))
    return { bread: 'pain', wine: 'vin' }[String(word)] ?? '?'
  }),
})

const translateAll = tool({
  description: 'Translates a list of words.',
  input: z.object({ words: z.array(z.string()) }),
  effect: 'idempotent',
  execute: async ({ words }) => {
    const outcomes = await Promise.all(words.map((word) => translator.generate({ word })))
    return outcomes.map(({ text }) => text)
  },
})

const host = agent({
  name: 'host',
  instructions: 'You write menus.',
  tools: { translate_all: translateAll },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return `Menu: ${last.content}`
    return { calls: [{ name: 'translate_all', input: { words: ['bread', 'wine'] } }] }
  }),
})

const runtime = createRuntime()
const run = runtime.run(host, 'A menu, please.')
const paths = new Set<string>()
for await (const event of run) paths.add(event.path.join(' > '))
const { text, children } = await run.result
await runtime.close()

console.log(text)
console.log([...paths].join(', '))
assert.equal(children, 2)
assert.ok(paths.has('host > translator'))
