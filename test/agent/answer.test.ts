import { agent, type Block, type JsonSchema, type Model, tool } from 'legate'
import { type ScriptedTurn, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { watchWork } from '../support/pace.ts'
import { eventsOf, only, openRuntime, rolesIn } from '../support/reading.ts'

const anything = { type: 'object' } as const
const Answer = z.object({ n: z.number().int() })

describe('I6: an answer that is empty', () => {
  test.each<[string, ScriptedTurn]>([
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
    const it = tool({ description: 'It', inputSchema: anything, execute: () => 'ok' })
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

  test('that is broken twice ends the run as invalid_output, with the issues and what was said', async () => {
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

  test.each<[string, JsonSchema]>([
    ['a reference to nowhere', { $ref: '#/$defs/missing' }],
    ['a pattern that is none', { type: 'object', properties: { n: { type: 'string', pattern: '(' } } }],
  ])('with %s ends the run before a model is asked', async (_name, output) => {
    const model = scriptedModel([])

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
  expect(runtime.store.nodesOf(run.id).at(-1)?.output.reasoning).toBe('First I think.')
})

test.each([
  ['length', /output limit.*maxOutputTokens/],
  ['content-filter', /content filter/],
] as const)('an answer that ended by %s is an answer, and a warning says so', async (reason, words) => {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }
  const model: Model = {
    id: 'own/short',
    async *stream() {
      yield { type: 'text-delta', text: 'The first half' }
      yield { type: 'finish', reason, usage }
    },
  }
  const run = openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go')

  expect(await run.result).toMatchObject({ status: 'completed', text: 'The first half' })
  expect(only(await eventsOf(run), 'warning')).toMatchObject([{ message: expect.stringMatching(words) }])
})
