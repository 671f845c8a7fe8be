import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { speaker, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { eventsOfType } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('turns of one conversation on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('two runs go one after the other, and the second sees the first', async () => {
    const gate = makeGate()
    const model = scriptedModel(async (_, call) => {
      if (call === 0) await gate.opened
      return call === 0 ? 'first answer' : 'second answer'
    })
    const talker = agent({ name: 'talker', instructions: '', model })
    const { runtime } = start()
    const one = runtime.run(talker, 'first question')
    await until('the first', () => world.store.turn(one.id))
    const two = runtime.run(talker, 'second question', { conversationId: one.conversationId })
    await until('the second', () => world.store.turn(two.id)?.state === 'queued')
    expect(model.requests).toHaveLength(1)

    gate.open()
    const outcomes = [await one.result, await two.result]

    expect(outcomes.map(({ text }) => text)).toEqual(['first answer', 'second answer'])
    expect(model.requests[1]?.messages.map(({ content }) => content)).toEqual([
      'first question',
      'first answer',
      'second question',
    ])
    const types = ['run-queued', 'run-start', 'run-end'] as const
    const told = types.flatMap((type) => eventsOfType(world.store, one.conversationId, type))
    expect(told.toSorted((a, b) => a.seq - b.seq).map(({ type, runId }) => [type, runId])).toEqual([
      ['run-start', one.id],
      ['run-queued', two.id],
      ['run-end', one.id],
      ['run-start', two.id],
      ['run-end', two.id],
    ])
  })

  test('a queued run that is cancelled never starts, and the one behind it does', async () => {
    const gate = makeGate()
    const model = scriptedModel(async (_, call) => {
      if (call === 0) await gate.opened
      return `answer ${call}`
    })
    const talker = agent({ name: 'talker', instructions: '', model })
    const { runtime } = start()
    const one = runtime.run(talker, 'one')
    await until('the first', () => world.store.turn(one.id))
    const two = runtime.run(talker, 'two', { conversationId: one.conversationId })
    await until('the second', () => world.store.turn(two.id))
    const three = runtime.run(talker, 'three', { conversationId: one.conversationId })
    await until('the third', () => world.store.turn(three.id))

    await two.cancel('changed my mind')
    expect(await two.result).toMatchObject({ status: 'cancelled', modelCalls: 0, durationMs: 0 })
    gate.open()

    expect(await three.result).toMatchObject({ status: 'completed', text: 'answer 1' })
    expect(world.store.turn(two.id)).toMatchObject({ startedAt: null, state: 'ended' })
    expect(model.requests).toHaveLength(2)
  })

  test('the run behind one that is cancelled starts', async () => {
    const model = scriptedModel((_, call) => (call === 0 ? { text: 'x', delayMs: 60_000 } : 'after'))
    const talker = agent({ name: 'talker', instructions: '', model })
    const { runtime } = start()
    const one = runtime.run(talker, 'one')
    await until('the first call', () => model.requests.length === 1)
    const two = runtime.run(talker, 'two', { conversationId: one.conversationId })
    await until('the second', () => world.store.turn(two.id))

    await one.cancel()

    expect(await two.result).toMatchObject({ status: 'completed', text: 'after' })
  })

  test('ten runs started at once, from two processes, all run, one at a time', async () => {
    let running = 0
    const talker = agent({
      name: 'talker',
      instructions: '',
      model: scriptedModel(async () => {
        expect(++running).toBe(1)
        await new Promise((resolve) => setTimeout(resolve, 1))
        running--
        return 'ok'
      }),
    })
    const processes = [start({ agents: [talker] }), start({ agents: [talker] })] as const
    const { conversationId } = await processes[0].runtime.run(talker, 'begin').result

    const runs = Array.from({ length: 10 }, (_, n) =>
      processes[n % 2 === 0 ? 0 : 1].runtime.run(talker, `run ${n}`, { conversationId }),
    )
    const outcomes = await Promise.all(runs.map(({ result }) => result))

    expect(outcomes.every(({ status }) => status === 'completed')).toBe(true)
    const turns = world.store.turnsOf(conversationId, { limit: 99 })
    expect(turns.map(({ ordinal }) => ordinal)).toEqual(Array.from({ length: 11 }, (_, n) => n))
    expect(world.store.conversation(conversationId)?.activeTurnId).toBeNull()
  })

  test('a queued run goes on in the process that is left when the one that started it is gone', async () => {
    const entered = makeGate()
    const stuck = scriptedModel(() => {
      entered.open()
      return { text: 'never', delayMs: 60_000 }
    })
    const first = start()
    const one = first.runtime.run(agent({ name: 'talker', instructions: '', model: stuck }), 'one')
    await entered.opened
    const two = first.runtime.run(agent({ name: 'talker', instructions: '', model: stuck }), 'two', {
      conversationId: one.conversationId,
    })
    await until('the second', () => world.store.turn(two.id))
    await first.kill()

    const second = start({ agents: [speaker('talker', 'here')] })
    const runs = await second.runtime.resume()

    expect(runs.map(({ id }) => id).toSorted()).toEqual([one.id, two.id].toSorted())
    for (const run of runs) expect(await run.result).toMatchObject({ status: 'completed', text: 'here' })
  })
})
