import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/core/base/clock.ts'
import { usageStats } from '../../../src/core/conversation/usage-stats.ts'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { useWorld } from '../../support/agents.ts'
import { stores } from '../../support/stores.ts'
import { say } from './support.ts'

const usage = { inputTokens: 10, outputTokens: 5 }
const child = agent({
  name: 'child',
  description: 'helps',
  instructions: '',
  model: script(() => ({ text: 'ok', usage })),
})
const one = agent({
  name: 'one',
  instructions: '',
  subagents: { ask: child },
  model: script(({ messages }) => {
    const said = messages.at(-1)
    const isAsked = said?.role === 'user' && said.content === 'ask'
    return isAsked ? { calls: [{ name: 'ask', input: { message: 'x' } }], usage } : { text: 'ok', usage }
  }),
})

describe.each(stores)('what was used, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a lane, and a time, cost what they have of the log, however long the rest is', async () => {
    const { runtime } = start()
    const root = await say(runtime, one, 'a')
    const rootId = root.run.conversationId
    const talk = await runtime.conversation(rootId)
    const { id: laneId } = await talk.history.fork(root.answer.id)
    const inLane = async () => {
      await say(runtime, one, 'ask', laneId)
      for (let round = 0; round < 40; round++) await say(runtime, one, 'b', rootId)
      await say(runtime, one, 'c', laneId)
    }
    await inLane()
    const short = await counted(world.store, (store) => usageStats(store, { id: laneId, rootId }, {}))
    for (let round = 0; round < 100; round++) await say(runtime, one, 'b', rootId)
    await new Promise((resolve) => setTimeout(resolve, 3))
    const late = Date.now()
    await say(runtime, one, 'ask', rootId)
    const long = await counted(world.store, (store) => usageStats(store, { id: laneId, rootId }, {}))
    const lately = await counted(world.store, (store) => usageStats(store, { id: rootId, rootId }, { since: late }))
    const childId = Object.keys((await talk.usageStats({ of: 'tree' })).byLane).find(
      (id) => ![rootId, laneId].includes(id),
    )
    const inChild = await counted(world.store, (store) => usageStats(store, { id: childId ?? '', rootId }, {}))

    expect(short.stats.total.calls).toBe(3)
    expect(long.stats).toEqual(short.stats)
    expect(long.read).toBeLessThan(200)
    expect(long.read - short.read).toBeLessThan(40)
    expect(lately.stats.total.calls).toBe(2)
    expect(lately.read).toBeLessThan(100)
    expect([inChild.stats.total.calls, inChild.read < 100]).toEqual([1, true])
    expect(world.store.lastSeq(rootId)).toBeGreaterThan(700)
  })

  test('is the same as the sum of all calls in the log, for every lane, child and time', async () => {
    const { runtime } = start()
    const root = await say(runtime, one, 'ask')
    const rootId = root.run.conversationId
    const talk = await runtime.conversation(rootId)
    const lanes = [rootId]
    for (let round = 0; round < 12; round++) {
      if (round % 4 === 0) lanes.push((await talk.history.fork(root.answer.id)).id)
      const waiting = lanes.map((id, at) =>
        runtime.run(one, (round + at) % 3 === 0 ? 'ask' : 'a', { conversationId: id }),
      )
      const more = runtime.run(one, 'queued', { conversationId: lanes.at(-1) ?? '' })
      if (round % 5 === 0) await more.cancel()
      await Promise.all([...waiting, more].map(({ result }) => result))
    }
    const events = [...world.store.events(rootId, 0, 100_000)]
    const ids = [...new Set(events.map(({ conversationId }) => conversationId))]
    const times = [0, 0.2, 0.5, 0.9].map((part) => events[Math.floor(part * events.length)]?.at ?? 0)

    const begins = [Number.NEGATIVE_INFINITY, ...times]
    const ends = [Number.POSITIVE_INFINITY, ...times]
    const ranges = begins.flatMap((since) => ends.map((until) => ({ since, until })))

    expect(ids.length).toBeGreaterThan(10)
    for (const range of ranges) {
      const calls = events.filter(({ at, body }) => body.type === 'usage' && at >= range.since && at < range.until)
      const ofTree = await usageStats(world.store, { id: rootId, rootId }, { ...range, of: 'tree' })
      expect(ofTree.total.calls).toBe(calls.length)
      const found = await Promise.all(ids.map((id) => usageStats(world.store, { id, rootId }, range)))
      expect(found.map(({ total }) => total.calls)).toEqual(
        ids.map((id) => calls.filter(({ conversationId }) => conversationId === id).length),
      )
    }
  })

  test('a clock that is set back, between two turns or in one, hides no call', async () => {
    let ahead = HOUR
    const clock: Clock = {
      now: () => Date.now() + ahead,
      at: (time, run, options) => systemClock.at(time - ahead, run, options),
    }
    const model = script(({ messages }) => {
      if (messages.at(-1)?.content === 'back') ahead = 0
      return { text: 'ok', usage }
    })
    const talker = agent({ name: 'talker', instructions: '', model })
    const { runtime } = start({ clock })
    const { run } = await say(runtime, talker, 'early')
    await say(runtime, talker, 'back', run.conversationId)
    await say(runtime, talker, 'late', run.conversationId)
    const [before, half] = [Date.now() - HOUR, Date.now() + HOUR / 2]
    const lane = { id: run.conversationId, rootId: run.conversationId }
    const calls = async (since: number, until: number) =>
      (await usageStats(world.store, lane, { since, until })).total.calls

    expect([await calls(half, half + HOUR), await calls(before, half)]).toEqual([1, 2])
  })
})

const HOUR = 3_600_000

function script(says: Parameters<typeof scriptedModel>[0]) {
  return scriptedModel(says, 'openai/gpt-5')
}

/** What it gives, and how many events it read for it. */
async function counted<T>(
  store: LocalStore,
  ask: (store: LocalStore) => Promise<T>,
): Promise<{ readonly stats: T; readonly read: number }> {
  let read = 0
  const events: LocalStore['events'] = (...asked) => {
    const found = store.events(...asked)
    read += found.length
    return found
  }
  const stats = await ask({ ...store, events })
  return { stats, read }
}
