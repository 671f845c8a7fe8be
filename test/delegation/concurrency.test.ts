import fc from 'fast-check'
import { type AnyAgent, agent, type Budget, type SubagentConfig } from 'legate'
import type { ModelRequest } from 'legate/models'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { LocalStore } from '../../src/core/store/store.ts'
import { isFull } from '../crash/support/full.ts'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { localStore, turnsOfTree } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const Input = z.object({ n: z.number() })

function calls(name: string, ...numbers: readonly number[]) {
  return numbers.map((n) => ({ name, input: { n } }))
}

function numberIn({ messages }: ModelRequest): number {
  const asked = messages.findLast(({ role }) => role === 'user')?.content
  return Number(JSON.parse(String(asked)).n)
}

/** Agents that tell when they begin and end, and how many of them were at work at once. */
class Watch {
  readonly order: string[] = []
  most = 0
  private inside = 0

  worker(name: string, lastsMs = 4): AnyAgent {
    const model = scriptedModel(async (request) => {
      const label = `${name}${numberIn(request)}`
      this.order.push(`+${label}`)
      this.most = Math.max(this.most, ++this.inside)
      await new Promise((resolve) => setTimeout(resolve, lastsMs))
      this.inside--
      this.order.push(`-${label}`)
      return `${label} is done`
    })
    return agent({ name, instructions: '', input: Input, model })
  }
}

function hostOf(
  turns: readonly ReturnType<typeof calls>[],
  subagents: Record<string, SubagentConfig>,
  budget?: Budget,
) {
  const model = scriptedModel([...turns.map((one) => ({ calls: one })), 'done'])
  return { model, host: agent({ name: 'host', instructions: '', model, subagents, ...(budget && { budget }) }) }
}

/** Nothing is live or waits any more, by the rows. */
function expectNoPlaces(store: LocalStore, run: { readonly id: string }): void {
  for (const id of turnsOfTree(store, run.id)) {
    const turn = store.turn(id)
    expect(turn?.account).toMatchObject({ live: 0, nextRelease: turn?.account.children })
    if (turn?.tree) expect(turn.tree).toMatchObject({ live: 0, waiting: [] })
    expect(store.conversation(turn?.conversationId ?? '')?.places).toBeNull()
  }
}

describe('the number of a subagent', () => {
  test('of 1 lets one at a time, in order; another subagent is not held up by it', async () => {
    const [one, free] = [new Watch(), new Watch()]
    const { host } = hostOf([[...calls('one', 1, 2, 3), ...calls('free', 1, 2, 3)]], {
      one: { agent: one.worker('one'), concurrency: 1 },
      free: { agent: free.worker('free') },
    })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 6 })
    expect(one.most).toBe(1)
    expect(one.order).toEqual(['+one1', '-one1', '+one2', '-one2', '+one3', '-one3'])
    expect(free.most).toBe(3)
    expectNoPlaces(localStore(runtime), run)
  })

  test.each([
    [2, 2],
    [5, 4],
  ])('of %i lets %i of 4 run at once', async (concurrency, most) => {
    const watch = new Watch()
    const { host } = hostOf([calls('it', 1, 2, 3, 4)], { it: { agent: watch.worker('it'), concurrency } })

    await openRuntime().run(host, 'go').result

    expect(watch.most).toBe(most)
  })

  test('gives results in the order of the calls, whichever ended first', async () => {
    const watch = new Watch()
    const { host, model } = hostOf([[...calls('slow', 1), ...calls('quick', 2), ...calls('slow', 3)]], {
      slow: { agent: watch.worker('slow', 15), concurrency: 1 },
      quick: { agent: watch.worker('quick', 1) },
    })

    await openRuntime().run(host, 'go').result

    expect(resultsIn(model.requests[1]).map(({ content }) => content)).toEqual([
      'slow1 is done',
      'quick2 is done',
      'slow3 is done',
    ])
  })

  test('may be shared by several under one key', async () => {
    const watch = new Watch()
    const settings = { concurrency: 1, concurrencyKey: 'database' }
    const { host } = hostOf([[...calls('a', 1), ...calls('b', 2), ...calls('a', 3)]], {
      a: { agent: watch.worker('a'), ...settings },
      b: { agent: watch.worker('b'), ...settings },
    })

    await openRuntime().run(host, 'go').result

    expect(watch.order).toEqual(['+a1', '-a1', '+b2', '-b2', '+a3', '-a3'])
  })

  test('is beside that of the run: both hold', async () => {
    const [keyed, free] = [new Watch(), new Watch()]
    const { host } = hostOf(
      [[...calls('keyed', 1, 2, 3), ...calls('free', 1, 2, 3)]],
      { keyed: { agent: keyed.worker('keyed'), concurrency: 1 }, free: { agent: free.worker('free') } },
      { concurrency: 2 },
    )
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'completed', children: 6 })
    expect(keyed.most).toBe(1)
    expect(free.most).toBeLessThanOrEqual(2)
    expectNoPlaces(localStore(runtime), run)
  })

  test('may be held by a name that objects have by nature', async () => {
    const watch = new Watch()
    const own = Object.fromEntries([['__proto__', { agent: watch.worker('it'), concurrency: 1 }]])
    const { host } = hostOf([calls('__proto__', 1, 2)], own)

    expect(await openRuntime().run(host, 'go').result).toMatchObject({ status: 'completed', children: 2 })
    expect(watch.most).toBe(1)
  })

  test.each([
    [{ concurrency: 0 }, /concurrency must be a whole number of at least 1, not 0/],
    [{ concurrency: 1.5 }, /concurrency must be a whole number of at least 1, not 1.5/],
    [{ concurrency: '2' as unknown as number }, /concurrency must be a whole number of at least 1, not "2"/],
    [{ concurrencyKey: 'k' }, /concurrencyKey says who shares a number: say the number too/],
    [{ concurrency: 1, concurrencyKey: 5 as unknown as string }, /concurrencyKey must be a text, not 5/],
  ])('a number that makes no sense is refused: %j', (settings, message) => {
    const worker = agent({ name: 'worker', instructions: '' })
    const define = () => agent({ name: 'h', instructions: '', subagents: { it: { agent: worker, ...settings } } })
    expect(define).toThrow(message)
  })
})

