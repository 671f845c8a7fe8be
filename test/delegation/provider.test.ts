import { type AnyAgent, agent, SubAgentUnavailable } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const Topic = z.object({ topic: z.string() })
const ask = { name: 'ask', input: { topic: 'QUIC' } }

function host(turns: readonly number[], provider: () => AnyAgent) {
  const model = scriptedModel([...turns.map((calls) => ({ calls: Array(calls).fill(ask) })), 'done'])
  return { agent: agent({ name: 'host', instructions: '', model, subagents: { ask: provider } }), model }
}

describe('a provider', () => {
  test.each([
    ['one delegation', [1], 1],
    ['two in a row', [1, 1], 2],
    ['three at once', [3], 3],
    ['none', [], 1],
  ])('is called once per delegation, the first time when its host is registered: %s', async (_name, turns, calls) => {
    let made = 0
    const { agent: boss } = host(turns, () => {
      made++
      return agent({ name: 'expert', instructions: '', model: scriptedModel(() => 'ok'), input: Topic })
    })
    const runtime = openRuntime()

    const outcome = await runtime.run(boss, 'go').result

    expect(outcome.status).toBe('completed')
    expect(made).toBe(calls)
  })

  test('gives each delegation its own agent', async () => {
    let made = 0
    const { agent: boss, model } = host([1, 1], () => {
      const serial = ++made
      return agent({
        name: 'expert',
        instructions: `Serial ${serial}`,
        model: scriptedModel([`from ${serial}`]),
        input: Topic,
      })
    })

    await openRuntime().run(boss, 'go').result

    expect(resultsIn(model.requests[2]).map(({ content }) => content)).toEqual(['from 1', 'from 2'])
  })

  test('a provider that throws when its host is registered refuses the host with the cause, every time', () => {
    const { agent: boss } = host([1], () => {
      throw new Error('no licence')
    })
    const runtime = openRuntime()

    for (const _attempt of [1, 2]) {
      expect(() => runtime.run(boss, 'go')).toThrow(SubAgentUnavailable)
      expect(() => runtime.run(boss, 'go')).toThrow('The provider of "ask" failed: no licence')
    }
    expect(localStore(runtime).roots({ limit: 1 })).toEqual([])
  })

  test('a provider that throws later makes that one delegation unavailable', async () => {
    let made = 0
    const { agent: boss, model } = host([1, 1, 1], () => {
      if (++made === 2) throw new Error('no licence')
      return agent({ name: 'expert', instructions: '', model: scriptedModel(['ok']), input: Topic })
    })

    const outcome = await openRuntime().run(boss, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 2 })
    expect(resultsIn(model.requests[3]).map(({ content }) => content)).toEqual([
      'ok',
      'Delegation skipped: subagent unavailable. The provider of "ask" failed: no licence',
      'ok',
    ])
  })

  test.each([
    ['undefined', undefined],
    ['an object', { name: 'expert' }],
  ])('a provider that gives %s is refused: it must give an agent', (_name, value) => {
    const { agent: boss } = host([1], () => value as never)

    expect(() => openRuntime().run(boss, 'go')).toThrow(/"ask" is not an agent\. Make it with agent\(\)/)
  })

  test('may make a new agent that offers the same provider: it ends at the limit of depth', async () => {
    const made: string[] = []
    const worker = (): AnyAgent => {
      made.push('worker')
      const model = scriptedModel((request) => {
        const [result] = resultsIn(request)
        if (result === undefined) return { calls: [ask] }
        return String(result.content).includes('the limit is 3') ? 'bottom' : `above ${String(result.content)}`
      })
      return agent({ name: 'worker', instructions: '', model, input: Topic, subagents: { ask: worker } })
    }

    const outcome = await openRuntime().run(worker(), { topic: 'QUIC' }).result

    expect(outcome).toMatchObject({ status: 'completed', text: 'above above above bottom' })
    expect(made.length).toBeLessThan(12)
  })

  test('may give an agent without a model: it uses its host’s', async () => {
    const model = scriptedModel([{ calls: [ask] }, 'from the child', 'done'])
    const expert = () => agent({ name: 'expert', instructions: '', input: Topic })
    const boss = agent({ name: 'host', instructions: '', model, subagents: { ask: expert } })

    const outcome = await openRuntime().run(boss, 'go').result

    expect(outcome.status).toBe('completed')
    expect(model.requests.map(({ path }) => path)).toEqual([['host'], ['host', 'expert'], ['host']])
  })
})
