import { type AnyAgent, agent, type Budget, type Runtime, tool } from 'legate'
import type { ModelRequest } from 'legate/models'
import { type Script, type ScriptedAnswer, type ScriptedModel, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { eventsOf, only, openRuntime, resultsIn, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { lasting, stores } from '../support/stores.ts'

const it = tool({ description: 'It', input: { type: 'object' }, effect: 'pure', execute: () => 'ok' })
let count = 0
const call = () => ({ name: 'it', input: { n: count++ } })
const cost = (tokens: number) => ({ inputTokens: tokens - 1, outputTokens: 1 })

function spender(script: Script, budget: Budget, extra: object = {}) {
  const model = scriptedModel(script)
  const settings = { maxOutputTokens: 10 }
  return {
    model,
    agent: agent({ name: 'spender', instructions: '', model, settings, tools: { it }, budget, ...extra }),
  }
}

function hostOf(below: AnyAgent, model: ScriptedModel, budget: Budget) {
  const settings = { maxOutputTokens: 10 }
  return agent({ name: 'host', instructions: '', model, settings, subagents: { ask: below }, budget })
}

/** Calls a tool for ever; wraps up when it has no tools. */
const forever: Script = ({ tools }): ScriptedAnswer =>
  tools.length === 0 ? { text: 'So far.', usage: cost(100) } : { calls: [call()], usage: cost(1_000) }

/** Uses what it is asked, at a token for four characters, and all that it may answer, at most this. */
const usageOf = ({ messages, settings }: ModelRequest, most: number) => ({
  inputTokens: Math.ceil(JSON.stringify(messages).length / 4),
  outputTokens: Math.min(most, settings.maxOutputTokens ?? most),
})

const spendOf = (runtime: Runtime, runId: string) => localStore(runtime).turn(runId)?.spend

describe('a budget of tokens', () => {
  test('ends in one call to wrap up, from what was kept for it, and says what was used up', async () => {
    const runtime = openRuntime()
    const { agent: who, model } = spender(forever, { tokens: 5_000 })
    const run = runtime.run(who, 'go')
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'over_budget', text: 'So far.', modelCalls: model.requests.length })
    expect(outcome.error?.message).toMatch(/^The budget of spender, 5000 tokens, has no room for a call/)
    expect(toolNamesIn(model.requests.at(-1))).toEqual([])
    expect(model.requests.at(-1)?.messages.at(-1)).toMatchObject({
      content: expect.stringMatching(
        /^The budget of spender, 5000 tokens, has no room for a call of about \d+: 4000 used, 0 held back, 1000 left\. Sum up what you have and what is missing\.$/,
      ),
    })
    expect(only(await eventsOf(run), 'budget')).toMatchObject([{ limit: 'tokens' }])
    const spend = spendOf(runtime, run.id)
    expect(spend?.spent.tokens).toBeLessThanOrEqual(5_000)
    expect(spend).toMatchObject({ held: { tokens: 0, usd: 0 }, limit: { tokens: 5_000, usd: null } })
  })

  test('too small for any call ends without one', async () => {
    const { agent: who, model } = spender(forever, { tokens: 3 })

    expect(await openRuntime().run(who, 'go').result).toMatchObject({
      status: 'over_budget',
      error: {
        code: 'over_budget',
        message: expect.stringMatching(/^The budget of spender, 3 tokens, .* 0 used, 0 held back, 3 left/),
      },
      modelCalls: 0,
    })
    expect(model.requests).toEqual([])
  })

  test('of the runtime holds for every run; the smaller one counts', async () => {
    const runtime = openRuntime({ budget: { tokens: 4_000 } })
    const run = runtime.run(spender(forever, { tokens: 9_000 }).agent, 'go')
    await run.result

    expect(spendOf(runtime, run.id)?.limit.tokens).toBe(4_000)
  })

  test('given to one run binds it and all below it, and never widens what the agent says', async () => {
    const runtime = openRuntime()
    const child = spender(forever, {})
    const model = scriptedModel(({ messages, tools }) =>
      tools.length === 0 || messages.some(({ role }) => role === 'tool')
        ? { text: 'end', usage: cost(50) }
        : { calls: [{ name: 'ask', input: { message: 'x' } }], usage: cost(50) },
    )
    const run = runtime.run(hostOf(child.agent, model, {}), 'go', { budget: { tokens: 6_000, modelCalls: 3 } })
    await run.result
    const wider = runtime.run(spender(forever, { tokens: 4_000 }).agent, 'go', { budget: { tokens: 9_000 } })
    await wider.result

    expect(spendOf(runtime, run.id)?.spent.tokens).toBeLessThanOrEqual(6_000)
    const [link] = localStore(runtime).linksOf(run.id)
    expect(localStore(runtime).turn(link?.id ?? '')).toMatchObject({
      limits: { modelCalls: 3 },
      spend: { limit: { tokens: 6_000 } },
    })
    expect(spendOf(runtime, wider.id)?.limit.tokens).toBe(4_000)
    expect(() => runtime.run(child.agent, 'go', { budget: { tokns: 5 } as never })).toThrow(/not "tokns"/)
  })

  test('of the host binds what its children spend together; the host still sums up', async () => {
    const child = spender(forever, {})
    const model = scriptedModel(({ messages, tools }) => {
      const results = messages.filter(({ role }) => role === 'tool')
      if (tools.length === 0 || results.length > 0) return { text: `${results.length} results`, usage: cost(50) }
      return { calls: [1, 2, 3].map((n) => ({ name: 'ask', input: { message: `${n}` } })), usage: cost(50) }
    })
    const host = hostOf(child.agent, model, { tokens: 20_000 })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    const outcome = await run.result

    const spend = spendOf(runtime, run.id)
    expect(spend?.spent.tokens).toBeLessThanOrEqual(20_000)
    expect(spend?.held).toEqual({ tokens: 0, usd: 0 })
    expect(resultsIn(model.requests.at(-1)).every(({ content }) => String(content).includes('[over_budget]'))).toBe(
      true,
    )
    expect(outcome.text).toBe('3 results')
    const share = await runtime.usage(run.id)
    expect(share.usage).toEqual(outcome.usage)
    expect(share.children).toHaveLength(3)
    const total = share.children.reduce((sum, { usage }) => sum + usage.inputTokens, share.own.inputTokens)
    expect(total).toBe(share.usage.inputTokens)
  })

  test.each([2_000, 3_500, 5_000, 9_000, 20_000])(
    'of %i tokens over ten children always leaves the host its summing-up',
    async (tokens) => {
      const child = agent({
        name: 'child',
        instructions: '',
        tools: { it },
        model: scriptedModel((request) => {
          const usage = usageOf(request, 400)
          const text = 'x'.repeat(usage.outputTokens * 2)
          return request.tools.length === 0 ? { text, usage } : { text, calls: [call()], usage }
        }),
      })
      const model = scriptedModel((request) => {
        const results = resultsIn(request)
        const calls = Array.from({ length: 10 }, (_, at) => ({ name: 'ask', input: { message: `${at}` } }))
        const usage = usageOf(request, 100)
        return results.length === 0 ? { calls, usage } : { text: `summed up ${results.length}`, usage }
      })
      const runtime = openRuntime()
      const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child }, budget: { tokens } })
      const run = runtime.run(host, 'go')

      const outcome = await run.result

      expect(outcome.text).toBe('summed up 10')
      expect(outcome.modelCalls).toBe(model.requests.length)
      expect(outcome.error?.message ?? 'tokens').toMatch(/tokens/)
    },
  )

  test.each([5, 10])('of a host whose %i children cost more than was held still sums up, once', async (size) => {
    let calls = 0
    const kid = spender(() => {
      calls++
      return { text: 'found', usage: { inputTokens: 400, outputTokens: 100 } }
    }, {})
    const model = scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool')
      const asked = Array.from({ length: size }, (_, at) => ({ name: 'ask', input: { message: `${at}` } }))
      return results.length === 0
        ? { calls: asked, usage: cost(500) }
        : { text: `${results.length} found`, usage: cost(200) }
    })
    const runtime = openRuntime()
    const run = runtime.run(hostOf(kid.agent, model, { tokens: 3_000 }), 'go')

    expect(await run.result).toMatchObject({ status: 'over_budget', text: `${size} found` })
    expect(model.requests).toHaveLength(2)
    expect(model.requests[1]?.settings.maxOutputTokens).toBe(10)
    expect(spendOf(runtime, run.id)).toMatchObject({ spent: { tokens: 500 + calls * 500 + 200 }, held: { tokens: 0 } })
  })

  test('cannot be spent twice by calls that are made side by side', async () => {
    const all = makeGate()
    let begun = 0
    const child = spender(
      async ({ settings }) => {
        if (++begun === 4) all.open()
        await Promise.race([all.opened, new Promise((resolve) => setTimeout(resolve, 50))])
        return { text: 'done', usage: cost(settings.maxOutputTokens ?? 1_900) }
      },
      {},
      { settings: { maxOutputTokens: 1_900 } },
    )
    const model = scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? { text: 'end', usage: cost(20) }
        : { calls: [1, 2, 3, 4].map((n) => ({ name: 'ask', input: { message: `${n}` } })), usage: cost(20) },
    )
    const host = hostOf(child.agent, model, { tokens: 5_000 })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await run.result

    expect(begun).toBeLessThan(4)
    expect(spendOf(runtime, run.id)?.spent.tokens).toBeLessThanOrEqual(5_000)
  })
})

