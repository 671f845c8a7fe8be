import { type AnyAgent, agent, type Budget, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultIn, resultsIn, toolNamesIn } from '../support/reading.ts'
import { eventsOf, localStore } from '../support/rows.ts'

const Input = z.object({ n: z.number() })
const ask = { name: 'ask', input: { n: 1 } }

/** `levels` agents below one another, each of which asks the next, offered or not, and passes its result on. */
function tower(levels: number, budget: Budget = {}, offered: string[] = []): AnyAgent {
  let below: AnyAgent | undefined
  for (let level = levels; level >= 0; level--) {
    const model = scriptedModel((request) => {
      const [result] = resultsIn(request)
      if (result === undefined) offered.push(`${level}: ${toolNamesIn(request).join()}`)
      return result === undefined && level < levels ? { calls: [ask] } : `${level}<${String(result?.content)}`
    })
    below = agent({
      name: `level${level}`,
      instructions: '',
      model,
      ...(level === 0 ? { budget } : { input: Input }),
      ...(below === undefined ? {} : { subagents: { ask: { agent: below, briefing: 'none' as const } } }),
    })
  }
  return below as AnyAgent
}

describe('the limit of depth', () => {
  test('is 3 below the root unless a budget says otherwise, and is refused in words', async () => {
    const outcome = await openRuntime().run(tower(5), 'go' as never).result

    expect(outcome).toMatchObject({ status: 'completed' })
    expect(outcome.text).toBe(
      '0<1<2<3<Delegation skipped: subagent unavailable. Subagents cannot create other subagents: delegation is 4 deep and the limit is 3. Do this work yourself.',
    )
  })

  test.each([
    [0, '0<Delegation skipped: subagent unavailable. delegation is 1 deep and the limit is 0. Do this work yourself.'],
    [
      1,
      '0<1<Delegation skipped: subagent unavailable. Subagents cannot create other subagents: delegation is 2 deep and the limit is 1. Do this work yourself.',
    ],
    [5, '0<1<2<3<4<5<undefined'],
  ])('may be set to %i', async (depth, text) => {
    const outcome = await openRuntime().run(tower(5, { depth }), 'go' as never).result

    expect(outcome.text).toBe(text)
  })

  test('is where subagents are no longer offered, and tools still are', async () => {
    const offered: string[] = []

    await openRuntime().run(tower(5, { depth: 2 }, offered), 'go' as never).result

    expect(offered).toEqual(['0: ask', '1: ask', '2: '])
  })

  test('holds for the whole tree: a child cannot raise it, and the runtime’s is the most', async () => {
    const outcome = await openRuntime({ budget: { depth: 1 } }).run(tower(5, { depth: 4 }), 'go' as never).result

    expect(outcome.text).toMatch(/^0<1<Delegation skipped.*the limit is 1/)
  })
})

describe('the limit of children', () => {
  const expert = () => agent({ name: 'expert', instructions: '', model: scriptedModel(() => 'ok'), input: Input })

  test('lets the first run and refuses the rest in words, and the host goes on', async () => {
    const model = scriptedModel([{ calls: Array(4).fill(ask) }, 'done'])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: expert() },
      budget: { children: 2 },
    })

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 2 })
    const said = resultsIn(model.requests[1]).map(({ content }) => content)
    const refused =
      'Delegation skipped: subagent unavailable. this run has started 2 subagents, its limit. Use what they gave.'
    expect(said.toSorted()).toEqual([refused, refused, 'ok', 'ok'])
  })

  test('of zero refuses all', async () => {
    const model = scriptedModel([{ calls: [ask] }, 'done'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: expert() }, budget: { children: 0 } })

    await openRuntime().run(host, 'go').result

    expect(resultIn(model.requests[1])).toMatch(/started 0 subagents, its limit/)
  })
})

describe('concurrency', () => {
  /** Experts that count how many of them work at once. */
  function counting() {
    let inside = 0
    const seen = { most: 0 }
    const model = scriptedModel(async () => {
      seen.most = Math.max(seen.most, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 5))
      inside--
      return 'ok'
    })
    return { seen, expert: agent({ name: 'expert', instructions: '', model, input: Input }) }
  }

  test.each([
    [1, 1],
    [3, 3],
    [20, 8],
  ])('of %i lets %i of 8 children work at once; the others wait their turn', async (concurrency, most) => {
    const { seen, expert } = counting()
    const model = scriptedModel([{ calls: Array(8).fill(ask) }, 'done'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: expert }, budget: { concurrency } })

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 8 })
    expect(seen.most).toBe(most)
  })

  test('with one worker and a depth of 3 nothing waits for itself (I5)', async () => {
    const outcome = await openRuntime({ engine: { workers: 1 } }).run(tower(3, { concurrency: 1 }), 'go' as never)
      .result

    expect(outcome.text).toBe('0<1<2<3<undefined')
  })
})

