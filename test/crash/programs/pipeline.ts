import { agent } from 'legate'
import { countEffect, crashWorker, passPoint, scriptedModel, workerRole } from 'legate/testing'
import { QUICK, recorded, roundsOf } from './parts.ts'

// 40 items in two stages, no barrier, 9 at a time: a second stage begins when its item is ready, so calls come in the order in
// which children end. Its role says how many model calls are answered before the others hang, and in what order items begin.
const { answers, reversed = false } = JSON.parse(workerRole()) as { answers: number; reversed?: boolean }

let asked = 0

/** Answers sooner or later, so that children end in an order of their own. */
const model = () =>
  scriptedModel(async ({ messages, path }) => {
    const content = String(messages.at(-1)?.content)
    await countEffect('model', path.join('/'))
    passPoint(`asks: ${path.at(-1)} ${content}`)
    const number = ++asked
    if (number > answers) {
      // So many are asked only when all that were answered have ended.
      if (number === answers + AT_ONCE) passPoint('all:asked')
      return new Promise(() => undefined)
    }
    await new Promise((resolve) => setTimeout(resolve, (number * 7) % 11))
    return `${content}.`
  })

const ITEMS = 40
const AT_ONCE = 9

const lead = agent({
  name: 'lead',
  effect: 'idempotent',
  subagents: {
    draft: agent({ name: 'draft', instructions: 'Draft.', model: model() }),
    check: agent({ name: 'check', instructions: 'Check.', model: model() }),
  },
  budget: { children: 1_000, concurrency: AT_ONCE },
  reply: async (_, { delegate, path }) => {
    await countEffect('model', path.join('/'))
    const items = Array.from({ length: ITEMS }, (_, number) => `item ${number}`)
    const said = new Map<string, string | null>()
    const waiting = reversed ? items.toReversed() : [...items]
    const work = async () => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
        const { text } = await delegate('draft', item)
        said.set(item, (await delegate('check', text ?? '')).text)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    passPoint('lead:done')
    return items.map((item) => said.get(item)).join(' ')
  },
})

await crashWorker({
  options: { agents: [lead], engine: QUICK },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'pipeline')).length === 0) {
      await recorded(runtime.run(lead, 'Go.', { title: 'pipeline' }))
    }
    for (const { id } of await roundsOf(store, 'pipeline')) await (await runtime.attach(id)).result
  },
})
