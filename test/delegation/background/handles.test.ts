import { getEventListeners } from 'node:events'
import { agent, tool } from 'legate'
import { backgroundSubagents, joinSpawned, type SpawnedAgent } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { QUICK } from '../../support/process.ts'
import { memoryRows, stores } from '../../support/stores.ts'
import { hostOf, lastSaid, playing, resultsIn, spawnCall, tasksIn, until, workerOf } from './support.ts'

const echoing: Script = (request) => `heard ${lastSaid(request)}`
const byText: Script = (request) =>
  lastSaid(request) === 'slow'
    ? { text: 'never', delayMs: 60_000 }
    : lastSaid(request) === 'bad'
      ? { error: new Error('bad') }
      : 'ok'

describe.each(stores)('runtime.spawn gives a handle, on %s', (_, create) => {
  const world = useWorld(create)

  test('to wait for it in time, look at it, talk to it and stop it', async () => {
    const slow = makeGate()
    const worker = workerOf(async (request) => {
      if (lastSaid(request) === 'wait') await slow.opened
      return lastSaid(request) === 'hang' ? { text: 'x', delayMs: 60_000 } : `heard ${lastSaid(request)}`
    })
    const { runtime } = world.start({ agents: [worker], engine: QUICK })
    const handle = await runtime.spawn(worker, 'wait')

    expect(await handle.wait({ timeoutMs: 20 })).toBeNull()
    expect(await handle.poll()).toMatchObject({ status: 'running', outcome: null, transcriptLines: ['U:wait'] })
    slow.open()
    expect(await handle.result()).toMatchObject({ status: 'completed', text: 'heard wait' })
    await handle.send('more')
    expect(await handle.wait()).toMatchObject({ text: 'heard more' })
    expect(await handle.poll()).toMatchObject({ status: 'idle', outcome: 'completed' })
    await handle.send('hang')
    await handle.cancel('enough')
    expect(await handle.result()).toMatchObject({ status: 'cancelled', error: { message: 'enough' } })
    expect(world.store.turnsOf(handle.conversationId, { limit: 9 })).toHaveLength(3)
  })

  test.each([true, false])(
    'inside a tool it is a child of the call; the host hears of its end once (awaited: %s)',
    async (isAwaited) => {
      const slow = makeGate()
      const worker = workerOf(async (request) => {
        await slow.opened
        return echoing(request, 0)
      })
      const start = tool({
        description: 'Starts one.',
        input: { type: 'object' },
        effect: 'idempotent',
        execute: async () => {
          const handle: SpawnedAgent = await runtime.spawn(worker, 'go')
          if (!isAwaited) return handle.conversationId
          slow.open()
          await handle.send('and more')
          return (await handle.result()).text
        },
      })
      const script: Script = (request) => {
        if (lastSaid(request).startsWith('[background]')) return `told: ${lastSaid(request)}`
        return resultsIn(request)[0] ?? { calls: [{ name: 'start', input: {} }] }
      }
      const host = agent({ name: 'host', instructions: 'x', model: scriptedModel(script), tools: { start } })
      const { runtime } = world.start({ agents: [host, worker], engine: QUICK })
      const run = runtime.run(host, 'go')
      const { text } = await run.result
      slow.open()
      await runtime.idle()

      const links = world.store.linksOf(run.id)
      const [task] = tasksIn(world.store, run.id)
      expect(
        links.every(
          ({ mode, taskId, deliveredTo }) => mode === 'background' && taskId === task?.id && deliveredTo !== null,
        ),
      ).toBe(true)
      expect(links).toHaveLength(isAwaited ? 2 : 1)
      if (isAwaited) expect(text).toBe('heard and more')
      else expect(links[0]?.childConversationId).toBe(text)
      expect(links.at(-1)?.deliveredTo === task?.id).toBe(isAwaited)
    },
  )

  test('idle waits for the whole tree, also for what was started before it was recorded', async () => {
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall('a'), spawnCall('b')] })),
      {
        agent: workerOf(() => ({ text: 'ok', delayMs: 30 })),
      },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await runtime.idle()

    expect(world.store.openTurns(9)).toEqual([])
    expect(world.store.linksOf(run.id).map(({ outcome }) => outcome?.status)).toEqual(['completed', 'completed'])
    await runtime.idle(run.id)
    await expect(runtime.idle('nobody')).rejects.toThrow('There is no run nobody')
  })
})

