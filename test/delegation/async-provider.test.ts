import { type AnyAgent, agent, SubAgentUnavailable } from 'legate'
import { makeSubagentTool } from 'legate/compat'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { openRuntime, resultsIn, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { lasting, type Rows } from '../support/stores.ts'

const Topic = z.object({ topic: z.string() })
const ask = { name: 'ask', input: { topic: 'QUIC' } }
const soon = () => new Promise((resolve) => setTimeout(resolve, 5))

function expert(text = 'ok'): AnyAgent {
  return agent({ name: 'expert', instructions: '', model: scriptedModel(() => text), input: Topic })
}

function rowsOf(create: () => Rows): Rows {
  const rows = create()
  onTestFinished(() => rows.drop())
  return rows
}

describe('issue 19: an async provider', () => {
  test.each([
    ['one delegation', [1], 1],
    ['two in a row', [1, 1], 2],
    ['three at once', [3], 3],
    ['none', [], 1],
  ])('is called once per delegation: %s', async (_name, turns, calls) => {
    let made = 0
    const model = scriptedModel([...turns.map((count) => ({ calls: Array(count).fill(ask) })), 'done'])
    const provider = async () => {
      await soon()
      return expert(`from ${++made}`)
    }
    const boss = agent({ name: 'host', instructions: '', model, subagents: { ask: provider } })

    const outcome = await openRuntime().run(boss, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
    expect(made).toBe(calls)
    expect(model.requests[0]?.tools?.[0]).toMatchObject({ name: 'ask', inputSchema: { required: ['topic'] } })
  })

  test('with a name and a description is asked when its host is shown its tools', async () => {
    let made = 0
    const provider = async () => {
      made++
      await soon()
      return expert()
    }
    const model = scriptedModel([{ calls: [ask] }, 'done'])
    const own = { agent: provider, name: 'expert', description: 'Knows.' }
    const boss = agent({ name: 'host', instructions: '', model, subagents: { ask: own } })
    const runtime = openRuntime({ agents: [boss] })
    expect(made).toBe(0)

    const outcome = await runtime.run(boss, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
    expect(made).toBe(1)
  })

  test('a provider that rejects refuses the run with the cause, every time, and writes no row', async () => {
    const provider = async (): Promise<AnyAgent> => {
      await soon()
      throw new Error('no licence')
    }
    const boss = agent({ name: 'host', instructions: '', model: scriptedModel(['no']), subagents: { ask: provider } })
    const runtime = openRuntime()

    for (const _attempt of [1, 2]) {
      const ended = runtime.run(boss, 'go').result
      await expect(ended).rejects.toThrow(SubAgentUnavailable)
      await expect(ended).rejects.toThrow('The provider of "ask" failed: no licence')
    }
    expect(localStore(runtime).roots({ limit: 1 })).toEqual([])
  })

  test('a provider that rejects later makes that one delegation unavailable', async () => {
    let made = 0
    const provider = async () => {
      if (++made === 2) throw new Error('no licence')
      return expert()
    }
    const model = scriptedModel([{ calls: [ask] }, { calls: [ask] }, { calls: [ask] }, 'done'])
    const boss = agent({ name: 'host', instructions: '', model, subagents: { ask: provider } })

    await openRuntime().run(boss, 'go').result

    expect(resultsIn(model.requests[3]).map(({ content }) => content)).toEqual([
      'ok',
      'Delegation skipped: subagent unavailable. The provider of "ask" failed: no licence',
      'ok',
    ])
  })

  test('a provider that never answers is left when its run is cancelled', async () => {
    let made = 0
    const begun = makeGate()
    const provider = () => {
      if (++made === 1) return Promise.resolve(expert())
      begun.open()
      return new Promise<AnyAgent>(() => undefined)
    }
    const model = scriptedModel([{ calls: [ask, ask] }, 'done'])
    const boss = agent({ name: 'host', instructions: '', model, subagents: { ask: provider } })
    const run = openRuntime().run(boss, 'go')
    await begun.opened

    await run.cancel()

    expect(await run.result).toMatchObject({ status: 'cancelled' })
  })

  test('in a list has a tool named by its place, or by the name it is given', async () => {
    const model = scriptedModel([{ calls: [{ name: 'call_agent_1', input: { topic: 'QUIC' } }] }, 'done'])
    const subagents = [async () => expert(), { agent: async () => expert(), name: 'other' }]
    const boss = agent({ name: 'host', instructions: '', model, subagents })

    const outcome = await openRuntime().run(boss, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
    expect(toolNamesIn(model.requests[0])).toEqual(['call_agent_1', 'call_other'])
  })

  test('starts children for items of an answer', async () => {
    const output = z.object({ tasks: z.array(Topic) })
    const plan = { tasks: [{ topic: 'a' }, { topic: 'b' }] }
    for (const name of [undefined, 'worker']) {
      let made = 0
      const provider = async () => {
        made++
        await soon()
        return expert()
      }
      const eager = { 'tasks[*]': { agent: provider, ...(name === undefined ? {} : { name }) } }
      const model = scriptedModel([JSON.stringify(plan)])
      const boss = agent({ name: 'host', instructions: '', model, output, eager })

      const outcome = await openRuntime().run(boss, 'go').result

      expect(outcome).toMatchObject({ status: 'completed', children: 2 })
      expect(made).toBe(2)
    }
  })

  test('is made a tool by hand: makeSubagentTool gives a promise', async () => {
    const model = scriptedModel([{ calls: [{ name: 'docs_tool', input: { topic: 'QUIC' } }] }, 'done'])
    const made = makeSubagentTool(async () => expert(), { name: 'docs' }, { host: { name: 'host', model } })
    expect(made).toBeInstanceOf(Promise)
    const { tool, register } = await made
    const boss = agent({ name: 'host', instructions: '', model, tools: { [register.name]: tool } })

    expect(await openRuntime().run(boss, 'go').result).toMatchObject({ status: 'completed', children: 1 })
    const broken = makeSubagentTool(
      () => Promise.reject(new Error('gone')),
      { name: 'docs' },
      { host: { name: 'host', model } },
    )
    await expect(broken).rejects.toThrow('The provider of "docs_tool" failed: gone')
  })

  test('may be below another one', async () => {
    const model = scriptedModel([{ calls: [ask] }, 'lead done'])
    const lead = async () =>
      agent({ name: 'lead', instructions: '', model, input: Topic, subagents: { ask: async () => expert() } })
    const hostModel = scriptedModel([{ calls: [ask] }, 'done'])
    const boss = agent({ name: 'host', instructions: '', model: hostModel, subagents: { ask: lead } })

    const outcome = await openRuntime().run(boss, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
    expect(resultsIn(hostModel.requests[1]).map(({ content }) => content)).toEqual(['lead done'])
    expect(resultsIn(model.requests[1]).map(({ content }) => content)).toEqual(['ok'])
  })
})

describe.each(lasting)('an async provider after a restart: %s', (_name, create) => {
  test('gives the agent of a child that was left, before anything goes on', async () => {
    const rows = rowsOf(create)
    const begun = makeGate()
    const held = makeGate()
    const hostWith = (answer: () => string | Promise<string>) => {
      const child = async () => {
        await soon()
        return agent({ name: 'expert', instructions: '', model: scriptedModel(answer), input: Topic })
      }
      const model = scriptedModel((request) => (resultsIn(request).length === 0 ? { calls: [ask] } : 'done'))
      return { model, boss: agent({ name: 'host', instructions: '', model, subagents: { ask: child } }) }
    }
    const first = openRuntime({ store: rows.open(), engine: { graceMs: 0 } })
    const run = first.run(
      hostWith(async () => {
        begun.open()
        await held.opened
        return 'late'
      }).boss,
      'go',
    )
    await begun.opened
    await first.close()
    held.open()

    const { boss, model } = hostWith(() => 'after the restart')
    const second = openRuntime({ store: rows.open(), agents: [boss] })
    await second.resume()

    expect(await (await second.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'done' })
    expect(resultsIn(model.requests[0]).map(({ content }) => content)).toEqual(['after the restart'])
  })
})

describe.each(lasting)('a runtime whose agents have an async provider: %s', (_name, create) => {
  test('runs nothing before it has answered, also of other agents', async () => {
    const rows = rowsOf(create)
    const provided = makeGate()
    const child = async () => {
      await provided.opened
      return expert()
    }
    const known = agent({ name: 'known', instructions: '', model: scriptedModel(() => 'x'), subagents: { ask: child } })
    const model = scriptedModel(() => 'said')
    const other = agent({ name: 'other', instructions: '', model })
    const runtime = openRuntime({ store: rows.open(), agents: [known] })
    const run = runtime.run(other, 'go')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(model.requests).toHaveLength(0)

    provided.open()

    expect((await run.result).text).toBe('said')
  })
})
