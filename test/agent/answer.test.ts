import { agent, createRuntime, type JsonSchema, tool } from 'legate'
import type { Model } from 'legate/models'
import type { Block } from 'legate/rows'
import { type Script, type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { watchWork } from '../support/pace.ts'
import { eventsOf, only, openRuntime, resultIn, rolesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'

const anything = { type: 'object' } as const
const Answer = z.object({ n: z.number().int() })

describe('I6: an answer that is empty', () => {
  test.each<[string, ScriptedAnswer]>([
    ['nothing', ''],
    ['only spaces', ' \n\t'],
    ['only reasoning', { reasoning: 'Hmm.' }],
    ['a block of reasoning', { blocks: [{ type: 'reasoning', text: 'Hmm.' }] }],
    ['a block without text', { blocks: [{ type: 'text', text: '  ' }] }],
    ['no block at all', { blocks: [] }],
  ])('because it is %s is asked for once more, and then is a failure', async (_name, turn) => {
    const model = scriptedModel([turn, turn])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go').result

    model.assertComplete()
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'empty_answer' }, modelCalls: 2 })
    expect(outcome.text.trim()).toBe('')
    expect(rolesIn(model.requests[1])).toEqual(['user', 'user'])
    expect(model.requests[1]?.messages.at(-1)).toEqual({
      role: 'user',
      content: 'Your last answer was empty. Give your final answer now.',
    })
  })

  test('is made good by the second', async () => {
    const model = scriptedModel(['', 'here it is'])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'here it is', modelCalls: 2 })
  })

  test.each<[string, Block]>([
    ['an image', { type: 'image', mediaType: 'image/png', data: 'aGk=' }],
    ['a value', { type: 'json', value: { a: 1 } }],
  ])('is not one that is %s', async (_name, block) => {
    const model = scriptedModel([{ blocks: [block] }])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', content: [block] })
  })

  test('after tool calls is asked for once more too', async () => {
    const it = tool({ description: 'It', input: anything, execute: () => 'ok' })
    const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, '', 'done'])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, tools: { it } }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'done', modelCalls: 3 })
  })
})

describe('an output schema', () => {
  test.each([
    ['plain', '{"n":1}'],
    ['with space around', '\n {"n": 1}\n'],
    ['fenced', '```json\n{"n":1}\n```'],
    ['fenced without a language', '```\n{"n":1}\n```'],
    ['fenced with the line ends of Windows', '```json\r\n{"n":1}\r\n```'],
    ['fenced on one line', '```json {"n":1} ```'],
    ['fenced as JSON5', '```json5\n{"n":1}\n```'],
    ['with a byte order mark', '\ufeff{"n":1}'],
  ])('takes JSON %s', async (_name, text) => {
    const model = scriptedModel([text])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, output: Answer }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', output: { n: 1 }, text })
  })

  test.each([
    ['prose', 'The answer is one.', /It is not JSON: Unexpected/],
    ['the wrong shape', '{"n":"one"}', /n: .*number/],
    ['half of it', '{"n":', /ends before the JSON does/],
    ['null', 'null', /./],
  ])('asks once more after %s, with what is wrong', async (_name, text, why) => {
    const model = scriptedModel([text, '{"n":2}'])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, output: Answer }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', output: { n: 2 }, modelCalls: 2 })
    const nudge = model.requests[1]?.messages.at(-1)
    expect(nudge?.role).toBe('user')
    expect(nudge?.content).toMatch(/^Your answer does not fit\. /)
    expect(nudge?.content).toMatch(why)
    expect(model.requests[1]?.messages.at(-2)).toEqual({ role: 'assistant', content: text, calls: [] })
  })

  test('an answer that is broken twice ends the run as invalid_output, with the issues and what was said', async () => {
    const model = scriptedModel(['{"n":"one"}', '{"n":"two"}'])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, output: Answer }), 'go').result

    model.assertComplete()
    expect(outcome).toMatchObject({
      status: 'invalid_output',
      output: null,
      text: '{"n":"two"}',
      error: { code: 'invalid_output', message: expect.stringContaining('n: ') },
      modelCalls: 2,
    })
  })

  test.each<[string, JsonSchema, string]>([
    [
      'a reference to nowhere',
      { $ref: '#/$defs/missing' },
      'the schema: $ref must be the place of a schema in this one',
    ],
    [
      'a type that is none',
      { properties: { n: { type: 'int' } } },
      'properties.n: type must be one of "string", "number"',
    ],
    ['no list of names', { properties: { n: { required: true } } }, 'properties.n: required must be a list of names'],
  ])('with %s is refused where the agent is defined', (_name, output, why) => {
    expect(() => agent({ name: 'a', instructions: '', output })).toThrow(
      `agent "a", output: not a usable JSON Schema: ${why}`,
    )
    expect(() => agent({ name: 'a', instructions: '', input: output })).toThrow(
      `agent "a", input: not a usable JSON Schema: ${why}`,
    )
  })

  test('an output schema with an invalid pattern ends the run before a model is asked', async () => {
    const model = scriptedModel([])
    const output: JsonSchema = { type: 'object', properties: { n: { type: 'string', pattern: '(' } } }

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, output }), 'go').result

    expect(model.requests).toEqual([])
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'definition', message: expect.stringMatching(/^agent "a", output: not a usable JSON Schema: /) },
      modelCalls: 0,
    })
  })

  test('gives what the schema makes of the answer', async () => {
    const output = z.object({ n: z.string().transform(Number), tags: z.array(z.string()).default([]) })
    const model = scriptedModel(['{"n":"42","extra":true}'])

    const outcome = await openRuntime().run(agent({ name: 'a', instructions: '', model, output }), 'go').result

    expect(outcome.output).toEqual({ n: 42, tags: [] })
  })

  test('is told to the model in words and as a setting', async () => {
    const model = scriptedModel(['{"n":1}'])

    await openRuntime().run(agent({ name: 'a', instructions: 'Count.', model, output: Answer }), 'go').result

    const schema = { type: 'object', properties: { n: expect.objectContaining({ type: 'integer' }) }, required: ['n'] }
    expect(model.requests[0]?.outputSchema).toMatchObject(schema)
    expect(model.requests[0]?.messages[0]?.content).toMatch(/^Count\.\n\nAnswer with only a JSON value .*"integer"/s)
  })

  test('of an answer of 2 MB or 1,000 levels is checked in bounded time (I10)', async () => {
    const deep = '['.repeat(1_000) + ']'.repeat(1_000)
    const model = scriptedModel([`{"n":1,"pad":"${'x'.repeat(2_000_000)}"}`, deep])
    const loose = agent({ name: 'a', instructions: '', model, output: Answer })
    const workMs = watchWork()

    expect(await openRuntime().run(loose, 'go').result).toMatchObject({ status: 'completed', output: { n: 1 } })
    expect(await openRuntime().run(loose, 'go').result).toMatchObject({ status: 'failed' })

    expect(workMs()).toBeLessThan(2_000)
  })
})

