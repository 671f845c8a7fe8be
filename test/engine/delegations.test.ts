import { agent, type Budget } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { call, hostOf, playing, spawnCall, workerOf } from '../delegation/background/support.ts'
import { simpleTool, type speaker, useWorld } from '../support/agents.ts'
import { type Gate, makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { lasting, stores } from '../support/stores.ts'

describe.each(stores)('live delegations on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('never more than the limit at once, first come first served', async () => {
    const gates = Array.from({ length: 6 }, makeGate)
    const { worker, started, most } = countingWorker(gates)
    const host = fanOut(worker, 6, { concurrency: 2 })
    const { runtime } = start()
    const run = runtime.run(host, 'go')
    await endInTurn(gates, started, 6)

    expect(await run.result).toMatchObject({ status: 'completed', children: 6 })

    expect(most()).toBe(2)
    expect(started).toEqual(tasksInOrder(run.id))
  })

  test('a queued child that is cancelled never starts and never counts', async () => {
    const gates = Array.from({ length: 6 }, makeGate)
    const { worker, started, most } = countingWorker(gates)
    const { runtime } = start()
    const run = runtime.run(fanOut(worker, 6, { concurrency: 2 }), 'go')
    await until('two children', () => started.length === 2)
    const links = await until('six links', () => {
      const links = world.store.linksOf(run.id)
      return links.length === 6 && links
    })

    await runtime.cancel(links[2]?.id ?? '', 'not this one')
    expect(world.store.turn(run.id)?.account.live).toBe(2)
    await endInTurn(gates, started, 5)
    const outcome = await run.result

    expect(outcome.status).toBe('completed')
    expect(started).toEqual(tasksInOrder(run.id).toSpliced(2, 1))
    expect(most()).toBe(2)
    expect(world.store.turn(run.id)?.account).toMatchObject({ live: 0, nextRelease: 6, children: 6 })
    expect(world.store.link(links[2]?.id ?? '')?.outcome?.status).toBe('cancelled')
  })

  test('the limit counts children across the messages of a run and those that code inside a tool starts', async () => {
    const { worker, most } = countingWorker()
    const fan = simpleTool(async (_, { delegate }) => {
      await Promise.all(['a', 'b', 'c'].map((task) => delegate(worker, task)))
      return 'all'
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        if (messages.some(({ role }) => role === 'tool')) return 'done'
        return {
          calls: [
            { name: 'fan', input: {} },
            { name: 'ask', input: { message: 'd' } },
            { name: 'ask', input: { message: 'e' } },
          ],
        }
      }),
      tools: { fan },
      subagents: { ask: worker },
      budget: { concurrency: 2 },
    })
    const { runtime } = start()

    const outcome = await runtime.run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 5 })
    expect(most()).toBe(2)
  })

  test('each level has its own limit: ancestors are never counted', async () => {
    const { worker } = countingWorker()
    const middle = fanOut(worker, 3, { concurrency: 1 }, 'middle')
    const top = fanOut(middle, 2, { concurrency: 1 }, 'top')
    const { runtime } = start({ engine: { workers: 1 } })

    const outcome = await runtime.run(top, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 2 })
  })

  test('the children limit refuses the one call in words, and the run goes on', async () => {
    const { worker, started } = countingWorker()
    const { runtime } = start()
    const host = fanOut(worker, 4, { children: 2 })

    const outcome = await runtime.run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 2 })
    expect(started).toHaveLength(2)
    const refused = outcome.text.split('\n').filter((line) => line.includes('this run has started 2 subagents'))
    expect(refused).toHaveLength(2)
  })

  test('the depth limit refuses the one call in words, and the run goes on', async () => {
    const { worker, started } = countingWorker()
    const middle = fanOut(worker, 1, {}, 'middle')
    const { runtime } = start()

    const outcome = await runtime.run(fanOut(middle, 1, { depth: 1 }, 'top'), 'go').result

    expect(outcome.status).toBe('completed')
    expect(started).toEqual([])
    expect(outcome.text).toContain('delegation is 2 deep and the limit is 1')
  })

  test('the limits hold when the processes change in the middle', async () => {
    const gates = Array.from({ length: 6 }, makeGate)
    const first = countingWorker(gates)
    const process = start()
    const run = process.runtime.run(fanOut(first.worker, 6, { concurrency: 2 }), 'go')
    await until('two children', () => first.started.length === 2)
    await until('six links', () => world.store.linksOf(run.id).length === 6)
    await process.kill()

    const second = countingWorker()
    const heir = start({ agents: [fanOut(second.worker, 6, { concurrency: 2 })] })
    const [resumed] = await heir.runtime.resume()

    expect(await resumed?.result).toMatchObject({ status: 'completed', children: 6 })
    expect(second.started.toSorted()).toEqual(['0', '1', '2', '3', '4', '5'])
    expect(second.most()).toBe(2)
  })

  test('two calls on one session run one after the other, in their order', async () => {
    const { worker, started, most } = countingWorker()
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
        const session = /session_id: (\S+)/.exec(results[0] ?? '')?.[1]
        if (session === undefined) return { calls: [{ name: 'ask', input: { message: 'open' } }] }
        if (results.length === 3) return 'done'
        return { calls: ['one', 'two'].map((message) => ({ name: 'ask', input: { message, session_id: session } })) }
      }),
      subagents: { ask: worker },
    })
    const { runtime } = start()
    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'completed', text: 'done', children: 3 })
    const links = world.store.linksOf(run.id)
    expect(started).toEqual(tasksInOrder(run.id))
    expect(most()).toBe(1)
    expect(new Set(links.map(({ childConversationId }) => childConversationId)).size).toBe(1)
    expect(world.store.turnsOf(links[0]?.childConversationId ?? '', { limit: 9 })).toHaveLength(3)
  })

  /** What the children of a run were asked, in the order in which they came. */
  function tasksInOrder(runId: string): string[] {
    return world.store.linksOf(runId).map(({ id }) => {
      const { message } = (world.store.turn(id)?.input ?? {}) as { message?: string }
      return message ?? ''
    })
  }
})

