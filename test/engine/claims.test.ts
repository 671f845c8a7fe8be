import { type AnyAgent, agent } from 'legate'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { commitOf } from '../../src/testing/conformance/store-rows.ts'
import { asksThenSays, callsThenSays, simpleTool, speaker, talkOf, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { Graph } from '../support/graph.ts'
import { until } from '../support/process.ts'
import { eventsOfType } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('claims on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('two processes race over sixty nodes, and each node runs once', async () => {
    const runs: string[] = []
    const by = new Map<string, number>()
    const work = (name: string) => ({
      execute: async (node: { id: string }) => {
        runs.push(node.id)
        by.set(name, (by.get(name) ?? 0) + 1)
        await new Promise((resolve) => setTimeout(resolve, 1))
      },
    })
    const one = start({ agents: [speaker('speaker')], kinds: { work: work('one') }, engine: { workers: 4 } })
    const two = start({ agents: [speaker('speaker')], kinds: { work: work('two') }, engine: { workers: 4 } })
    await two.runtime.resume()
    const talk = await talkOf(one.runtime)

    const { turnId, ids } = await talk.mutate((m) => {
      const ids = Array.from({ length: 60 }, () => m.createNode({ kind: 'work' }).id)
      return { turnId: m.runId, ids }
    })
    const outcome = await (await one.runtime.attach(turnId)).result

    expect(outcome.status).toBe('completed')
    expect(runs.toSorted()).toEqual(ids.toSorted())
    expect([...by.keys()].toSorted()).toEqual(['one', 'two'])
    for (const id of ids) expect(one.store.node(id)).toMatchObject({ state: 'finished', epoch: 1 })
  })

  test('one worker runs nodes one at a time, the oldest first', async () => {
    const order: string[] = []
    let running = 0
    const work = {
      execute: async (node: { id: string }) => {
        expect(++running).toBe(1)
        order.push(node.id)
        await Promise.resolve()
        running--
      },
    }
    const { runtime } = start({ kinds: { work }, engine: { workers: 1 } })
    const talk = await talkOf(runtime)

    const { turnId, ids } = await talk.mutate((m) => {
      const ids = Array.from({ length: 20 }, () => m.createNode({ kind: 'work' }).id)
      return { turnId: m.runId, ids }
    })
    await (await runtime.attach(turnId)).result

    expect(order).toEqual(ids)
  })

  test('without workers a process records and changes, and runs nothing; another goes on', async () => {
    const quiet = start({ agents: [speaker('speaker')], engine: { workers: 0, sweepMs: 5 } })
    const run = quiet.runtime.run(speaker('speaker'), 'Hello.')
    await until('the run is recorded', () => quiet.store.turn(run.id) !== undefined)
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(quiet.store.openNodes(run.id).map(({ state }) => state)).toEqual(['pending'])

    const busy = start({ agents: [speaker('speaker')] })
    await busy.runtime.resume()

    expect((await (await busy.runtime.attach(run.id)).result).status).toBe('completed')
  })

  test('workers are the limit of what runs at once', async () => {
    let running = 0
    let most = 0
    const work = {
      execute: async () => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 3))
        running--
      },
    }
    const { runtime } = start({ kinds: { work }, engine: { workers: 3 } })
    const talk = await talkOf(runtime)

    const turnId = await talk.mutate((m) => {
      for (let n = 0; n < 12; n++) m.createNode({ kind: 'work' })
      return m.runId
    })
    await (await runtime.attach(turnId)).result

    expect(most).toBe(3)
  })

  test('quick nodes on one worker do not wait for the next sweep', async () => {
    const { runtime } = start({ kinds: { work: { execute: () => 1 } }, engine: { workers: 1, sweepMs: 60_000 } })
    const talk = await talkOf(runtime)

    const runs = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const other = await talkOf(runtime)
        return other.mutate((m) => {
          m.createNode({ kind: 'work' })
          return m.runId
        })
      }),
    )

    for (const turnId of runs) expect((await (await runtime.attach(turnId)).result).status).toBe('completed')
    expect((await talk.row())?.activeTurnId).toBeNull()
  })

  test('two processes with one worker each share the children of one run', async () => {
    const seen = new Set<string>()
    const both = makeGate()
    const worker = (name: string) =>
      agent({
        name: 'worker',
        instructions: 'Work.',
        model: scriptedModel(async () => {
          seen.add(name)
          if (seen.size === 2) both.open()
          await both.opened
          return name
        }),
      })
    const host = (name: string) =>
      agent({
        name: 'host',
        instructions: 'Delegate.',
        model: scriptedModel(({ messages }) =>
          messages.some(({ role }) => role === 'tool')
            ? 'done'
            : { calls: ['a', 'b', 'c', 'd'].map((message) => ({ name: 'ask', input: { message } })) },
        ),
        subagents: { ask: worker(name) },
      })
    const one = start({ agents: [host('one')], engine: { workers: 1 } })
    const two = start({ agents: [host('two')], engine: { workers: 1 } })
    await two.runtime.resume()

    const outcome = await one.runtime.run(host('one'), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'done', children: 4 })
    expect([...seen].toSorted()).toEqual(['one', 'two'])
  })

  test('a process claims only what it has code for, also of what its own commits make runnable', async () => {
    const entered = makeGate()
    const stuck = agent({
      name: 'worker',
      instructions: '',
      model: scriptedModel(() => {
        entered.open()
        return makeGate().opened.then(() => 'never')
      }),
    })
    const hostOf = (worker: AnyAgent) =>
      agent({
        name: 'host',
        instructions: '',
        model: scriptedModel(asksThenSays('done')),
        subagents: { ask: worker },
      })
    const first = start()
    const run = first.runtime.run(hostOf(stuck), 'go')
    await entered.opened
    await first.kill()

    // The one that knows only the worker finishes the child, and with it the host's task.
    const second = start({ agents: [speaker('worker', 'found')] })
    await second.runtime.resume()
    const next = await until('the host to be runnable', () =>
      second.store.nodesOf(run.id).find(({ kind, state }) => kind === 'agent_message' && state !== 'finished'),
    )
    await until('the child to end', () => second.store.linksOf(run.id)[0]?.outcome?.status === 'completed')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(second.store.node(next.id)).toMatchObject({ state: 'pending', blockers: 0, epoch: 0 })

    const third = start({ agents: [hostOf(stuck)] })
    const [resumed] = await third.runtime.resume()
    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'done' })
  })

  test('the lease is one row of the process, of 15 seconds, and is renewed every 5', async () => {
    const clock = fakeClock(1_000_000)
    const { runtime } = start({ clock, engine: { sweepMs: 1_000, leaseMs: 15_000 } })
    await Promise.all([runtime.run(speaker('a'), 'go').result, runtime.run(speaker('b'), 'go').result])
    const left = () => world.store.engines().map(({ leaseUntil }) => leaseUntil - clock.now())
    expect(left()).toEqual([15_000])

    const seen: number[] = []
    for (let second = 0; second < 10; second++) {
      await clock.advance(1_000)
      await until('the sweep', () => second % 5 !== 4 || left()[0] === 15_000)
      seen.push(...left())
    }

    expect(seen).toEqual([14_000, 13_000, 12_000, 11_000, 15_000, 14_000, 13_000, 12_000, 11_000, 15_000])
  })

  test('nothing is claimed under a lease that ran out: it is renewed first', async () => {
    const steady = fakeClock()
    let asleepMs = 0
    const clock = { ...steady, now: () => steady.now() + asleepMs }
    const unlawful: string[] = []
    const watched = (store: LocalStore): LocalStore => ({
      ...store,
      commit: (step) => {
        for (const { state, engineId, id } of step.nodes) {
          const until = store.engine(engineId ?? '')?.leaseUntil ?? 0
          if (state === 'running' && until <= clock.now()) unlawful.push(id)
        }
        return store.commit(step)
      },
    })
    const { runtime } = start({ clock, store: watched, engine: { sweepMs: 1_000, leaseMs: 15_000 } })
    await runtime.run(speaker('a'), 'go').result

    asleepMs = 60_000
    const run = runtime.run(speaker('a'), 'again')
    await until('the run', () => world.store.turn(run.id))
    await steady.advance(1_000)

    expect(await run.result).toMatchObject({ status: 'completed' })
    expect(unlawful).toEqual([])
  })

  test('an engine that was taken for dead says again that it lives', async () => {
    const { runtime } = start()
    await runtime.run(speaker('a'), 'go').result
    const [engine] = world.store.engines()
    await world.store.commit(commitOf(null, { kind: 'lease', dropEngines: [engine?.id ?? ''] }))

    const again = await until('the engine', () => world.store.engines()[0])

    expect(again.id).toBe(engine?.id)
  })

  test('a tree with which something is wrong does not hold up the others', async () => {
    const graph = new Graph(world.rows.open(), { clock: fakeClock(Date.now()) })
    const broken = await graph.say('broken')
    const sound = await graph.say('sound')
    const failing = (store: LocalStore): LocalStore => ({
      ...store,
      commit: (step) => {
        if (step.rootId === broken.conversationId) throw new TypeError('a defect')
        return store.commit(step)
      },
    })
    const { runtime } = start({ agents: [speaker('agent')], store: failing, mayFail: true })

    await runtime.resume()

    expect(await (await runtime.attach(sound.id)).result).toMatchObject({ status: 'completed' })
    expect(world.store.turn(broken.id)?.state).toBe('running')
  })

  test('one worker, fifty waiting parents, three levels deep: all complete', async () => {
    const leaf = speaker('leaf', 'leaf')
    const nested = (name: string, child: ReturnType<typeof speaker>) =>
      agent({
        name,
        instructions: '',
        model: scriptedModel(asksThenSays(name)),
        subagents: { ask: child },
      })
    const top = nested('top', nested('middle', nested('inner', leaf)))
    const { runtime, store } = start({ engine: { workers: 1 } })

    // Where all is read anew before each node, what fifty wait for is read hundreds of times.
    const count = process.env['LEGATE_FRESH'] === '1' ? 15 : 50
    const runs = Array.from({ length: count }, () => runtime.run(top, 'go'))
    const outcomes = await Promise.all(runs.map(({ result }) => result))

    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 'completed'))
    expect(eventsOfType(store, runs[0]?.conversationId ?? '', 'delegation-end')).toHaveLength(3)
  })

  test('code inside a tool that awaits children holds no worker, and lends it only once', async () => {
    let running = 0
    let most = 0
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(async () => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 3))
        running--
        return 'done'
      }),
    })
    const fan = simpleTool(async (_, { delegate }) => {
      const outcomes = await Promise.all([delegate(child, 'a'), delegate(child, 'b'), delegate(child, 'c')])
      return outcomes.length
    })
    const host = agent({ name: 'host', instructions: '', model: scriptedModel(callsThenSays('fan')), tools: { fan } })
    const { runtime } = start({ engine: { workers: 1 } })

    const outcome = await runtime.run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: '3', children: 3 })
    expect(most).toBe(1)
  })
})