test('reasoning is kept with the message, shown live, and no part of the answer', async () => {
  const model = scriptedModel([{ reasoning: 'First I think.', text: 'Then I say.' }])
  const runtime = openRuntime()
  const run = runtime.run(agent({ name: 'a', instructions: '', model }), 'go')
  const reasoning: string[] = []

  for await (const event of run) if (event.type === 'reasoning-delta') reasoning.push(event.text)

  expect(await run.result).toMatchObject({ text: 'Then I say.', content: 'Then I say.' })
  expect(reasoning).toEqual(['First I think.'])
  expect(localStore(runtime).nodesOf(run.id).at(-1)?.output.reasoning).toBe('First I think.')
})

const cutModel = (reason: 'length' | 'content-filter', text: string): Model => ({
  id: 'own/short',
  async *stream() {
    if (text !== '') yield { type: 'text-delta', text }
    const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }
    yield { type: 'finish', reason, usage }
  },
})

describe.each([
  ['length', 'truncated', /output limit.*maxOutputTokens.*acceptTruncated: true/],
  ['content-filter', 'content_filter', /content filter/],
] as const)('an answer that ended by %s', (reason, code, message) => {
  const whole = '{"city":"Bern"}'
  const output = z.object({ city: z.string() })

  test.each(lasting)('fails the run with its own code and keeps the words, on %s', async (_name, create) => {
    const rows = create()
    const first = createRuntime({ store: rows.open() })
    const run = first.run(agent({ name: 'a', instructions: '', model: cutModel(reason, 'The first half') }), 'go')
    const outcome = await run.result
    const warnings = only(await eventsOf(run), 'warning')
    await first.close()
    const second = openRuntime({ store: rows.open() })

    expect(outcome).toMatchObject({ status: 'failed', text: 'The first half', error: { code }, modelCalls: 1 })
    expect(outcome.error?.message).toMatch(message)
    expect(warnings).toHaveLength(1)
    expect(await (await second.attach(run.id)).result).toEqual(outcome)
  })

  test.each([
    ['half a value', '{"city":"Be'],
    ['a value that fits', whole],
    ['nothing at all', ''],
  ])('is no checked output either: %s', async (_name, text) => {
    const clerk = agent({ name: 'a', instructions: '', model: cutModel(reason, text), output })

    expect(await openRuntime().run(clerk, 'go').result).toMatchObject({
      status: 'failed',
      text,
      output: null,
      error: { code },
      modelCalls: 1,
    })
  })

  test('is an answer where the agent takes it: a text as it is, a value where it fits', async () => {
    const base = { name: 'a', instructions: '', acceptTruncated: true }
    const text = await openRuntime().run(agent({ ...base, model: cutModel(reason, 'Half') }), 'go').result
    const fits = await openRuntime().run(agent({ ...base, output, model: cutModel(reason, whole) }), 'go').result
    const half = await openRuntime().run(agent({ ...base, output, model: cutModel(reason, '{"ci') }), 'go').result

    expect(text).toMatchObject({ status: 'completed', text: 'Half', error: null })
    expect(fits).toMatchObject({ status: 'completed', output: { city: 'Bern' } })
    expect(half).toMatchObject({ status: 'invalid_output', modelCalls: 2 })
  })

  test('of a subagent is told to its host, with the words', async () => {
    const worker = agent({ name: 'worker', instructions: '', model: cutModel(reason, 'The first half') })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'go' } }] }, 'Done.'])
    await openRuntime().run(agent({ name: 'a', instructions: '', model, subagents: { ask: worker } }), 'go').result

    const shown = resultIn(model.requests[1])
    expect(shown).toContain('The first half')
    expect(shown).toMatch(message)
  })
})