/** A worker that notes what it was asked, and how many of it ran at once. */
function countingWorker(gates: readonly Gate[] = []) {
  const started: string[] = []
  let running = 0
  let most = 0
  const worker = agent({
    name: 'worker',
    instructions: '',
    model: scriptedModel(async ({ messages }) => {
      const task = String(messages.findLast(({ role }) => role === 'user')?.content)
      started.push(task)
      most = Math.max(most, ++running)
      await (gates[Number(task)]?.opened ?? new Promise((resolve) => setTimeout(resolve, 2)))
      running--
      return `did ${task}`
    }),
  })
  return { worker, started, most: () => most }
}

/** Lets workers, two at a time, end one after the other: each end frees one place, so it is known who begins next. */
async function endInTurn(gates: readonly Gate[], started: readonly string[], count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const begun = Math.min(at + 2, count)
    await until(`${begun} that began`, () => started.length >= begun)
    gates[Number(started[at])]?.open()
  }
}

/** A host that gives this many tasks to the worker in one message, and then says what came back. */
function fanOut(worker: ReturnType<typeof speaker>, tasks: number, budget: Budget, name = 'host') {
  return agent({
    name,
    instructions: '',
    model: scriptedModel(({ messages }) => {
      const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
      if (results.length > 0) return results.join('\n')
      return { calls: Array.from({ length: tasks }, (_, n) => ({ name: 'ask', input: { message: String(n) } })) }
    }),
    subagents: { ask: worker },
    budget,
  })
}

describe.each(lasting)('a background run that outlived its host, on %s', (_, create) => {
  const { start } = useWorld(create)

  test('is one of the runs that resume gives, after those of users, and awaiting them is enough', async () => {
    const gate = makeGate()
    const make = (isHeld: boolean) => {
      const helper = workerOf(() => 'helped', 'helper')
      const work = playing(
        () => call('help', { message: 'x' }),
        () => 'worked',
      )
      const worker = agent({
        name: 'worker',
        instructions: '',
        subagents: { help: helper },
        model: scriptedModel(async (...given) => {
          if (isHeld) await gate.opened
          return work(...given)
        }),
      })
      const moves = [() => ({ calls: [spawnCall()] }), () => 'told']
      const { host } = hostOf(playing(...moves), { agent: worker })
      const slow = agent({
        name: 'slow',
        instructions: '',
        model: scriptedModel(async () => {
          if (isHeld) await gate.opened
          return 'slow'
        }),
      })
      return { host, slow }
    }
    const { host, slow } = make(true)
    const before = start({ agents: [host, slow] })
    const run = before.runtime.run(host, 'go')
    expect((await run.result).text).toBe('told')
    const [link] = before.store.linksOf(run.id)
    const root = before.runtime.run(slow, 'go')
    await until('both work', () => before.store.openTurns(9).length === 2)
    await before.kill()
    gate.open()

    const { runtime, store } = start({ agents: Object.values(make(false)) })
    const resumed = await runtime.resume()
    expect(resumed.map(({ id }) => id)).toEqual([root.id, link?.id])
    const texts: string[] = []
    for (const { result } of resumed) texts.push((await result).text)

    expect(texts).toEqual(['slow', 'worked'])
    expect(store.turn(link?.id ?? '')?.state).toBe('ended')
    await runtime.idle()
    expect(await runtime.resume()).toEqual([])
  })
})
