import { type AnyAgent, agent, type Effect, type Tools } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { dropEngine } from '../../src/core/engine/lease.ts'
import { planRecover } from '../../src/core/rules/turn/result.ts'
import { asksThenSays, callsThenSays, simpleTool, speaker, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { Graph } from '../support/graph.ts'
import { until } from '../support/process.ts'
import { eventsOf, eventsOfType, nodesOfTree, tasksOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('recovery on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  describe('a process is killed', () => {
    test.each<Effect>(['pure', 'idempotent'])(
      'in a tool that is %s: it runs again with the same key',
      async (effect) => {
        const keys: string[] = []
        const first = await killedInside(effect, (key) => keys.push(key))

        const second = start({
          agents: [clerk({ work: simpleTool((_, c) => `again ${keys.push(c.idempotencyKey)}`) })],
        })
        const [run] = await second.runtime.resume()

        expect(await run?.result).toMatchObject({ status: 'completed', text: 'again 2', uncertain: [] })
        expect(new Set(keys).size).toBe(1)
        expect(tasksOf(world.store, first.id)[0]).toMatchObject({ recoveries: 1, state: 'finished' })
      },
    )

    test('in a tool that is effectful: it is uncertain, the run goes on, and the model reads that it must check', async () => {
      let runs = 0
      const first = await killedInside('effectful', () => runs++)

      const model = scriptedModel(callsThenSays('work'))
      const second = start({ agents: [clerk({ work: simpleTool(() => runs++) }, model)] })
      const [run] = await second.runtime.resume()
      const outcome = await run?.result

      expect(runs).toBe(1)
      const [task] = tasksOf(world.store, first.id)
      expect(task).toMatchObject({ state: 'uncertain' })
      expect(outcome).toMatchObject({ status: 'completed', uncertain: [task?.id] })
      expect(outcome?.text).toMatch(/unknown.*may or may not have taken effect. Check before you call it again/s)
      expect(eventsOfType(world.store, first.conversationId, 'uncertain')).toMatchObject([
        { nodeId: task?.id, tool: 'work' },
      ])
    })

    test('in a model call: it is made again, and what was answered before is not', async () => {
      const entered = makeGate()
      let calls = 0
      const stuckSecond = scriptedModel(({ messages }) => {
        calls++
        if (!messages.some(({ role }) => role === 'tool')) return { calls: [{ name: 'work', input: {} }] }
        entered.open()
        return makeGate().opened.then(() => 'never')
      })
      const first = start()
      const run = first.runtime.run(clerk({ work: simpleTool(() => 'worked') }, stuckSecond), 'go')
      await entered.opened
      await first.kill()

      const model = scriptedModel(callsThenSays('work'))
      const second = start({ agents: [clerk({ work: simpleTool(() => 'twice') }, model)] })
      const [resumed] = await second.runtime.resume()

      expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'worked', modelCalls: 2 })
      expect(calls).toBe(2)
      expect(model.requests).toHaveLength(1)
      expect(resumed?.id).toBe(run.id)
    })

    test('in the middle of a stream: what was streamed is replaced, not continued', async () => {
      const streamed = makeGate()
      const half = {
        id: 'half/model',
        async *stream() {
          yield { type: 'text-delta', text: 'Half of ' } as const
          streamed.open()
          await makeGate().opened
        },
      }
      const first = start()
      const run = first.runtime.run(clerk({}, half), 'go')
      await streamed.opened
      await first.kill()

      const second = start({ agents: [clerk({}, scriptedModel(['All of it.']))] })
      const [resumed] = await second.runtime.resume()
      const outcome = await resumed?.result

      expect(outcome?.text).toBe('All of it.')
      expect(eventsOfType(world.store, run.conversationId, 'message').map(({ content }) => content)).toEqual([
        'go',
        'All of it.',
      ])
    })

    test('while code inside an effectful tool awaits a child: the child is cancelled with it', async () => {
      const entered = makeGate()
      const child = agent({
        name: 'child',
        instructions: '',
        model: scriptedModel(() => {
          entered.open()
          return makeGate().opened.then(() => 'never')
        }),
      })
      const work = simpleTool((_, { delegate }) => delegate(child, 'x'))
      const first = start()
      const run = first.runtime.run(clerk({ work }), 'go')
      await entered.opened
      await first.kill()

      const second = start({ agents: [clerk({ work }), child] })
      const [resumed] = await second.runtime.resume()
      const outcome = await resumed?.result

      expect(outcome).toMatchObject({ status: 'completed', text: expect.stringMatching(/unknown/) })
      expect(world.store.linksOf(run.id)).toMatchObject([{ outcome: { status: 'cancelled' } }])
    })

    test('while code inside a pure tool awaits a child: the tool runs again and finds the same child', async () => {
      const entered = makeGate()
      const childOf = (say: () => Promise<string> | string) =>
        agent({ name: 'child', instructions: '', model: scriptedModel(say) })
      const workOf = (child: AnyAgent) =>
        simpleTool(async (_, { delegate }) => ((await delegate(child, 'x')) as { text: string }).text, {
          effect: 'pure',
        })
      const stuck = childOf(() => {
        entered.open()
        return makeGate().opened.then(() => 'never')
      })
      const first = start()
      const run = first.runtime.run(clerk({ work: workOf(stuck) }), 'go')
      await entered.opened
      await first.kill()

      const child = childOf(() => 'from the child')
      const second = start({ agents: [clerk({ work: workOf(child) }), child] })
      const [resumed] = await second.runtime.resume()

      expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'from the child', children: 1 })
      expect(world.store.linksOf(run.id)).toHaveLength(1)
    })
  })

  test('a claim whose lease ran out is taken over by a peer, which tells it', async () => {
    const entered = makeGate()
    const stuck = scriptedModel(() => {
      entered.open()
      return makeGate().opened.then(() => 'never')
    })
    const first = start({ engine: { leaseMs: 100 } })
    const run = first.runtime.run(clerk({}, stuck), 'go')
    await entered.opened
    const second = start({ agents: [clerk({}, scriptedModel(['taken over']))], engine: { leaseMs: 100 } })
    await second.runtime.resume()

    first.freeze()
    const outcome = await (await second.runtime.attach(run.id)).result

    expect(outcome).toMatchObject({ status: 'completed', text: 'taken over' })
    const told = eventsOfType(world.store, run.conversationId, 'node-state')
    expect(told).toMatchObject([
      {
        from: 'running',
        to: 'pending',
        reason: `The process that ran it (pid ${process.pid}) did not renew its lease in time.`,
      },
    ])
    first.thaw()
  })

  test('a process that wakes up after its claims were taken changes nothing', async () => {
    const entered = makeGate()
    const asleep = makeGate()
    const say = (text: string) =>
      scriptedModel(async () => {
        entered.open()
        await asleep.opened
        return text
      })
    const first = start({ engine: { leaseMs: 100 } })
    const run = first.runtime.run(clerk({}, say('of the zombie')), 'go')
    await entered.opened
    first.freeze()
    const second = start({ agents: [clerk({}, scriptedModel(['of the heir']))], engine: { leaseMs: 100 } })
    await second.runtime.resume()
    await (await second.runtime.attach(run.id)).result

    asleep.open()
    await new Promise((resolve) => setTimeout(resolve, 20))
    first.thaw()

    const late = await until('the late result', () => eventsOfType(world.store, run.conversationId, 'late-result')[0])
    expect(late.reason).toContain('made under epoch 1')
    const said = eventsOfType(world.store, run.conversationId, 'message').map(({ content }) => content)
    expect(said).toEqual(['go', 'of the heir'])
    expect(await (await first.runtime.attach(run.id)).result).toMatchObject({ text: 'of the heir', modelCalls: 1 })
  })

  test('a claim of an engine that has no row is taken over: it was taken for dead, woke, claimed and died', async () => {
    const entered = makeGate()
    const stuck = scriptedModel(async () => {
      entered.open()
      return makeGate().opened.then(() => 'never')
    })
    const first = start()
    const run = first.runtime.run(clerk({}, stuck), 'go')
    await entered.opened
    const [engine] = world.store.engines()
    await first.kill()
    if (engine === undefined) throw new Error('The engine has no row.')
    await dropEngine(world.store, world.store.engine(engine.id) ?? engine, Date.now())

    const second = start({ agents: [clerk({}, scriptedModel(['of the heir']))] })
    await second.runtime.resume()

    expect(await (await second.runtime.attach(run.id)).result).toMatchObject({
      status: 'completed',
      text: 'of the heir',
    })
  })

  test.each([
    ['answer', 'expand', (child: AnyAgent) => child],
    ['task', 'spawn', (child: AnyAgent) => ({ agent: () => child })],
  ] as const)('the %s of a process that lost its claim makes no child', async (_, kind, offer) => {
    const child = speaker('child')
    const host = (calls: boolean) =>
      agent({
        name: 'host',
        instructions: '',
        model: scriptedModel(({ messages }) => {
          if (messages.some(({ role }) => role === 'tool') || !calls) return 'done'
          return { calls: [{ name: 'ask', input: { message: 'x' } }] }
        }),
        subagents: { ask: offer(child) },
      })
    const first = start({ engine: { leaseMs: 100 } })
    const spawning = makeGate()
    let isSpawning = false
    const { commit } = first.store
    // The process falls asleep in the middle of its spawn.
    Object.assign(first.store, {
      commit: (step: Parameters<typeof commit>[0]) => {
        if (step.kind === kind && !isSpawning) {
          isSpawning = true
          first.freeze()
          spawning.open()
        }
        return commit(step)
      },
    })
    const run = first.runtime.run(host(true), 'go')
    await spawning.opened
    const second = start({ agents: [host(true)], engine: { leaseMs: 100 } })
    await second.runtime.resume()
    await (await second.runtime.attach(run.id)).result

    first.thaw()
    await until('the late spawn', () => eventsOfType(world.store, run.conversationId, 'late-result').length > 0)

    expect(world.store.linksOf(run.id)).toHaveLength(1)
    expect(eventsOfType(world.store, run.conversationId, 'delegation-start')).toHaveLength(1)
  })

  describe('a node that kills its process each time', () => {
    test('is given up after five recoveries, and the outcome says so', async () => {
      for (let life = 0; life < 6; life++) {
        const entered = makeGate()
        const deadly = scriptedModel(() => {
          entered.open()
          return makeGate().opened.then(() => 'never')
        })
        const process = start({ agents: [clerk({}, deadly)] })
        if (life === 0) process.runtime.run(clerk({}, deadly), 'go')
        else await process.runtime.resume()
        await entered.opened
        await process.kill()
      }

      const last = start({ agents: [clerk({}, scriptedModel([]))] })
      const [run] = await last.runtime.resume()

      expect(await run?.result).toMatchObject({
        status: 'failed',
        error: { code: 'dead_letter', message: expect.stringMatching(/lost 6 times/) },
      })
    })

    test('as a tool is an error the model reads, and the run goes on', async () => {
      const graph = new Graph(world.rows.open())
      const conversationId = await graph.conversation()
      const { task, next } = await graph.mutate(conversationId, (m) => {
        const call = { id: 'c', name: 'work', input: {} }
        const task = m.createNode({ kind: 'task', effect: 'pure', input: { call } }).id
        const next = m.createNode({ kind: 'agent_message' }).id
        m.createEdge(task, next, 'sequence')
        return { task, next }
      })

      for (let loss = 1; loss <= 6; loss++) {
        const { engineId } = await graph.claim(task)
        await graph.commit('recover', conversationId, (d) => planRecover(d, task, { engineId, reason: 'Killed.' }))
        expect(graph.node(task)).toMatchObject({ recoveries: loss, state: loss <= 5 ? 'pending' : 'errored' })
      }

      expect(graph.node(task).failure).toMatchObject({ code: 'dead_letter' })
      expect(graph.node(next)).toMatchObject({ state: 'pending', blockers: 0 })
    })
  })

  describe('waiting is a row', () => {
    test('all processes end and start again while a child works: the parent resumes once, at no extra cost', async () => {
      const entered = makeGate()
      const child = (say: () => Promise<string> | string) =>
        agent({ name: 'child', instructions: '', model: scriptedModel(say) })
      const hostModel = () => scriptedModel(asksThenSays('done'))
      const models = [hostModel(), hostModel(), hostModel(), hostModel()]
      const host = (life: number, ask: AnyAgent) =>
        agent({ name: 'host', instructions: '', model: models[life] ?? hostModel(), subagents: { ask } })
      const stuck = () =>
        child(() => {
          entered.open()
          return makeGate().opened.then(() => 'never')
        })
      const first = start({ engine: { graceMs: 20 } })
      const run = first.runtime.run(host(0, stuck()), 'go')
      await entered.opened
      const task = tasksOf(world.store, run.id)[0]
      expect(task).toMatchObject({
        state: 'waiting',
        engineId: null,
        wait: { on: 'children', refs: [expect.any(String)] },
      })

      await first.runtime.close()
      for (const life of [1, 2]) {
        const later = start({ agents: [host(life, stuck())], engine: { graceMs: 20 } })
        await later.runtime.resume()
        await until('the child to run', () => nodesOfTree(world.store, run.id).some(({ state }) => state === 'running'))
        if (life === 1) await later.runtime.close()
        else await later.kill()
      }
      const last = start({
        agents: [
          host(
            3,
            child(() => 'found'),
          ),
        ],
      })
      const [resumed] = await last.runtime.resume()
      const outcome = await resumed?.result

      expect(outcome).toMatchObject({ status: 'completed', text: 'done', modelCalls: 2, children: 1 })
      expect(models.map(({ requests }) => requests.length)).toEqual([1, 0, 0, 1])
      expect(eventsOfType(world.store, run.conversationId, 'delegation-end')).toHaveLength(1)
      expect(eventsOf(world.store, run.conversationId).filter(({ type }) => type === 'late-result')).toEqual([])
    })
  })

  /** A run whose tool was entered when its process was killed. */
  async function killedInside(effect: Effect, entered: (key: string) => unknown) {
    const inside = makeGate()
    const work = simpleTool(
      (_, { idempotencyKey }) => {
        entered(idempotencyKey)
        inside.open()
        return makeGate().opened
      },
      { effect },
    )
    const first = start()
    const run = first.runtime.run(clerk({ work }), 'go')
    await inside.opened
    await first.kill()
    return run
  }

  function clerk(tools: Tools, model: Parameters<typeof agent>[0]['model'] = scriptedModel(callsThenSays('work'))) {
    return agent({ name: 'clerk', instructions: 'Do it.', tools, ...(model ? { model } : {}) })
  }
})