test('what was held for a call is free while a person is asked for it, and held once when it is made', async () => {
  const held = makeGate()
  const { agent: who, model } = spender(
    () => held.opened.then(() => 'said'),
    { tokens: 5_000 },
    { grant: { ask: ['model:*'] } },
  )
  const runtime = openRuntime()
  const run = runtime.run(who, 'go')
  await expect.poll(async () => (await runtime.approvals()).length).toBe(1)
  expect(spendOf(runtime, run.id)?.held.tokens).toBe(0)

  const [ask] = await runtime.approvals()
  await runtime.answer(ask?.nodeId ?? '', { allow: true })
  await expect.poll(() => model.requests.length).toBe(1)
  const once = spendOf(runtime, run.id)?.held.tokens ?? 0
  expect(once).toBeGreaterThan(0)
  expect(once).toBeLessThan(1_000)
  held.open()
  await run.result

  expect(spendOf(runtime, run.id)?.held).toEqual({ tokens: 0, usd: 0 })
})

describe('what a call may cost is what is held for it', () => {
  /** Delegates to five at a time, and then sums up. */
  const spreading = () =>
    scriptedModel(({ messages, tools }) =>
      tools.length === 0 || messages.some(({ role }) => role === 'tool')
        ? { text: 'end', usage: cost(20) }
        : { calls: [1, 2, 3, 4, 5].map((n) => ({ name: 'ask', input: { message: `${n}` } })), usage: cost(20) },
    )

  test('an answer without a limit of its own is asked for in a size that is held, and larger where there is room', async () => {
    const held: (number | undefined)[] = []
    const runtime = openRuntime()
    const sizes = await Promise.all(
      [2_000, 8_000, 12_000, 1_000_000].map(async (tokens) => {
        const model: ScriptedModel = scriptedModel(() => {
          held.push(spendOf(runtime, run.id)?.held.tokens)
          return { text: 'said', usage: cost(30) }
        })
        const run = runtime.run(agent({ name: 'free', instructions: '', model, budget: { tokens } }), 'go')
        await run.result
        const most = model.requests[0]?.settings.maxOutputTokens ?? Number.NaN
        expect(held.some((hold) => hold !== undefined && hold >= most && hold < most + 200)).toBe(true)
        return most
      }),
    )

    const [small = 0, middle = 0, large = 0, most] = sizes
    expect(small).toBe(1_000)
    expect(middle).toBeGreaterThan(1_900)
    expect(middle).toBeLessThanOrEqual(2_000)
    expect(large).toBeGreaterThan(middle)
    expect(most).toBe(4_096)
  })

  test('a limit of the agent’s own stays as it is, and without a budget nothing is added', async () => {
    const own = spender(() => ({ text: 'said', usage: cost(30) }), { tokens: 50_000 })
    const none = scriptedModel(['said'])
    const runtime = openRuntime()
    await runtime.run(own.agent, 'go').result
    await runtime.run(agent({ name: 'none', instructions: '', model: none }), 'go').result

    expect(own.model.requests[0]?.settings).toEqual({ maxOutputTokens: 10 })
    expect(none.requests[0]?.settings).toEqual({})
  })

  test.each([3_000, 6_000, 15_000, 40_000])(
    'children that say all they may, five at once, stay within %i tokens',
    async (tokens) => {
      const child = agent({
        name: 'writer',
        instructions: '',
        tools: { it },
        model: scriptedModel(({ settings, tools }) => {
          const usage = { inputTokens: 20, outputTokens: settings.maxOutputTokens ?? 1_000_000 }
          return tools.length === 0 ? { text: 'end', usage } : { calls: [call()], usage }
        }),
      })
      const runtime = openRuntime()
      const run = runtime.run(hostOf(child, spreading(), { tokens }), 'go')
      await run.result

      const spend = spendOf(runtime, run.id)
      expect(spend?.spent.tokens).toBeLessThanOrEqual(tokens)
      expect(spend?.spent.tokens).toBeGreaterThan(tokens / 2)
      expect(spend?.held.tokens).toBe(0)
    },
  )

  test('a provider that says more is counted as it is, and then no call is made but the one to sum up', async () => {
    const under = makeGate()
    let calls = 0
    const child = agent({
      name: 'writer',
      instructions: '',
      tools: { it },
      model: scriptedModel(async () => {
        if (++calls === 5) under.open()
        await under.opened
        return { calls: [call()], usage: cost(50_000) }
      }),
    })
    const model = spreading()
    const runtime = openRuntime()
    const run = runtime.run(hostOf(child, model, { tokens: 20_000 }), 'go')
    const outcome = await run.result

    expect(calls).toBe(5)
    expect(model.requests.map(({ tools }) => tools.length)).toEqual([1, 0])
    expect(outcome).toMatchObject({ status: 'over_budget', children: 5, text: 'end' })
    expect(spendOf(runtime, run.id)).toMatchObject({ spent: { tokens: 5 * 50_000 + 40 }, held: { tokens: 0 } })
    expect(outcome.usage.inputTokens + outcome.usage.outputTokens).toBe(5 * 50_000 + 40)
  })

  test('a call to sum up is asked for what is left, also where only dollars are counted', async () => {
    const priced = scriptedModel(
      ({ tools }) =>
        tools.length === 0 ? { text: 'So far.', usage: cost(10) } : { calls: [call()], usage: cost(900) },
      'openai/gpt-4o',
    )
    const who = agent({ name: 'spender', instructions: '', model: priced, tools: { it }, budget: { usd: 0.03 } })

    expect(await openRuntime().run(who, 'go').result).toMatchObject({ status: 'over_budget', text: 'So far.' })
    const asked = priced.requests.map(({ settings }) => settings.maxOutputTokens ?? Number.NaN)
    expect(Math.min(...asked)).toBeGreaterThan(0)
    expect(Math.max(...asked)).toBeLessThanOrEqual(4_096)
  })

  test.each<[string, ScriptedAnswer, boolean]>([
    ['in the middle of its answer has cost what was held', { text: 'half an ans', error: new Error('gone') }, true],
    ['while it thinks, too', { reasoning: 'hm', error: new Error('gone') }, true],
    ['before it said anything has cost nothing', { error: new Error('gone') }, false],
  ])('a call that fails %s', async (_name, turn, isCounted) => {
    const runtime = openRuntime()
    const run = runtime.run(spender(() => turn, { tokens: 5_000 }).agent, 'go')

    expect(await run.result).toMatchObject({ status: 'failed' })
    const spend = spendOf(runtime, run.id)
    expect((spend?.spent.tokens ?? 0) > 0).toBe(isCounted)
    expect(spend?.held.tokens).toBe(0)
  })
})

