import { expect, onTestFinished, test } from 'vitest'
import { agent, createRuntime, memoryStore, type Runtime } from '../../index.ts'
import { scriptedModel } from '../../testing/scripted-model.ts'
import { commitOf, conversationRow, nodeRow, placeIn, turnRow } from '../../testing/store-rows.ts'
import { doingIn } from './doing.ts'
import { standingOf } from './standing.ts'

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
  return { state: standingOf(runtime, turn).state, doing: doingIn(runtime)(turn.id)?.text }
}

test('what no process takes up although some live is unattended; it is given a moment', async () => {
  expect(await waiting(Date.now())).toEqual({ state: 'running', doing: 'waiting for a worker' })
  expect(await waiting(Date.now() - 60_000)).toEqual({
    state: 'unattended',
    doing: 'no process works on it: legate resume',
  })
})
