import { agent, RunError, tool } from 'legate'
import * as compat from 'legate/compat'
import type { Model } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { eventsOf, isDurable, only, openRuntime } from '../support/reading.ts'

const Out = z.object({ n: z.number() })
const who = (model: Model, extra: object = {}) => agent({ name: 'who', instructions: '', model, ...extra })

describe('what a run gives', () => {
  test('readers, also a late one, see the same; the model is called once', async () => {
    const model = scriptedModel([{ chunks: ['one ', 'two'] }])
    const run = openRuntime().run(who(model), 'go')
    const [first, second] = await Promise.all([eventsOf(run), eventsOf(run.events())])
    const late = await eventsOf(run)

    expect(second).toEqual(first)
    expect(late.filter(isDurable)).toEqual(first.filter(isDurable))
    expect(model.requests).toHaveLength(1)
  })

  test('text, value, usage, fields and events of one run, in any order', async () => {
    const model = scriptedModel([{ chunks: ['{"n"', ':1}'], usage: { inputTokens: 3 } }])
    const run = openRuntime().run(who(model, { output: Out }), 'go')
    const field = run.field('n' as never)
    const { text, output, usage } = await run.result
    const fields: unknown[] = []
    for await (const { value } of run.fields('n' as never)) fields.push(value)

    expect([await field, text, output, usage.inputTokens, fields]).toEqual([1, '{"n":1}', { n: 1 }, 3, [1]])
    expect(only(await eventsOf(run), 'run-end')).toHaveLength(1)
    expect(model.requests).toHaveLength(1)
  })

  test('a stream that ends well is one message, one account of its usage and one end', async () => {
    const events = await eventsOf(openRuntime().run(who(scriptedModel([{ chunks: ['a', 'b'] }])), 'go'))

    const said = only(events, 'message').filter(({ role }) => role === 'agent')
    expect([said.length, only(events, 'usage').length, only(events, 'run-end').length]).toEqual([1, 1, 1])
  })

  test.each([
    ['no JSON', 'I would rather not.'],
    ['JSON that does not fit', '{"n":"one"}'],
  ])('%s rejects with what was said and what is wrong with it', async (_name, text) => {
    const failing = who(
      scriptedModel(() => text),
      { output: Out },
    )
    const error = await failing.generate('go').catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(RunError)
    const { outcome } = (error as RunError).details as { outcome: { status: string; text: string; output: unknown } }
    expect(outcome).toMatchObject({ status: 'invalid_output', text, output: null })
    expect((error as RunError).message).toMatch(/JSON|n: /)
  })

  test('reasoning is told apart from text, and is no part of the value', async () => {
    const run = openRuntime().run(
      who(scriptedModel([{ reasoning: '{"n":7}', text: '{"n":1}' }]), { output: Out }),
      'go',
    )
    const events = await eventsOf(run)

    expect(only(events, 'reasoning-delta').map(({ text }) => text)).toEqual(['{"n":7}'])
    expect(only(events, 'text-delta').map(({ text }) => text)).toEqual(['{"n":1}'])
    expect((await run.result).output).toEqual({ n: 1 })
  })

  test('an abort in the middle of the stream reaches the provider; no other request is made', async () => {
    const controller = new AbortController()
    const signals: AbortSignal[] = []
    const model: Model = {
      id: 'slow/model',
      async *stream(_request, { signal }) {
        signals.push(signal)
        yield { type: 'text-delta', text: 'I begin' }
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    }
    const run = openRuntime().run(who(model), 'go', { abortSignal: controller.signal })
    for await (const { type } of run) if (type === 'text-delta') controller.abort(new Error('enough'))

    expect(await run.result).toMatchObject({ status: 'cancelled', text: 'I begin' })
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    const early = who(model).generate('go', { abortSignal: AbortSignal.abort() })
    await expect(early).rejects.toMatchObject({ details: { outcome: { status: 'cancelled' } } })
  })

  test('a rate limit is tried again, and both tries are told; a bad request is not', async () => {
    const failure = (statusCode: number) => ({
      error: Object.assign(new Error(`status ${statusCode}`), { statusCode, retryAfterMs: 0 }),
    })
    const busy = scriptedModel([failure(429), 'fine'])
    const run = openRuntime().run(who(busy), 'go')
    expect((await run.result).text).toBe('fine')
    expect(only(await eventsOf(run), 'retry').map(({ attempt, error }) => [attempt, error])).toEqual([
      [2, 'status 429'],
    ])
    const bad = scriptedModel([failure(400), 'never'])
    expect((await openRuntime().run(who(bad), 'go').result).error?.message).toBe('status 400')
    expect([busy.requests.length, bad.requests.length]).toEqual([2, 1])
  })
})

describe('what is set', () => {
  test('a request’s options stand over the agent’s settings, each by itself', async () => {
    const model = scriptedModel(['ok'])
    const settings = { temperature: 0.1, topP: 0.5, providerOptions: { a: { x: 1 } } }
    await who(model, { settings }).request().input('go').options({ temperature: 0.9 }).start().result

    expect(model.requests[0]?.settings).toMatchObject({ ...settings, temperature: 0.9 })
  })

  test('what is changed after the agent was defined changes neither it nor its runs', async () => {
    const settings = { temperature: 0.1 }
    const grant = { deny: ['tool:other'] }
    const rules = { use: ['tool:change', 'model:*'] }
    const change = tool({
      description: '',
      input: { type: 'object' },
      execute: () => {
        settings.temperature = 1
        grant.deny.pop()
        rules.use.push('tool:other')
        return 'changed'
      },
    })
    const ran: string[] = []
    const other = tool({ description: '', input: { type: 'object' }, execute: () => ran.push('other') })
    const calls = (name: string) => ({ calls: [{ name, input: {} }] })
    const model = scriptedModel([calls('change'), calls('other'), 'ok'])
    await openRuntime().run(who(model, { settings, grant, tools: { change, other } }), 'go').result
    rules.use = ['tool:change', 'model:*']
    const under = scriptedModel([calls('change'), calls('other'), 'ok'])
    await openRuntime({ grant: rules }).run(who(under, { tools: { change, other } }), 'go').result

    expect(model.requests.map((request) => request.settings.temperature)).toEqual([0.1, 0.1, 0.1])
    expect(ran).toEqual([])
  })

  test('every agent has tools, fields, functions and prompt files; methods of an extension only with it', () => {
    const plain = who(scriptedModel([]))
    for (const name of ['auto', 'request', 'loadPromptFile'] as const) expect(typeof plain[name]).toBe('function')
    for (const add of [compat.registerTool, compat.useTools, compat.toolFunc, compat.useMcp, compat.loadYamlPrompt]) {
      expect(typeof add).toBe('function')
    }
    expect(plain).not.toHaveProperty('shout')
    // @ts-expect-error: no extension gives it
    expect(plain.shout).toBeUndefined()
    const loud = plain.use({ name: 'loud', methods: () => ({ shout: (text: string) => text.toUpperCase() }) })
    expect(loud.shout('hey')).toBe('HEY')
  })

  test('whoever logs, or throws while logging, changes nothing; nothing is printed by itself', async () => {
    const printed = [vi.spyOn(process.stdout, 'write'), vi.spyOn(process.stderr, 'write')]
    const run = (options: object) => openRuntime(options).run(who(scriptedModel(['ok'])), 'secret').result
    const plain = await run({})
    expect(printed.map(({ mock }) => mock.calls.length)).toEqual([0, 0])
    for (const spy of printed) spy.mockRestore()
    const lines: string[] = []
    const keep = (line: string) => lines.push(line)
    const logged = await run({ logger: { debug: keep, info: keep, warn: keep, error: keep } })

    expect(logged).toEqual({
      ...plain,
      runId: logged.runId,
      conversationId: logged.conversationId,
      answerNodeId: logged.answerNodeId,
      durationMs: logged.durationMs,
    })
    expect(lines.join()).not.toContain('secret')
  })
})