describe('an output that is a text or one of several words', () => {
  const asked = async (output: z.ZodType, ...answers: string[]) => {
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model: scriptedModel(answers), output }), 'go')
    const { status, output: value, modelCalls } = await run.result
    return { status, value, modelCalls }
  }
  const colour = z.enum(['red', 'dark green'])

  test.each<[string, z.ZodType, string, unknown]>([
    ['a text', z.string(), 'Paris', 'Paris'],
    ['a text in quotes', z.string(), '"Paris"', 'Paris'],
    ['a text of several lines', z.string(), 'One.\n\n"Two," she said.', 'One.\n\n"Two," she said.'],
    ['a text that looks like JSON', z.string(), '{ not json', '{ not json'],
    ['a text after thoughts', z.string(), '<think>Which? "London"?</think>\nParis', 'Paris'],
    ['a text of digits', z.string(), '42', '42'],
    ['a text with a rule', z.string().min(3), 'Paris', 'Paris'],
    ['a word', colour, 'dark green', 'dark green'],
    ['a word in quotes', colour, '"red"', 'red'],
    ['a word with a full stop', colour, 'Red.', 'red'],
    ['a word in bold', colour, '**Dark green**', 'dark green'],
    ['a literal', z.literal('yes'), 'Yes', 'yes'],
    ['a number', z.number(), '42', 42],
    ['true or false', z.boolean(), 'true', true],
  ])('takes %s as it is said', async (_name, output, said, value) => {
    expect(await asked(output, said)).toEqual({ status: 'completed', value, modelCalls: 1 })
  })

  test.each<[string, z.ZodType, string, string, unknown]>([
    ['a text that is too short', z.string().min(3), 'Oh', 'Paris', 'Paris'],
    ['another word', colour, 'blue', 'red', 'red'],
    ['a word in a sentence', colour, 'I would say red, but not dark green', 'red', 'red'],
    ['a text where a number may stand too', z.union([z.string(), z.number()]), 'Paris', '"Paris"', 'Paris'],
    ['a number in a sentence', z.number(), 'About 42 or 43', '42', 42],
  ])('asks again for %s', async (_name, output, said, then, value) => {
    expect(await asked(output, said, then)).toEqual({ status: 'completed', value, modelCalls: 2 })
  })
})

describe.each(lasting)('a text or a word that is said after a restart, on %s', (_, create) => {
  const world = useWorld(create)

  test.each<[string, z.ZodType, string, string]>([
    ['z.string()', z.string(), 'One.\n"Two," she said.', 'One.\n"Two," she said.'],
    ['z.enum()', z.enum(['red', 'dark green']), 'Dark green.', 'dark green'],
  ])('is the output in every process: %s', async (_name, output, said, value) => {
    const entered = makeGate()
    const clerk = (script: Script) => agent({ name: 'a', instructions: '', model: scriptedModel(script), output })
    const left = clerk(() => {
      entered.open()
      return makeGate().opened.then(() => 'never')
    })
    const first = world.start()
    const run = first.runtime.run(left, 'go')
    await entered.opened
    const second = await world.restart(first, [clerk(() => said)])
    const outcome = await (await second.attach(run.id)).result
    await second.close()

    expect(outcome).toMatchObject({ status: 'completed', output: value, modelCalls: 1 })
    expect(await (await world.start().runtime.attach(run.id)).result).toEqual(outcome)
  })
})

describe('a model that calls tools that do not exist', () => {
  const real = tool({ description: 'Real.', input: z.object({}), execute: () => 'ok' })
  const caller = (names: readonly string[]) => {
    let at = 0
    const model = scriptedModel(() => {
      const name = names[at++]
      return name === undefined ? 'done' : { calls: [{ name, input: { at } }] }
    })
    return { model, agent: agent({ name: 'lost', instructions: '', tools: { real }, model }) }
  }

  test('five times in a row ends its run with the reason', async () => {
    const { model, agent: lost } = caller(Array.from({ length: 30 }, (_, at) => `made_up_${at}`))
    const { status, error } = await openRuntime().run(lost, 'go').result
    expect([status, error?.code, model.requests.length]).toEqual(['failed', 'unknown_tool', 5])
    expect(error?.message).toContain('5 times in a row, the last time "made_up_4"')
  })

  test('goes on where it calls one that does in between', async () => {
    const { agent: lost } = caller(['x', 'x2', 'x3', 'x4', 'real', 'y', 'y2', 'y3', 'y4'])
    expect(await openRuntime().run(lost, 'go').result).toMatchObject({ status: 'completed', text: 'done' })
  })
})
