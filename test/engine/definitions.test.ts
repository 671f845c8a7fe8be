import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, simpleTool, speaker, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { eventsOfType } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('the code of an agent, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('code that changed goes on with what is there now, and says so once', async () => {
    const { run } = await begunByAnother()
    const model = scriptedModel(callsThenSays('work'))
    const changed = agent({
      name: 'clerk',
      instructions: 'New instructions.',
      model,
      tools: { work: simpleTool(() => 'worked', { effect: 'pure' }) },
    })
    const { runtime } = start({ agents: [changed] })

    const [resumed] = await runtime.resume()
    const outcome = await resumed?.result

    expect(outcome).toMatchObject({ status: 'completed', text: 'worked' })
    expect(model.requests[0]?.messages[0]).toEqual({ role: 'system', content: 'New instructions.' })
    expect(eventsOfType(world.store, run.conversationId, 'definition-changed')).toMatchObject([
      { agent: 'clerk', from: expect.any(String), to: changed.identity.ref.hash },
    ])
    expect(world.store.conversation(run.conversationId)?.agent).toEqual({
      name: 'clerk',
      hash: changed.identity.ref.hash,
    })
  })

  test('code that is the same in another process is no change', async () => {
    const { run, clerk } = await begunByAnother()
    const same = agent({ name: 'clerk', instructions: 'Old instructions.', model: scriptedModel(['done']) })
    expect(same.identity.ref.hash).toBe(clerk.identity.ref.hash)
    const { runtime } = start({ agents: [same] })

    const [resumed] = await runtime.resume()
    await resumed?.result

    expect(eventsOfType(world.store, run.conversationId, 'definition-changed')).toEqual([])
  })

  test('code that is missing leaves its node pending until a process comes that has it', async () => {
    const { run } = await begunByAnother()
    const without = start({ agents: [speaker('somebody')] })
    await without.runtime.resume()
    const node = await until('the recovered node', () =>
      world.store.nodesOf(run.id).find(({ kind, state }) => kind === 'agent_message' && state === 'pending'),
    )
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(world.store.node(node.id)).toMatchObject({ state: 'pending', recoveries: 1 })
    const attached = await without.runtime.attach(run.id)

    await start({ agents: [speaker('clerk', 'here I am')] }).runtime.resume()

    expect(await attached.result).toMatchObject({ status: 'completed', text: 'here I am' })
  })

  test('becomes known to a process that is already running when it starts that agent', async () => {
    const { run } = await begunByAnother()
    const { runtime } = start({ agents: [speaker('somebody')] })
    await runtime.resume()

    await runtime.run(speaker('clerk', 'me too'), 'another').result

    expect(await (await runtime.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'me too' })
  })

  test('of a node kind is needed too', async () => {
    const talker = speaker('speaker')
    const first = start({ agents: [talker], kinds: { work: { execute: () => 'done' } } })
    const { conversationId } = await first.runtime.run(talker, 'begin').result
    const without = start({ agents: [talker] })
    await without.runtime.resume()
    await first.runtime.close()
    const heir = start({ agents: [talker], kinds: { work: { execute: () => 'done' } } })
    const talk = await heir.runtime.conversation(conversationId)

    const turnId = await talk.mutate((m) => {
      m.createNode({ kind: 'work' })
      return m.runId
    })

    expect(await (await heir.runtime.attach(turnId)).result).toMatchObject({ status: 'completed' })
    expect(world.store.nodesOf(turnId)[0]).toMatchObject({ state: 'finished', epoch: 1 })
  })

  /** A run of "clerk" whose process was killed in its first model call. */
  async function begunByAnother() {
    const entered = makeGate()
    const model = scriptedModel(() => {
      entered.open()
      return { text: 'never', delayMs: 60_000 }
    })
    const clerk = agent({ name: 'clerk', instructions: 'Old instructions.', model })
    const first = start()
    const run = first.runtime.run(clerk, 'go')
    await entered.opened
    await first.kill()
    return { run, clerk }
  }
})
