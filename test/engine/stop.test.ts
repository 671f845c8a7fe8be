import { setTimeout as sleep } from 'node:timers/promises'
import { agent, createRuntime, type Effect, type RunEvent, StoreError } from 'legate'
import { serve } from 'legate/server'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, simpleTool, speaker, talkOf, useWorld } from '../support/agents.ts'
import { type Gate, makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { nodesOfTree, tasksOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

test('a store that takes nothing any more: close rejects, and nothing of the runtime goes on', async () => {
  const store = memoryStore()
  const entered = makeGate()
  const reports: string[] = []
  let isFull = false
  const commit: typeof store.commit = (one) => {
    if (isFull) throw new StoreError('store_full', 'The disk is full.')
    return store.commit(one)
  }
  const ignore = () => undefined
  const logger = { debug: ignore, info: ignore, warn: ignore, error: (text: string) => void reports.push(text) }
  const runtime = createRuntime({ store: { ...store, commit }, logger, engine: { graceMs: 30, sweepMs: 10 } })
  const model = scriptedModel(() => {
    entered.open()
    return { text: 'never written', delayMs: 20 }
  })
  const run = runtime.run(agent({ name: 'clerk', instructions: '', model }), 'go')
  run.result.catch(() => undefined)
  await entered.opened
  isFull = true
  expect(runtime.isStoreFull).toBe(false)
  await until('it is told', () => reports.length > 0)
  expect(runtime.isStoreFull).toBe(true)
  const server = await serve(runtime, { port: 0, ui: false })
  expect((await fetch(new URL('/ready', server.url))).status).toBe(503)
  await server.close()

  await expect(runtime.close()).rejects.toThrow('The disk is full.')
  const { length } = reports
  await sleep(100)
  expect(reports).toHaveLength(length)
})

describe.each(stores)('closing a runtime on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('lets a running node finish, and starts no other', async () => {
    const entered = makeGate()
    const finish = makeGate()
    let runs = 0
    const work = simpleTool(async () => {
      runs++
      entered.open()
      await finish.opened
      return 'finished in peace'
    })
    const model = scriptedModel(callsThenSays('work'))
    const clerk = agent({ name: 'clerk', instructions: '', model, tools: { work } })
    const first = start({ engine: { graceMs: 2_000 } })
    const run = first.runtime.run(clerk, 'go')
    await entered.opened

    const closed = first.runtime.close()
    finish.open()
    await closed

    expect(tasksOf(world.store, run.id)[0]).toMatchObject({ state: 'finished', recoveries: 0 })
    expect(model.requests).toHaveLength(1)
    const second = start({ agents: [clerk] })
    const [resumed] = await second.runtime.resume()
    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'finished in peace' })
    expect(runs).toBe(1)
  })

  test.each<[Effect, string]>([
    ['pure', 'pending'],
    ['idempotent', 'pending'],
    ['effectful', 'uncertain'],
  ])('gives a %s tool back after the grace: it is %s', async (effect, state) => {
    const { run } = await closedInside(effect)

    const [task] = tasksOf(world.store, run.id)
    expect(task).toMatchObject({ state, engineId: null, recoveries: 0 })
    const heir = start({
      agents: [clerkWith(simpleTool(() => 'by the heir', { effect }))],
    })
    const [resumed] = await heir.runtime.resume()
    const outcome = await resumed?.result
    expect(outcome?.status).toBe('completed')
    expect(outcome?.text).toMatch(effect === 'effectful' ? /unknown/ : /^by the heir$/)
    expect(outcome?.uncertain).toEqual(effect === 'effectful' ? [task?.id] : [])
  })

  test('gives a model call back after the grace, and another process makes it again', async () => {
    const entered = makeGate()
    const stuck = scriptedModel(() => {
      entered.open()
      return { text: 'never', delayMs: 60_000 }
    })
    const first = start({ engine: { graceMs: 20 } })
    const run = first.runtime.run(agent({ name: 'clerk', instructions: '', model: stuck }), 'go')
    await entered.opened
    await first.runtime.close()
    expect(world.store.nodesOf(run.id)[1]).toMatchObject({ state: 'pending', engineId: null })

    const second = start({ agents: [speaker('clerk', 'made again')] })
    const [resumed] = await second.runtime.resume()

    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'made again' })
  })

  test('does not wait for code that only waits for a person: it asks again elsewhere, and has the answer', async () => {
    const asked = agent({ name: 'clerk', effect: 'pure', reply: async (_, { ask }) => `${await ask('Which?')}` })
    const first = start({ engine: { graceMs: 20_000 } })
    const run = first.runtime.run(asked, 'go')
    const question = await until('it asks', () => tasksOf(world.store, run.id)[0])
    const began = performance.now()
    await first.runtime.close()
    expect(performance.now() - began).toBeLessThan(5_000)

    const second = start({ agents: [asked] })
    await second.runtime.answer(question.id, { text: 'This one.' })
    const [resumed] = await second.runtime.resume()
    expect(resumed?.id).toBe(run.id)
    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'This one.' })
  })

  test('does not count against a node, however often its process is closed', async () => {
    const stuck = (entered: Gate) =>
      agent({
        name: 'clerk',
        instructions: '',
        model: scriptedModel(() => {
          entered.open()
          return { text: 'never', delayMs: 60_000 }
        }),
      })
    for (let life = 0; life < 8; life++) {
      const entered = makeGate()
      const { runtime } = start({ agents: [stuck(entered)], engine: { graceMs: 1 } })
      if (life === 0) runtime.run(stuck(entered), 'go')
      else await runtime.resume()
      await entered.opened
      await runtime.close()
    }

    const [run] = await start({ agents: [speaker('clerk', 'at last')] }).runtime.resume()

    expect(await run?.result).toMatchObject({ status: 'completed', text: 'at last' })
  })

  test('gives a node back that does not hear its signal, and what it gives later is not written', async () => {
    const gate = makeGate()
    const entered = makeGate()
    const stubborn = {
      execute: async () => {
        entered.open()
        await gate.opened
        return 'too late'
      },
    }
    const first = start({ kinds: { stubborn }, engine: { graceMs: 20 } })
    const talk = await talkOf(first.runtime)
    const nodeId = await talk.mutate((m) => m.createNode({ kind: 'stubborn', effect: 'pure' }).id)
    await entered.opened

    await first.runtime.close()
    expect(world.store.node(nodeId)).toMatchObject({ state: 'pending', epoch: 2 })
    gate.open()
    await new Promise((resolve) => setTimeout(resolve, 20))

    expect(world.store.node(nodeId)).toMatchObject({ state: 'pending', epoch: 2, output: {} })
  })

  test('leaves no claim and no engine behind', async () => {
    const { run } = await closedInside('pure')

    expect(world.store.engines()).toEqual([])
    expect(nodesOfTree(world.store, run.id).filter(({ engineId }) => engineId !== null)).toEqual([])
  })

  test('tells who waits for a run that is not over', async () => {
    const entered = makeGate()
    const stuck = scriptedModel(() => {
      entered.open()
      return { text: 'never', delayMs: 60_000 }
    })
    const { runtime } = start({ engine: { graceMs: 20 } })
    const run = runtime.run(agent({ name: 'clerk', instructions: '', model: stuck }), 'go')
    const events: RunEvent[] = []
    const reading = (async () => {
      for await (const event of run) events.push(event)
    })()
    await entered.opened
    await until('the reader', () => events.length > 0)

    await runtime.close()

    await expect(run.result).rejects.toThrow(StoreError)
    await expect(run.result).rejects.toMatchObject({ code: 'store_closed', details: { runId: run.id } })
    await reading
    expect(events.at(-1)?.type).not.toBe('run-end')
  })

  test('twice is once, and a closed runtime takes no run', async () => {
    const { runtime } = start()
    await runtime.run(speaker('a'), 'go').result

    await Promise.all([runtime.close(), runtime.close()])

    await expect(runtime.run(speaker('a'), 'go').result).rejects.toThrow(/closed/)
  })

  function clerkWith(work: ReturnType<typeof simpleTool>) {
    return agent({ name: 'clerk', instructions: '', model: scriptedModel(callsThenSays('work')), tools: { work } })
  }

  /** A run whose tool did not end within the grace of its runtime. */
  async function closedInside(effect: Effect) {
    const entered = makeGate()
    const work = simpleTool(
      () => {
        entered.open()
        return makeGate().opened
      },
      { effect },
    )
    const { runtime } = start({ engine: { graceMs: 20 } })
    const run = runtime.run(clerkWith(work), 'go')
    await entered.opened
    await runtime.close()
    return { run }
  }
})
