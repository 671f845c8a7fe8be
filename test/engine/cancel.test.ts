import { agent, type Runtime } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, simpleTool, speaker, talkOf, useWorld } from '../support/agents.ts'
import { type Gate, makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { until } from '../support/process.ts'
import { eventsOf, eventsOfType, nodesOfTree, tasksOf, turnsOfTree } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('cancelling on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  describe('a run with children that are finished, running, waiting and queued', () => {
    test('ends leaves first: queued ones never start, finished ones keep their results', async () => {
      const { runtime } = start()
      const { run, heard, links } = await family(runtime)

      await run.cancel('enough')
      const outcome = await run.result

      expect(outcome).toMatchObject({ status: 'cancelled', error: { code: 'cancelled', message: 'enough' } })
      expect(links().map(({ outcome }) => outcome?.status)).toEqual([
        'completed',
        'cancelled',
        'cancelled',
        'cancelled',
        'cancelled',
      ])
      expect(heard.toSorted()).toEqual(['deep', 'stuck', 'stuck'])
      expect(tasksOf(world.store, run.id).map(({ state }) => state)).toEqual([
        'finished',
        'stopped',
        'stopped',
        'stopped',
        'stopped',
      ])
      const queued = links()[4]?.id ?? ''
      expect(world.store.turn(queued)).toMatchObject({ startedAt: null, state: 'ended' })
      const ends = eventsOfType(world.store, run.conversationId, 'run-end').map(({ runId }) => runId)
      for (const turnId of turnsOfTree(world.store, run.id)) {
        for (const link of world.store.linksOf(turnId)) {
          expect(ends.indexOf(link.id)).toBeLessThan(ends.indexOf(turnId))
        }
      }
    })

    test('leaves nothing open, and every start has its end', async () => {
      const { runtime } = start()
      const { run } = await family(runtime)

      await run.cancel()
      await run.result

      expect(nodesOfTree(world.store, run.id).filter(({ endedAt }) => endedAt === null)).toEqual([])
      const events = eventsOf(world.store, run.conversationId)
      const count = (type: string) => events.filter((event) => event.type === type).length
      expect(count('run-end')).toBe(turnsOfTree(world.store, run.id).length)
      expect(count('delegation-start')).toBe(count('delegation-end'))
      expect(count('tool-call')).toBe(count('tool-result'))
    })

    test('cancelled again changes nothing', async () => {
      const { runtime } = start()
      const { run } = await family(runtime)
      await run.cancel()
      await run.cancel('again')
      await run.result
      const before = world.store.lastSeq(run.conversationId)

      await run.cancel('and again')

      expect(world.store.lastSeq(run.conversationId)).toBe(before)
      expect(world.store.turn(run.id)).toMatchObject({ cancel: { reason: null }, outcome: { status: 'cancelled' } })
    })

    test('is cancelled by another process within a second', async () => {
      const { runtime } = start({ engine: { sweepMs: 1_000 } })
      const { run, heard } = await family(runtime)
      const other = start({ engine: { sweepMs: 1_000 } })
      const began = performance.now()

      await other.runtime.cancel(run.id, 'from afar')
      const outcome = await run.result

      expect(outcome).toMatchObject({ status: 'cancelled', error: { message: 'from afar' } })
      // The sweep of a second at the latest.
      expect(performance.now() - began).toBeLessThan(PROMPTLY_MS)
      expect(heard).toHaveLength(3)
    })

    test('ends the same way when its process is killed before it could stop', async () => {
      const first = start()
      const { run, links } = await family(first.runtime)
      const other = start({ agents: [speaker('nobody')] })
      await other.runtime.cancel(run.id)
      await first.kill()

      await other.runtime.resume()
      const outcome = await (await other.runtime.attach(run.id)).result

      expect(outcome.status).toBe('cancelled')
      expect(links().filter((link) => link.outcome?.status === 'cancelled')).toHaveLength(4)
      expect(nodesOfTree(world.store, run.id).filter(({ endedAt }) => endedAt === null)).toEqual([])
    })
  })

  describe('a node that ignores its signal', () => {
    test.each([
      ['pure', 'stopped'],
      ['effectful', 'uncertain'],
    ] as const)('and is %s is %s after the grace; what it gives later is late', async (effect, state) => {
      const gate = makeGate()
      const entered = makeGate()
      const { runtime } = start({ kinds: { stubborn: stubborn(gate, entered) }, engine: { graceMs: 60 } })
      const talk = await talkOf(runtime)
      const { nodeId, turnId } = await talk.mutate((m) => {
        return { nodeId: m.createNode({ kind: 'stubborn', effect }).id, turnId: m.runId }
      })
      await entered.opened
      const began = performance.now()

      await runtime.cancel(turnId)
      const outcome = await (await runtime.attach(turnId)).result

      expect(performance.now() - began).toBeGreaterThan(50)
      expect(outcome).toMatchObject({ status: 'cancelled', uncertain: state === 'uncertain' ? [nodeId] : [] })
      const forced = world.store.node(nodeId)
      expect(forced).toMatchObject({ state, epoch: 2, output: {} })

      gate.open()
      await until('the late result', () => eventsOfType(world.store, talk.id, 'late-result').length > 0)
      expect(world.store.node(nodeId)).toEqual(forced)
    })

    test('is asked once: a second request changes neither its reason nor its time', async () => {
      const gate = makeGate()
      const entered = makeGate()
      const { runtime } = start({ kinds: { stubborn: stubborn(gate, entered) }, engine: { graceMs: 5_000 } })
      const talk = await talkOf(runtime)
      const turnId = await talk.mutate((m) => {
        m.createNode({ kind: 'stubborn', effect: 'pure' })
        return m.runId
      })
      await entered.opened
      await runtime.cancel(turnId, 'first')
      const before = world.store.turn(turnId)

      await runtime.cancel(turnId, 'second')

      expect(world.store.turn(turnId)).toEqual(before)
      gate.open()
      expect(await (await runtime.attach(turnId)).result).toMatchObject({
        status: 'cancelled',
        error: { message: 'first' },
      })
    })

    test('holds no worker once it was forced', async () => {
      const gate = makeGate()
      const entered = makeGate()
      const { runtime } = start({
        kinds: { stubborn: stubborn(gate, entered) },
        engine: { workers: 1, graceMs: 40 },
      })
      const talk = await talkOf(runtime)
      const turnId = await talk.mutate((m) => {
        m.createNode({ kind: 'stubborn', effect: 'pure' })
        return m.runId
      })
      await entered.opened

      await runtime.cancel(turnId)
      const other = await runtime.run(speaker('other', 'free'), 'go').result

      expect(other.text).toBe('free')
      gate.open()
    })
  })

  test('a run that is asked to stop while its model answers begins nothing of what the model asks for', async () => {
    const asked = makeGate()
    const answer = makeGate()
    let ran = 0
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(async () => {
        asked.open()
        await answer.opened
        return { text: 'Let me.', calls: [{ name: 'work', input: {} }] }
      }),
      tools: { work: simpleTool(() => ran++) },
    })
    // Nobody tells this process of the request before its model has answered.
    const deaf = start({ store: (store) => ({ ...store, watch: () => () => undefined }), engine: { sweepMs: 60_000 } })
    const other = start()
    const run = deaf.runtime.run(host, 'go')
    await asked.opened

    await other.runtime.cancel(run.id)
    answer.open()
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'cancelled', text: 'Let me.', toolCalls: 0 })
    expect(ran).toBe(0)
    expect(world.store.nodesOf(run.id)).toHaveLength(2)
    expect(world.store.nodesOf(run.id)[1]).toMatchObject({ state: 'stopped', output: { droppedCalls: 1 } })
    expect(world.store.nodesOf(run.id)[1]?.output.calls).toBeUndefined()
  })

  test('a run that is asked to stop while its model fails is not tried again', async () => {
    const asked = makeGate()
    const answer = makeGate()
    const model = scriptedModel(async () => {
      asked.open()
      await answer.opened
      return { error: Object.assign(new Error('overloaded'), { statusCode: 503 }) }
    })
    const host = agent({ name: 'host', instructions: '', model })
    const deaf = start({ store: (store) => ({ ...store, watch: () => () => undefined }), engine: { sweepMs: 60_000 } })
    const other = start()
    const run = deaf.runtime.run(host, 'go')
    await asked.opened

    await other.runtime.cancel(run.id)
    answer.open()

    expect(await run.result).toMatchObject({ status: 'cancelled' })
    expect(eventsOfType(world.store, run.conversationId, 'retry')).toEqual([])
  })

  test('a word that nobody awaits is heard before the runtime that gave it closes', async () => {
    const [asked, answer] = [makeGate(), makeGate()]
    const model = scriptedModel(async () => {
      asked.open()
      await answer.opened
      return { text: 'Too late.' }
    })
    const run = start().runtime.run(agent({ name: 'host', instructions: '', model }), 'go')
    const other = start()
    await asked.opened

    const heard = other.runtime.cancel(run.id)
    await other.runtime.close()
    answer.open()

    await heard
    expect(await run.result).toMatchObject({ status: 'cancelled' })
  })

  test('a stop while streaming keeps what was said, and no new work appears', async () => {
    const streamed = makeGate()
    const model = {
      id: 'slow/model',
      async *stream(_: unknown, { signal }: { signal: AbortSignal }) {
        yield { type: 'text-delta', text: 'Once upon ' } as const
        yield { type: 'text-delta', text: 'a tïme' } as const
        streamed.open()
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    }
    const { runtime } = start()
    const run = runtime.run(agent({ name: 'teller', instructions: '', model }), 'go')
    await streamed.opened

    await run.cancel()
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'cancelled', text: 'Once upon a tïme' })
    expect(world.store.nodesOf(run.id).map(({ state }) => state)).toEqual(['finished', 'stopped'])
    const said = eventsOfType(world.store, run.conversationId, 'message').at(-1)
    expect(said).toMatchObject({ state: 'stopped', content: 'Once upon a tïme', streamed: { chunks: 2, bytes: 17 } })
  })

  test('children that code inside a tool awaits are cancelled with the run', async () => {
    const entered = makeGate()
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(() => {
        entered.open()
        return { text: 'late', delayMs: 60_000 }
      }),
    })
    const work = simpleTool((_, { delegate }) => delegate(child, 'x'), { effect: 'pure' })
    const host = agent({ name: 'host', instructions: '', model: scriptedModel(callsThenSays('work')), tools: { work } })
    const { runtime } = start()
    const run = runtime.run(host, 'go')
    await entered.opened

    await run.cancel()

    expect(await run.result).toMatchObject({ status: 'cancelled' })
    expect(world.store.linksOf(run.id)).toMatchObject([{ outcome: { status: 'cancelled' } }])
  })

  /** A host with a finished child, two running ones, one that waits for its own, and a queued one. */
  async function family(runtime: Runtime) {
    const heard: string[] = []
    const entered = new Set<number>()
    const stuckModel = (name: string): Script => {
      return (_, call) => {
        entered.add(entered.size)
        return { text: `${name} ${call}`, delayMs: 60_000 }
      }
    }
    const stuck = agent({
      name: 'stuck',
      instructions: '',
      model: hearing(scriptedModel(stuckModel('stuck')), 'stuck', heard),
    })
    const deep = agent({
      name: 'deep',
      instructions: '',
      model: hearing(scriptedModel(stuckModel('deep')), 'deep', heard),
    })
    const nested = agent({
      name: 'nested',
      instructions: '',
      model: scriptedModel(() => ({ calls: [{ name: 'ask', input: { message: 'x' } }] })),
      subagents: { ask: deep },
    })
    const later = simpleTool(
      async (_, { delegate, node }) => {
        await until('the other children', () => world.store.linksOf(node.runId).length === 4)
        return delegate(stuck, 'x')
      },
      { effect: 'pure' },
    )
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([
        { calls: [{ name: 'quick', input: { message: 'x' } }] },
        { calls: ['stuck', 'nested', 'stuck', 'later'].map((name) => ({ name, input: { message: 'x' } })) },
      ]),
      tools: { later },
      subagents: { quick: speaker('quick', 'found'), stuck, nested },
      budget: { concurrency: 3 },
    })
    const run = runtime.run(host, 'go')
    await until('three stuck models', () => entered.size === 3)
    const links = () => world.store.linksOf(run.id)
    await until('the queued one', () => links()[4]?.released === false)
    return { run, heard, links }
  }
})

/** The model, noting that it heard its signal. */
function hearing(model: ReturnType<typeof scriptedModel>, name: string, heard: string[]) {
  return {
    ...model,
    stream: (...[request, options]: Parameters<typeof model.stream>) => {
      options.signal.addEventListener('abort', () => heard.push(name))
      return model.stream(request, options)
    },
  }
}

function stubborn(gate: Gate, entered: Gate) {
  return {
    execute: async () => {
      entered.open()
      await gate.opened
      return 'too late'
    },
  }
}