describe('a budget of dollars', () => {
  test('needs a price: without one the call is refused, and says how to give one', async () => {
    const { agent: who, model } = spender(forever, { usd: 1 })

    expect(await openRuntime().run(who, 'go').result).toMatchObject({
      status: 'over_budget',
      error: { message: expect.stringMatching(/price of .* is not known.*config file/) },
      advice: expect.stringContaining('the error says why. Ask for less, or change the budget.'),
    })
    expect(model.requests).toEqual([])
  })

  test('is kept by the price of the model', async () => {
    const priced = { ...scriptedModel(forever), id: 'openai/gpt-4o' }
    const who = agent({ name: 'spender', instructions: '', model: priced, tools: { it }, budget: { usd: 0.05 } })
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')

    expect(await run.result).toMatchObject({ status: 'over_budget' })
    const spend = spendOf(runtime, run.id)
    expect(spend?.spent.usd).toBeGreaterThan(0.02)
    expect(spend?.spent.usd).toBeLessThanOrEqual(0.05)
  })
})

describe.each(stores)('after a crash on %s', (_, create) => {
  const world = useWorld(create)

  test('what was held for a call that died is free again, and nothing is counted twice', async () => {
    const entered = makeGate()
    let calls = 0
    const script: Script = () => {
      calls++
      if (calls > 1) return { text: 'done', usage: cost(300) }
      entered.open()
      return makeGate().opened.then(() => 'never')
    }
    const who = () => spender(script, { tokens: 3_000 }).agent
    const first = world.start()
    const run = first.runtime.run(who(), 'go')
    await entered.opened
    expect(world.store.turn(run.id)?.spend?.held.tokens).toBeGreaterThan(0)
    await first.kill()

    const second = world.start({ agents: [who()] })
    await second.runtime.resume()
    await (await second.runtime.attach(run.id)).result

    expect(world.store.turn(run.id)?.spend).toMatchObject({ spent: { tokens: 300 }, held: { tokens: 0, usd: 0 } })
  })
})