describe('joins of handles', () => {
  const world = useWorld(memoryRows)

  test.each<[Parameters<typeof joinSpawned>[1], string[], string, (string | null)[]]>([
    ['all', ['a', 'b'], 'met', ['completed', 'completed']],
    ['all', ['slow', 'bad'], 'not_met', [null, 'failed']],
    ['any', ['slow', 'a'], 'met', [null, 'completed']],
    ['any', ['bad', 'bad'], 'not_met', ['failed', 'failed']],
    [2, ['a', 'slow', 'b'], 'met', ['completed', null, 'completed']],
    ['settled', ['a', 'bad'], 'met', ['completed', 'failed']],
  ])('%j over %j is %s', async (how, inputs, status, outcomes) => {
    const worker = workerOf(byText)
    const { runtime } = world.start({ agents: [worker], engine: QUICK })
    const handles = await Promise.all(inputs.map((input) => runtime.spawn(worker, input)))
    const joined = await joinSpawned(handles, how, { losers: 'cancel' })
    await runtime.idle()

    expect(joined.status).toBe(status)
    expect(joined.outcomes.map((outcome) => outcome?.status ?? null)).toEqual(outcomes)
    const ends = handles.map(({ id }) => world.store.turn(id)?.outcome?.status)
    expect(ends).toEqual(outcomes.map((outcome) => outcome ?? 'cancelled'))
  })

  test('a join that takes too long leaves them all', async () => {
    const worker = workerOf(byText)
    const { runtime } = world.start({ agents: [worker], engine: QUICK })
    const handle = await runtime.spawn(worker, 'slow')
    const joined = await joinSpawned([handle], 'all', { timeoutMs: 10, losers: 'cancel' })

    expect(joined).toEqual({ status: 'timed_out', outcomes: [null] })
    expect(world.store.turn(handle.id)?.cancel).toBeNull()
    await handle.cancel()
    await runtime.idle()
  })

  test('what could not be recorded is thrown', async () => {
    const typed = agent({
      name: 't',
      instructions: 'x',
      input: { type: 'object', required: ['x'] },
      model: scriptedModel(() => 'ok'),
    })
    const { runtime } = world.start({ agents: [typed], engine: QUICK })

    await expect(runtime.spawn(typed, {})).rejects.toThrow('The input of "t" is wrong')
  })
})

describe('reading a child by its reference', () => {
  const world = useWorld(memoryRows)

  test("the words of the child are in its own log; the host's has none of its deltas", async () => {
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall('x', 'hello')] })),
      {
        agent: workerOf(() => ({ chunks: ['child ', 'says ', 'this'] })),
      },
    )
    const { runtime } = world.start({ agents: [host], engine: QUICK })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()
    const [link] = world.store.linksOf(run.id)
    const child = await runtime.conversation(link?.childConversationId ?? '')
    const talk = await runtime.conversation(run.conversationId)

    expect((await child.recentTurns()).map(({ text }) => text)).toEqual(['hello', 'child says this'])
    expect((await child.eventPage({ types: ['message'], limit: 2 })).length).toBe(2)
    const own = await talk.eventPage({ limit: 500 })
    expect(own.every(({ conversationId }) => conversationId === run.conversationId)).toBe(true)
    expect(await child.row()).toMatchObject({ parentConversationId: run.conversationId, parentTaskId: link?.taskId })
  })
})

