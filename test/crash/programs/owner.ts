import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, type Effect, type StandardSchema, tool } from 'legate'
import type { Model } from 'legate/models'
import { countEffect, crashWorker, tellTest, workerRole } from 'legate/testing'
import { heldFile } from '../support/held.ts'
import { ANYTHING, call, counted, recorded, roundsOf, steppingModel } from './parts.ts'

let hasHeld = false

/**
 * A run that a process is held up in, at the place its role names, in the middle of its code and of no commit, until the
 * test removes a file: the whole process, or only this place while the rest of it is awake.
 */
async function hold(place: string): Promise<void> {
  const [own, isAwake] = workerRole().split('/')
  if (own !== place || hasHeld) return
  hasHeld = true
  const held = heldFile(process.pid)
  writeFileSync(held, '')
  tellTest('held')
  while (isAwake && existsSync(held)) await sleep(5)
  while (existsSync(held)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
}

function holding(name: string, effect: Effect) {
  return tool({
    description: `Does ${name}.`,
    input: ANYTHING,
    effect,
    execute: async (_, { idempotencyKey }) => {
      await countEffect(name, idempotencyKey)
      await hold(name)
      await sleep(20)
      return `${name} is done.`
    },
  })
}

const talker = steppingModel({ chunks: ['Once', ' upon', ' a time.'] })

const streaming: Model = {
  id: talker.id,
  async *stream(request, options) {
    for await (const part of talker.stream(request, options)) {
      yield part
      if (part.type === 'text-delta') await hold('model')
    }
  },
}

/** The last of our code before a child is made. */
const checked: StandardSchema = {
  '~standard': {
    ...ANYTHING['~standard'],
    validate: async (value) => {
      await hold('spawn')
      return { value }
    },
  },
}

const child = agent({
  name: 'child',
  instructions: 'Help.',
  input: checked,
  tools: { look: counted('look', 'pure') },
  model: streaming,
})

const parent = agent({
  name: 'parent',
  instructions: 'Lead.',
  tools: { pure: holding('pure', 'pure'), effectful: holding('effectful', 'effectful') },
  subagents: { ask: child },
  model: steppingModel({ calls: [call('pure'), call('effectful'), call('ask')] }),
})

await crashWorker({
  options: { agents: [parent], engine: { sweepMs: 20, graceMs: 100, leaseMs: 600 } },
  drive: async ({ runtime, store }) => {
    if ((await roundsOf(store, 'owner')).length === 0) await recorded(runtime.run(parent, 'Go.', { title: 'owner' }))
    for (const { id } of await roundsOf(store, 'owner')) await (await runtime.attach(id)).result
  },
})
