import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { eventsOf, only, openRuntime, resultsIn, tasksOf } from '../support/reading.ts'

const Input = z.object({ n: z.number() })
const ask = (name: string) => ({ calls: [{ name, input: { n: 1 } }] })

describe('the model of a child', () => {
  test('is its host’s, through any depth, unless it names its own', async () => {
    const shared = scriptedModel([ask('middle'), ask('leaf'), 'middle done', 'host done'], 'shared/model')
    const own = scriptedModel(['leaf done'], 'own/model')
    const leaf = agent({ name: 'leaf', instructions: '', model: own, input: Input })
    const middle = agent({ name: 'middle', instructions: '', input: Input, subagents: { leaf } })
    const host = agent({ name: 'host', instructions: '', model: shared, subagents: { middle } })

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'host done' })
    expect(shared.requests.map(({ path }) => path.join(' > '))).toEqual([
      'host',
      'host > middle',
      'host > middle',
      'host',
    ])
    expect(own.requests.map(({ path }) => path.join(' > '))).toEqual(['host > middle > leaf'])
  })

  test('skips a level that has none', async () => {
    const shared = scriptedModel([ask('middle'), ask('leaf'), 'leaf done', 'middle done', 'host done'])
    const leaf = agent({ name: 'leaf', instructions: '', input: Input })
    const middle = agent({ name: 'middle', instructions: '', input: Input, subagents: { leaf } })

    const outcome = await openRuntime().run(
      agent({ name: 'host', instructions: '', model: shared, subagents: { middle } }),
      'go',
    ).result

    expect(outcome).toMatchObject({ status: 'completed', text: 'host done' })
  })

  test('is the runtime’s where nobody names one', async () => {
    const fallback = scriptedModel([ask('expert'), 'expert done', 'host done'])
    const expert = agent({ name: 'expert', instructions: '', input: Input })

    const outcome = await openRuntime({ model: fallback }).run(
      agent({ name: 'host', instructions: '', subagents: { expert } }),
      'go',
    ).result

    expect(outcome).toMatchObject({ status: 'completed', text: 'host done' })
  })

  test('nowhere to be had is refused before anything runs', async () => {
    const expert = agent({ name: 'expert', instructions: '', input: Input })
    const host = agent({ name: 'host', instructions: '', subagents: { expert } })

    await expect(openRuntime().run(host, 'go').result).rejects.toThrow(/"host" has no model/)
  })
})

describe('I7: usage', () => {
  test('is rolled up once over three levels, and each level has its own and what is below it', async () => {
    const usage = (inputTokens: number) => ({ inputTokens, outputTokens: 1 })
    const leaf = agent({
      name: 'leaf',
      instructions: '',
      model: scriptedModel(() => ({ text: 'leaf', usage: usage(1) })),
      input: Input,
    })
    const middle = agent({
      name: 'middle',
      instructions: '',
      model: scriptedModel((request) => ({
        ...(resultsIn(request).length === 0 ? { calls: [ask('leaf'), ask('leaf')].flatMap(({ calls }) => calls) } : {}),
        text: 'middle',
        usage: usage(10),
      })),
      input: Input,
      subagents: { leaf },
    })
    const model = scriptedModel([
      { calls: [...ask('middle').calls, ...ask('middle').calls], usage: usage(100) },
      { text: 'host', usage: usage(100) },
    ])
    const runtime = openRuntime()

    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { middle } }), 'go')
    const outcome = await run.result

    expect(outcome.usage).toMatchObject({ inputTokens: 2 * 100 + 2 * (2 * 10 + 2 * 1), outputTokens: 2 + 4 + 4 })
    expect(outcome).toMatchObject({ modelCalls: 2, toolCalls: 2, children: 2 })
    for (const task of tasksOf(runtime, run)) {
      expect(task.output.metadata?.['outcome']).toMatchObject({ usage: { inputTokens: 22, outputTokens: 4 }, turns: 2 })
    }
    const spent = only(await eventsOf(run), 'usage').map(({ usage: { inputTokens } }) => inputTokens)
    expect(spent.reduce((sum, tokens) => sum + tokens)).toBe(outcome.usage.inputTokens)
  })

  test('of a child that failed or was cancelled counts too', async () => {
    const expert = agent({
      name: 'expert',
      instructions: '',
      model: scriptedModel([
        { text: '{}', usage: { inputTokens: 5 } },
        { text: '{}', usage: { inputTokens: 6 } },
      ]),
      input: Input,
      output: z.object({ n: z.number() }),
    })
    const model = scriptedModel([{ ...ask('expert'), usage: { inputTokens: 1 } }, { text: 'done' }])

    const outcome = await openRuntime().run(
      agent({ name: 'host', instructions: '', model, subagents: { expert } }),
      'go',
    ).result

    expect(outcome.usage.inputTokens).toBe(12)
  })
})