describe.each(stores)('the number of a subagent on %s', (_, create) => {
  const world = useWorld(create)

  test('counts across turns: one that goes on after its host was cancelled is counted', async () => {
    const { runtime } = world.start()
    const [open, started] = [makeGate(), [] as number[]]
    const worker = agent({
      name: 'worker',
      instructions: '',
      input: Input,
      model: scriptedModel(async (request) => {
        started.push(numberIn(request))
        if (numberIn(request) === 1) await open.opened
        return 'ok'
      }),
    })
    const script: Script = ({ messages }) => {
      const rounds = messages.filter(({ role }) => role === 'user').length
      const answered = messages.at(-1)?.role === 'tool'
      return answered ? 'done' : { calls: calls('it', ...(rounds === 1 ? [1] : [2, 3])) }
    }
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(script),
      subagents: { it: { agent: worker, concurrency: 1, onParentClose: 'abandon' } },
    })
    const first = runtime.run(host, 'go')
    await until('the first child', () => started.length === 1)
    await first.cancel()
    await first.result

    const second = runtime.run(host, 'again', { conversationId: first.conversationId })
    await until('two that wait', () => world.store.linksOf(second.id).length === 2)
    expect(world.store.linksOf(second.id).map(({ released }) => released)).toEqual([false, false])
    expect(started).toEqual([1])
    open.open()

    expect(await second.result).toMatchObject({ status: 'completed' })
    expect(started).toEqual([1, 2, 3])
    expect(await (await runtime.attach(world.store.linksOf(first.id)[0]?.id ?? '')).result).toMatchObject({
      text: 'ok',
    })
    expectNoPlaces(world.store, second)
  })

  test('counts one that went on in the background, too', async () => {
    const { runtime } = world.start()
    const [open, started] = [makeGate(), [] as number[]]
    const worker = agent({
      name: 'worker',
      instructions: '',
      input: Input,
      model: scriptedModel(async (request) => {
        started.push(numberIn(request))
        if (numberIn(request) === 1) await open.opened
        return 'ok'
      }),
    })
    const model = scriptedModel([{ calls: calls('it', 1) }, { calls: calls('it', 2) }, 'done'])
    const subagents = { it: { agent: worker, concurrency: 1, promoteAfterMs: 30 } }
    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents }), 'go')
    await until('the second that waits', () => world.store.linksOf(run.id)[1]?.released === false)
    expect(world.store.linksOf(run.id)[0]).toMatchObject({ mode: 'background', outcome: null })
    expect(started).toEqual([1])
    open.open()

    await run.result
    expect(started).toEqual([1, 2])
  })

  test('is kept by rows: another process goes on where the first was killed', async () => {
    const open = makeGate()
    const began: number[] = []
    const worker = (hold: boolean) =>
      agent({
        name: 'worker',
        instructions: '',
        input: Input,
        model: scriptedModel(async (request) => {
          began.push(numberIn(request))
          if (hold) await open.opened
          return 'ok'
        }),
      })
    const hostWith = (hold: boolean) =>
      agent({
        name: 'host',
        instructions: '',
        model: scriptedModel(({ messages }) =>
          messages.at(-1)?.role === 'tool' ? 'done' : { calls: calls('it', 1, 2, 3) },
        ),
        subagents: { it: { agent: worker(hold), concurrency: 1 } },
        budget: { treeConcurrency: 2 },
      })
    const first = world.start()
    const run = first.runtime.run(hostWith(true), 'go')
    await until('all three', () => world.store.linksOf(run.id).length === 3 && began.length === 1)
    await first.kill()

    const second = world.start({ agents: [hostWith(false)] })
    await second.runtime.resume()

    expect(await (await second.runtime.attach(run.id)).result).toMatchObject({ status: 'completed', children: 3 })
    expect(began).toEqual([1, 1, 2, 3])
    expectNoPlaces(world.store, run)
    open.open()
  })

  test('a child that waits and is cancelled gives its place in the queue away', async () => {
    const { runtime } = world.start()
    const open = makeGate()
    const began: number[] = []
    const worker = agent({
      name: 'worker',
      instructions: '',
      input: Input,
      model: scriptedModel(async (request) => {
        began.push(numberIn(request))
        if (numberIn(request) === 1) await open.opened
        return 'ok'
      }),
    })
    const { host } = hostOf([calls('it', 1, 2, 3)], { it: { agent: worker, concurrency: 1 } })
    const run = runtime.run(host, 'go')
    await until('all three', () => world.store.linksOf(run.id).length === 3 && began.length === 1)

    await runtime.cancel(world.store.linksOf(run.id)[1]?.id ?? '')
    open.open()

    expect(await run.result).toMatchObject({ status: 'completed' })
    expect(began).toEqual([1, 3])
    expectNoPlaces(world.store, run)
  })

  test('an abandoned child that waits its turn gets it although its host was cancelled', async () => {
    const { runtime } = world.start()
    const open = makeGate()
    const began: number[] = []
    const worker = agent({
      name: 'worker',
      instructions: '',
      input: Input,
      model: scriptedModel(async (request) => {
        began.push(numberIn(request))
        await open.opened
        return `ok ${numberIn(request)}`
      }),
    })
    const { host } = hostOf(
      [calls('it', 1, 2)],
      { it: { agent: worker, onParentClose: 'abandon' } },
      { concurrency: 1 },
    )
    const run = runtime.run(host, 'go')
    await until('both', () => world.store.linksOf(run.id).length === 2 && began.length === 1)

    await run.cancel()
    expect(await run.result).toMatchObject({ status: 'cancelled' })
    open.open()

    for (const [at, link] of world.store.linksOf(run.id).entries()) {
      expect(await (await runtime.attach(link.id)).result).toMatchObject({ status: 'completed', text: `ok ${at + 1}` })
    }
    expectNoPlaces(world.store, run)
  })
})

