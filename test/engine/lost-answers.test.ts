import { expect, test } from 'vitest'
import { StoreError } from '../../src/core/base/error.ts'
import type { Commit } from '../../src/core/graph/commit.ts'
import { createRuntime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'

const quiet = () => undefined

test('a commit that was stored although its answer never came: what it claimed goes on, in the only process there is', async () => {
  const store = memoryStore()
  let isLost = false
  const commit = (given: Commit) => {
    store.commit(given)
    if (given.kind !== 'expand' || isLost) return
    isLost = true
    throw new StoreError('store_busy', 'The database has not answered.')
  }
  const sub = agent({ name: 'sub', instructions: 'Work.', model: scriptedModel(() => 'done') })
  const host = agent({
    name: 'host',
    instructions: 'Delegate.',
    subagents: { sub: { agent: sub, briefing: 'none' } },
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'finished' : { calls: [{ name: 'sub', input: { message: 'go' } }] },
    ),
  })
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const runtime = createRuntime({ store: { ...store, commit }, agents: [host], engine: { sweepMs: 20 }, logger })

  const { status } = await runtime.run(host, 'hi').result

  expect([isLost, status]).toEqual([true, 'completed'])
  await runtime.close()
})
