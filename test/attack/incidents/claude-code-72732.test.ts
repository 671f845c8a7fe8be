import { type AnyAgent, agent } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { openRuntime } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

/** Five were planned, 361 ran. More of it, with limits of tokens and time, is in runaway.test.ts. */
test('claude-code 72732: agents that start agents in every way they can stay within the budget of the tree', async () => {
  const spawn = { name: 'subagent_spawn', input: { name: 'again', prompt: 'again' } }
  const run = { name: 'subagent_run', input: { name: 'again', prompt: 'again' } }
  const model = scriptedModel(() => ({
    calls: [spawn, run, { name: 'again', input: { message: 'again' } }, spawn, run],
    usage: { inputTokens: 10, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0 },
  }))
  const hydra: AnyAgent = agent({
    name: 'hydra',
    instructions: '',
    model,
    tools: { ...backgroundSubagents({ nested: true }) },
    subagents: { again: (): AnyAgent => hydra },
    budget: { depth: 3, children: 6, modelCalls: 3, tokens: 3_000, wallMs: 20_000 },
  })
  const runtime = openRuntime()
  const { id, result } = runtime.run(hydra, 'go' as never)
  await result
  await runtime.idle()

  const depths = turnsBelow(localStore(runtime), id)
  expect(Math.max(...depths)).toBeLessThanOrEqual(3)
  expect(localStore(runtime).linksOf(id).length).toBeLessThanOrEqual(6)
  expect(localStore(runtime).turn(id)?.spend?.spent.tokens).toBeLessThanOrEqual(3_000)
  expect(model.requests.length).toBeLessThanOrEqual(3_000 / 20)
  expect(localStore(runtime).openTurns(1)).toEqual([])
})

function turnsBelow(store: LocalStore, turnId: string): number[] {
  const links = store.linksOf(turnId)
  return [0, ...links.flatMap(({ id, depth }) => [depth, ...turnsBelow(store, id)])]
}