/** Mids that each ask leaves, all of which tell how many of them speak at once. */
function twoLevels(
  mids: number,
  leaves: number,
  { budget = {}, midBudget = {} }: { budget?: Budget; midBudget?: Budget } = {},
) {
  let inside = 0
  const seen = { most: 0 }
  const speak = async <T>(said: T): Promise<T> => {
    seen.most = Math.max(seen.most, ++inside)
    await new Promise((resolve) => setTimeout(resolve, 2))
    inside--
    return said
  }
  const asks = (count: number): Script => {
    return ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? speak('ok') : speak({ calls: calls('ask', ...Array(count).keys()) })
  }
  const leaf = agent({ name: 'leaf', instructions: '', input: Input, model: scriptedModel(() => speak('leaf')) })
  const mid = agent({
    name: 'mid',
    instructions: '',
    input: Input,
    model: scriptedModel(asks(leaves)),
    subagents: { ask: leaf },
    budget: midBudget,
  })
  const root = agent({
    name: 'root',
    instructions: '',
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'done' : { calls: calls('ask', ...Array(mids).keys()) },
    ),
    subagents: { ask: mid },
    budget,
  })
  return { root, seen }
}

describe('the number of a tree', () => {
  test.each([1, 2, 3])('of %i is how many of it work at once, at every depth', async (treeConcurrency) => {
    const { root, seen } = twoLevels(3, 3, { budget: { treeConcurrency } })
    const runtime = openRuntime()

    const run = runtime.run(root, 'go')

    expect(await run.result).toMatchObject({ status: 'completed' })
    expect(turnsOfTree(localStore(runtime), run.id)).toHaveLength(13)
    expect(seen.most).toBe(treeConcurrency)
    expectNoPlaces(localStore(runtime), run)
  })

  test('is the runtime’s where that is smaller, and a child’s own holds below it', async () => {
    const wide = twoLevels(3, 4, { budget: { treeConcurrency: 8 } })
    await openRuntime({ budget: { treeConcurrency: 2 } }).run(wide.root, 'go').result
    expect(wide.seen.most).toBe(2)

    const narrow = twoLevels(1, 6, { midBudget: { treeConcurrency: 2 } })
    await openRuntime().run(narrow.root, 'go').result
    expect(narrow.seen.most).toBe(2)
  })

  test('is nobody’s where none is said: no row counts it', async () => {
    const { root } = twoLevels(2, 2)
    const runtime = openRuntime()

    const run = runtime.run(root, 'go')
    await run.result

    for (const id of turnsOfTree(localStore(runtime), run.id)) expect(localStore(runtime).turn(id)?.tree).toBeNull()
  })

  test('must be at least 1', () => {
    const define = () => agent({ name: 'a', instructions: '', budget: { treeConcurrency: 0 } })
    expect(define).toThrow(/budget.treeConcurrency must be a whole number of at least 1/)
  })
})

