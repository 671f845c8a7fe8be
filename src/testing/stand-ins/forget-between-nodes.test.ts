import { agent, createRuntime } from 'legate'
import { expect, test, vi } from 'vitest'
import { callBeforeNodes, type Runtime } from '../../core/runtime/runtime.ts'
import { memoryStore } from '../../core/store/memory/index.ts'
import { forgetBetweenNodes } from './forget-between-nodes.ts'
import { scriptedModel } from './scripted-model.ts'

test('every runtime forgets before each node what is not in the rows', async () => {
  const isFresh = process.env['LEGATE_FRESH'] === '1'
  const store = memoryStore()
  const reopen = vi.spyOn(store, 'reopen')
  const runtime: Runtime = createRuntime({ store })
  const drop = vi.spyOn(runtime, 'dropCaches')
  const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'found') })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x' } }] }, 'done'])
  const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child } })
  forgetBetweenNodes()
  try {
    expect((await runtime.run(host, 'go').result).text).toBe('done')
  } finally {
    if (!isFresh) callBeforeNodes(() => undefined)
    await runtime.close()
  }

  expect([reopen.mock.calls.length, drop.mock.calls.length]).toEqual([3, 3])
})
