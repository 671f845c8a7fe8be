import { agent } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { readTrees } from '../../../src/core/graph/reader.ts'
import { brokenGraph } from '../../../src/testing/crash/aftermath.ts'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { QUICK } from '../../support/process.ts'
import { stores } from '../../support/stores.ts'
import { data, gaveIn, lastSaid, resultsIn, tasksIn, until, workerOf } from './support.ts'

describe.each(stores)('a call that passes its time is promoted to the background, on %s', (_, create) => {
  const world = useWorld(create)

  function slowHost(slow: { readonly opened: Promise<void> }, hasTools: boolean, promoteAfterMs = 30) {
    const script: Script = (request) => {
      if (lastSaid(request).startsWith('[background]')) return `told: ${lastSaid(request)}`
      return resultsIn(request).length === 0 ? { calls: [{ name: 'work', input: { message: 'x' } }] } : 'went on'
    }
    const worker = workerOf(async () => {
      await slow.opened
      return 'the same run'
    })
    return agent({
      name: 'host',
      instructions: 'Host.',
      model: scriptedModel(script),
      tools: hasTools ? { ...backgroundSubagents() } : {},
      subagents: { work: { agent: worker, promoteAfterMs } },
    })
  }

  test.each([true, false])('the same run goes on, and its end is told once (with the tools: %s)', async (hasTools) => {
    const slow = makeGate()
    const host = slowHost(slow, hasTools)
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    const outcome = await run.result
    const [promoted] = gaveIn(world.store, run.id)
    const [link] = world.store.linksOf(run.id)

    expect(outcome).toMatchObject({ status: 'completed', text: 'went on', open: [link?.id] })
    expect(promoted).toMatchObject({
      ok: true,
      status: 'promoted',
      child_conversation_id: link?.childConversationId,
    })
    slow.open()
    await runtime.idle()

    const links = world.store.linksOf(run.id)
    const [, told] = world.store.turnsOf(run.conversationId, { limit: 9 })
    expect(links).toHaveLength(1)
    expect(links[0]).toMatchObject({ mode: 'background', outcome: { status: 'completed' } })
    expect(links[0]?.deliveredTo).toBe(world.store.nodesOf(told?.id ?? '')[0]?.id)
    expect(data(String(world.store.nodesOf(told?.id ?? '')[0]?.input.content).split('\n')[1])).toMatchObject({
      outcome: 'completed',
      text: 'the same run',
    })
    expect(readTrees(world.store).flatMap(brokenGraph)).toEqual([])
  })

  test('a call whose child is in time is as ever', async () => {
    const slow = makeGate()
    slow.open()
    const host = slowHost(slow, true)
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    expect(world.store.linksOf(run.id)[0]).toMatchObject({ mode: 'parked' })
    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(1)
  })

  test("the promotion needs rows only: a process without the child's process does it", async () => {
    const slow = makeGate()
    const host = slowHost(slow, true, 400)
    const first = world.start({ agents: [host], engine: QUICK })
    const run = first.runtime.run(host, 'go')
    await until(() => tasksIn(world.store, run.id).find(({ state }) => state === 'waiting'))
    await first.kill()
    const bystander = world.start({ agents: [], engine: QUICK })
    await bystander.runtime.resume()
    await until(() => tasksIn(world.store, run.id).find(({ state }) => state === 'finished'))
    expect(world.store.linksOf(run.id)[0]).toMatchObject({ mode: 'background', outcome: null })
    slow.open()
    const second = world.start({ agents: [host], engine: QUICK })
    await second.runtime.resume()
    await second.runtime.idle()

    expect(world.store.turnsOf(run.conversationId, { limit: 9 })).toHaveLength(2)
  })
})

test('an invalid time is refused when the agent is defined', () => {
  const worker = workerOf()

  for (const promoteAfterMs of [0, -1, Number.NaN, 'soon' as never]) {
    expect(() =>
      agent({ name: 'h', instructions: 'x', subagents: { work: { agent: worker, promoteAfterMs } } }),
    ).toThrow('promoteAfterMs')
  }
})