test('parallel delegation can be forbidden, by the host and by the application', async () => {
  for (const where of ['agent', 'runtime'] as const) {
    const watch = new Watch()
    const forbidden = { concurrency: 1 }
    const { host } = hostOf(
      [calls('it', 1, 2, 3)],
      { it: { agent: watch.worker('it') } },
      where === 'agent' ? forbidden : {},
    )

    await openRuntime(where === 'runtime' ? { budget: forbidden } : {}).run(host, 'go').result

    expect(watch.most).toBe(1)
  }
})

interface Plan {
  readonly children: readonly Plan[]
  readonly key: 'a' | 'b' | null
  readonly concurrency: number
  readonly tree: number | null
}

const { plan } = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.record({
    children: fc.oneof(
      { depthSize: 'small', maxDepth: 3, withCrossShrink: true },
      fc.constant([]),
      fc.array(tie('plan'), { minLength: 1, maxLength: 4 }),
    ) as fc.Arbitrary<readonly Plan[]>,
    key: fc.constantFrom('a', 'b', null),
    concurrency: fc.integer({ min: 1, max: 2 }),
    tree: fc.option(fc.integer({ min: 1, max: 2 }), { freq: 3 }),
  }),
}))

test('I5: no limits, at any depth and in any mixture, make a tree wait for itself', { timeout: 600_000 }, async () => {
  const check = fc.asyncProperty(plan, fc.integer({ min: 1, max: 3 }), async (root, workers) => {
    const runtime = openRuntime({ engine: { workers } })
    const run = runtime.run(build(root, 'r', false), 'go' as never)
    const outcome = await Promise.race([run.result, new Promise((resolve) => setTimeout(resolve, 4_000, 'stuck'))])

    expect(outcome).toMatchObject({ status: 'completed' })
    expect(turnsOfTree(localStore(runtime), run.id)).toHaveLength(sizeOf(root))
    expectNoPlaces(localStore(runtime), run)
    await runtime.close()
  })

  await fc.assert(check, { numRuns: isFull ? 5_000 : 60 })
})

function sizeOf({ children }: Plan): number {
  return 1 + children.reduce((sum, child) => sum + sizeOf(child), 0)
}

function build({ children, concurrency, tree }: Plan, name: string, isChild = true): AnyAgent {
  const subagents = Object.fromEntries(
    children.map((child, at) => {
      const limit = child.key === null ? {} : { concurrency: 1, concurrencyKey: child.key }
      return [`c${at}`, { agent: build(child, `${name}${at}`), ...limit }]
    }),
  )
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' || children.length === 0
      ? 'ok'
      : { calls: children.map((_, at) => ({ name: `c${at}`, input: { n: at } })) },
  )
  const budget = { concurrency, depth: 9, ...(tree === null ? {} : { treeConcurrency: tree }) }
  return agent({ name, instructions: '', model, subagents, budget, ...(isChild && { input: Input }) }) as AnyAgent
}