describe.each(lasting)('a budget of one run over a restart, on %s', (_, create) => {
  const world = useWorld(create)

  test('leaves the host its summing-up, and says what was used up', async () => {
    const entered = makeGate()
    const family = (isLeft: boolean) => {
      const never: Script = () => {
        entered.open()
        return makeGate().opened.then(() => 'never')
      }
      const works: Script = (request) => {
        const usage = usageOf(request, 10)
        return request.tools.length === 0 ? { text: 'So far.', usage } : { calls: [call()], usage }
      }
      const kid = spender(isLeft ? never : works, {})
      const model = scriptedModel((request) => {
        const results = resultsIn(request)
        const calls = Array.from({ length: 10 }, (_item, at) => ({ name: 'ask', input: { message: `${at}` } }))
        return results.length === 0
          ? { calls, usage: usageOf(request, 10) }
          : { text: `${results.length} results`, usage: usageOf(request, 10) }
      })
      return { model, host: hostOf(kid.agent, model, {}) }
    }
    const first = world.start()
    const run = first.runtime.run(family(true).host, 'go', { budget: { tokens: 3_000 } })
    await entered.opened
    const { model, host } = family(false)
    const runtime = await world.restart(first, [host])
    const outcome = await (await runtime.attach(run.id)).result

    expect(outcome.text).toBe('10 results')
    expect(outcome).toMatchObject({ modelCalls: 2, children: 10 })
    expect(model.requests).toHaveLength(1)
    const told = resultsIn(model.requests[0]).map(({ content }) => String(content))
    expect(told.some((text) => /The budget of host, 3000 tokens, .* used, .* held back, .* left/.test(text))).toBe(true)
    expect(told.join()).not.toContain('tool calls')
    expect(spendOf(runtime, run.id)).toMatchObject({ held: { tokens: 0 }, limit: { tokens: 3_000 } })
  })
})