test('the tools are data: another copy of the host shares nothing with it', () => {
  const one = backgroundSubagents()
  const two = backgroundSubagents()

  expect(Object.keys(one)).toEqual(Object.keys(two))
  expect(one.subagent_spawn).not.toBe(two.subagent_spawn)
  expect(Object.isFrozen(one.subagent_spawn)).toBe(true)
})

describe.each(stores)('an end that code gave up waiting for is told to the host, on %s', (_, create) => {
  const world = useWorld(create)

  test.each<[string, (handle: SpawnedAgent, other: SpawnedAgent) => Promise<unknown>]>([
    ['after its time', (handle) => handle.wait({ timeoutMs: 5 })],
    ['after its signal', (handle) => handle.wait({ abortSignal: AbortSignal.abort() })],
    ['as the loser of a join', (handle, other) => joinSpawned([handle, other], 'any')],
    ['in a join that took too long', (handle) => joinSpawned([handle], 'all', { timeoutMs: 5 })],
  ])('%s', async (_what, wait) => {
    const slow = makeGate()
    const ended = makeGate()
    const worker = workerOf(async (request) => {
      if (lastSaid(request) === 'slow') await slow.opened
      return echoing(request, 0)
    })
    const start = tool({
      description: 'Starts two.',
      input: { type: 'object' },
      effect: 'idempotent',
      execute: async () => {
        const [handle, other]: [SpawnedAgent, SpawnedAgent] = [
          await runtime.spawn(worker, 'slow'),
          await runtime.spawn(worker, 'quick'),
        ]
        await wait(handle, other)
        await other.result()
        return 'gave up'
      },
    })
    const script: Script = async (request) => {
      if (lastSaid(request).startsWith('[background]')) return 'told'
      if (resultsIn(request).length === 0) return { calls: [{ name: 'start', input: {} }] }
      // The child ends while the host's turn goes on: nothing of the call is left that could have its end.
      slow.open()
      await ended.opened
      return 'gone on'
    }
    const host = agent({ name: 'host', instructions: 'x', model: scriptedModel(script), tools: { start } })
    const { runtime } = world.start({ agents: [host, worker], engine: QUICK })
    const run = runtime.run(host, 'go')
    const slowLink = () => world.store.linksOf(run.id).find(({ ordinal }) => ordinal === 0)
    await until(() => slowLink()?.outcome)
    await new Promise((resolve) => setTimeout(resolve, 20))
    ended.open()
    await run.result
    await runtime.idle()

    const [, told] = world.store.turnsOf(run.conversationId, { limit: 9 })
    expect(told).toBeDefined()
    expect(slowLink()?.deliveredTo).toBe(world.store.nodesOf(told?.id ?? '')[0]?.id)
  })
})

describe('waits of handles that are over', () => {
  const world = useWorld(memoryRows)

  test.each([0, -1, 1.5, Number.NaN])('a join of %s is refused', async (how) => {
    const worker = workerOf()
    const { runtime } = world.start({ agents: [worker], engine: QUICK })
    const handle = await runtime.spawn(worker, 'go')

    await expect(joinSpawned([handle], how)).rejects.toThrow('is not a number of agents')
    await handle.result()
  })

  test('I10: leave nothing behind, however many there were', async () => {
    const slow = makeGate()
    const worker = workerOf(async () => {
      await slow.opened
      return 'ok'
    })
    const { runtime } = world.start({ agents: [worker], engine: QUICK })
    const handle = await runtime.spawn(worker, 'go')
    const { signal } = new AbortController()
    for (let at = 0; at < 50; at++) expect(await handle.wait({ timeoutMs: 1, abortSignal: signal })).toBeNull()
    const { ends } = (runtime as unknown as { live: { ends: { waiters: Map<string, unknown[]> } } }).live

    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect(ends.waiters.get(handle.id)?.length ?? 0).toBeLessThanOrEqual(1)
    slow.open()
    expect((await handle.result()).text).toBe('ok')
  })
})