test('turns, toolCalls and children are counted for each run by itself: a child takes nothing of its host’s', async () => {
  let looked = 0
  const look = tool({ description: 'Looks.', input: { type: 'object' }, execute: () => `${++looked}` })
  /** Calls these, one after the other, and then answers. */
  const calls = (...names: string[]) =>
    scriptedModel(
      (request) =>
        names.map((name) => ({ calls: [{ name, input: name === 'ask' ? { n: 1 } : {} }] }))[
          resultsIn(request).length
        ] ?? 'done',
    )
  const leaf = agent({ name: 'leaf', instructions: '', model: calls('look', 'look'), tools: { look }, input: Input })
  const middle = agent({
    name: 'middle',
    instructions: '',
    model: calls('ask', 'look'),
    tools: { look },
    subagents: { ask: leaf },
    input: Input,
  })
  const top = agent({
    name: 'top',
    instructions: '',
    model: calls('ask', 'look'),
    tools: { look },
    subagents: { ask: middle },
    budget: { modelCalls: 3, toolCalls: 2, children: 1 },
  })
  const runtime = openRuntime()

  const outcome = await runtime.run(top, 'go').result

  expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
  expect(looked).toBe(4)
  const links = localStore(runtime).linksOf(outcome.runId)
  expect(links.map(({ outcome: of }) => of?.status)).toEqual(['completed'])
})

describe('a budget of the host for one of its subagents', () => {
  test('binds that child, and the smaller number holds', async () => {
    const stubborn = scriptedModel(({ tools }) =>
      tools.length === 0 ? 'enough' : { calls: [{ name: 'x', input: {} }] },
    )
    const inner = agent({ name: 'inner', instructions: '', input: Input })
    const expert = agent({
      name: 'expert',
      instructions: '',
      model: stubborn,
      input: Input,
      subagents: { inner },
      budget: { modelCalls: 3 },
    })
    const run = async (turns: number) => {
      const model = scriptedModel([{ calls: [ask] }, 'done'])
      const subagents = { ask: { agent: expert, budget: { modelCalls: turns } } }
      await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents }), 'go').result
      return resultIn(model.requests[1])
    }

    expect(await run(2)).toBe('[max_turns] The limit of 2 model calls was reached.\n\nenough')
    expect(await run(9)).toBe('[max_turns] The limit of 3 model calls was reached.\n\nenough')
  })

  test('a child’s own deadline ends the child, not the host', async () => {
    const slow = agent({
      name: 'slow',
      instructions: '',
      model: scriptedModel([{ text: 'never', delayMs: 5_000 }]),
      input: Input,
    })
    const model = scriptedModel([{ calls: [ask] }, 'went on'])
    const subagents = { ask: { agent: slow, budget: { wallMs: 40 } } }

    const outcome = await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'went on' })
    expect(resultIn(model.requests[1])).toBe('[timed_out] The deadline passed.')
  })

  test('a child cannot outlive its host’s deadline', async () => {
    const slow = agent({
      name: 'slow',
      instructions: '',
      model: scriptedModel([{ text: 'never', delayMs: 5_000 }]),
      input: Input,
      budget: { wallMs: 100_000 },
    })
    const model = scriptedModel([{ text: 'Asking.', calls: [ask] }])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: slow },
      budget: { wallMs: 60 },
    })
    const runtime = openRuntime()

    const run = runtime.run(host, 'go')

    expect(await run.result).toMatchObject({ status: 'timed_out', text: 'Asking.' })
    const [link] = localStore(runtime).linksOf(run.id)
    expect(['timed_out', 'cancelled']).toContain(link?.outcome?.status)
  })
})

describe('delegations that a limit refuses', () => {
  const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'ok') })

  test('leave an event each, which names the limit, and why tells of the limit', async () => {
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? 'done'
        : { calls: ['a', 'b', 'c', 'd'].map((message) => ({ name: 'child', input: { message } })) },
    )
    const host = agent({ name: 'host', instructions: '', model, subagents: { child }, budget: { children: 1 } })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    expect(await run.result).toMatchObject({ status: 'completed', children: 1 })
    const told = eventsOf(localStore(runtime), run.conversationId).filter(({ type }) => type === 'budget')
    expect(told).toHaveLength(3)
    for (const event of told) {
      const message = 'The delegation to "child" was refused: this run has started 1 subagents, its limit.'
      expect(event).toMatchObject({ limit: 'children', message, path: ['host'] })
    }
    expect((await runtime.why(run.id)).text).toContain('It has started 1 subagents, its limit')
  })

  test('do not cut the list of an agent that is code, unless a budget names the number', async () => {
    const host = (children?: number) =>
      agent({
        name: 'host',
        ...(children === undefined ? {} : { budget: { children } }),
        async reply(_input: string, { delegate }) {
          const said = await Promise.all(Array.from({ length: 120 }, (_, at) => delegate(child, `item ${at}`)))
          return String(said.filter(({ status }) => status === 'completed').length)
        },
      })
    const runtime = openRuntime()
    expect(await runtime.run(host(), 'go').result).toMatchObject({ text: '120', children: 120 })
    const run = runtime.run(host(30), 'go')
    expect(await run.result).toMatchObject({ text: '30', children: 30 })
    const told = eventsOf(localStore(runtime), run.conversationId).filter(({ type }) => type === 'budget')
    expect(told).toHaveLength(90)
  }, 30_000)
})