describe('a run that goes in circles', () => {
  test('is refused the fourth time it makes the same call with the same result', async () => {
    let ran = 0
    const same = tool({
      description: 'x',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => {
        ran++
        return 'same'
      },
    })
    const model = scriptedModel(({ messages }) => {
      const last = messages.findLast(({ role }) => role === 'tool')
      return String(last?.content).startsWith('Refused') ? 'I see.' : { calls: [{ name: 'same', input: { a: 1 } }] }
    })
    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, tools: { same } }), 'go').result

    expect(ran).toBe(3)
    expect(outcome).toMatchObject({ status: 'completed', text: 'I see.' })
  })

  test.each<[string, object, (n: number) => string, object]>([
    ['other results', {}, (n) => `result ${n}`, { a: 1 }],
    ['a tool that polls', { polls: true }, () => 'not yet', { a: 1 }],
  ])('is not refused for %s', async (_name, extra, result, input) => {
    let ran = 0
    const again = tool({
      description: 'x',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => result(ran++),
      ...extra,
    })
    const model = scriptedModel(() => (ran < 6 ? { calls: [{ name: 'again', input: input as never }] } : 'done'))
    await openRuntime().run(agent({ name: 'a', instructions: '', model, tools: { again } }), 'go').result

    expect(ran).toBe(6)
  })

  test('always delegates: ends by itself, within its limits', async () => {
    const self: { agent?: AnyAgent } = {}
    const model = scriptedModel(({ tools, messages }) =>
      tools.some(({ name }) => name === 'ask') && messages.filter(({ role }) => role === 'tool').length < 3
        ? { calls: Array.from({ length: 5 }, () => ({ name: 'ask', input: { message: 'more' } })) }
        : 'enough',
    )
    self.agent = agent({
      name: 'hydra',
      instructions: '',
      model,
      subagents: { ask: () => self.agent ?? agent({ name: 'x', instructions: '' }) },
      budget: { children: 4, depth: 3 },
    })
    const runtime = openRuntime()

    const outcome = await runtime.run(self.agent as never, 'go' as never).result

    expect(outcome).toMatchObject({ status: 'completed', children: 4 })
    expect(model.requests.length).toBeLessThan(400)
  })
})

test('usage of a run that goes on is known too', async () => {
  const held = makeGate()
  const child = agent({
    name: 'child',
    instructions: '',
    model: scriptedModel([{ text: 'x', usage: cost(70) }]),
  })
  const model = scriptedModel((_, call) => {
    if (call > 0) return held.opened.then(() => 'end')
    return { calls: [{ name: 'ask', input: { message: 'go' } }], usage: cost(30) }
  })
  const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child } })
  const runtime = openRuntime()
  const run = runtime.run(host, 'go')
  await expect.poll(async () => (await runtime.usage(run.id)).usage).toMatchObject({ inputTokens: 98, outputTokens: 2 })
  held.open()
  await run.cancel()
  await expect(runtime.usage('nothing')).rejects.toThrow(/There is no run/)
})
