import { expect, onTestFinished, test } from 'vitest'
import { makeGate } from '../../../test/support/gate.ts'
import { localStore } from '../../../test/support/rows.ts'
import { memoryStore } from '../../core/store/memory/index.ts'
import { agent, createRuntime, type Runtime } from '../../index.ts'
import { commitOf, conversationRow, nodeRow, placeIn, turnRow } from '../../testing/conformance/store-rows.ts'
import { scriptedModel } from '../../testing/stand-ins/scripted-model.ts'
import { activityReader, openStateOf } from './activity.ts'
import { totalSpend } from './words.ts'

/** A run of "editor" that could go on, in a store on which a process works that has the code of another agent only. */
async function waiting(createdAt: number): Promise<{ state: string; doing: string | undefined }> {
  const place = placeIn('root-a')
  const store = memoryStore()
  await store.commit(
    commitOf('root-a', {
      conversations: [conversationRow('root-a', { activeTurnId: place.turnId, turnCount: 1 })],
      turns: [turnRow(place, { createdAt, nodeCount: 1 })],
      nodes: [nodeRow(place, 'n-1', { createdAt })],
    }),
  )
  const other = agent({ name: 'other', instructions: '', model: scriptedModel([]) })
  const runtime: Runtime = createRuntime({ store, agents: [other] })
  onTestFinished(() => runtime.close())
  await runtime.resume()
  const turn = store.turn(place.turnId) ?? turnRow(place)
  return {
    state: (await openStateOf(runtime, turn)).state,
    doing: (await activityReader(runtime, [turn.id]))(turn.id)?.text,
  }
}

test('what no process takes up although some live is unattended; it is given a moment', async () => {
  expect(await waiting(Date.now())).toEqual({ state: 'running', doing: 'waiting for a worker' })
  expect(await waiting(Date.now() - 60_000)).toEqual({
    state: 'unattended',
    doing: 'no process works on it: continue with legate resume --module FILE',
  })
})

test('a run says what it does now: it thinks, waits for whom it asked, or tries again later', async () => {
  const [asked, held] = [makeGate(), makeGate()]
  let tries = 0
  const child = agent({
    name: 'child',
    instructions: '',
    model: scriptedModel(async () => {
      if (tries++ === 0) return { error: Object.assign(new Error('busy'), { isRetryable: true }) }
      asked.open()
      await held.opened
      return 'ok'
    }),
  })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'go' } }] }, 'done'])
  const runtime = createRuntime()
  onTestFinished(() => runtime.close())
  const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: child } }), 'go')
  const doing = async (id = '') => (await activityReader(runtime, [run.id]))(id)?.text
  for await (const { type } of run) if (type === 'retry') break
  const [link] = localStore(runtime).linksOf(run.id)

  expect([await doing(run.id), await doing(link?.id)]).toEqual([
    'waiting for child',
    expect.stringMatching(/^retrying in \d/),
  ])
  await asked.opened
  expect(await doing(link?.id)).toBe('thinking')
  held.open()
  await run.result
})

test('the money of a sum with an unknown part is unknown; what used nothing counts for nothing', () => {
  const [known, unknown, nothing] = [
    { tokens: 5, usd: 0.5 },
    { tokens: 1, usd: null },
    { tokens: 0, usd: null },
  ]

  expect(totalSpend([known, known, nothing])).toEqual({ tokens: 10, usd: 1 })
  expect(totalSpend([known, unknown])).toEqual({ tokens: 6, usd: null })
  expect(totalSpend([nothing])).toEqual({ tokens: 0, usd: 0 })
})
