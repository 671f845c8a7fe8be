import { agent, tool } from 'legate'
import { loadJsonPrompt, loadYamlPrompt, toolFunc, useTools } from 'legate/compat'
import { chatSession } from 'legate/hooks'
import { loadPromptFile } from 'legate/prompt'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { eventsOf, only, openRuntime, resultsIn } from '../support/reading.ts'

const who = (extra: object = {}) => agent({ name: 'who', instructions: '', model: scriptedModel(() => 'ok'), ...extra })

describe('what could never work is refused where it is said', () => {
  test.each<[string, () => unknown, RegExp]>([
    [
      'an agent that looks like a promise',
      () => Object.fromEntries([['then', () => 1]]),
      /"then": an agent is no promise/,
    ],
    ['a method that is none', () => ({ size: 1 }), /its method "size" is not a function/],
    ['no methods at all', () => null, /methods\(agent\) gives an object of functions/],
  ])('%s', (_name, methods, message) => {
    expect(() => who().use({ name: 'odd', methods: methods as never })).toThrow(message)
  })

  test('invalid tools and generators are refused as tools', () => {
    for (const odd of [null, undefined, 7]) expect(() => useTools(who(), odd as never)).toThrow('give names, or tools')
    const options = { description: '', input: { type: 'object' } } as const
    expect(() => toolFunc(who(), function* steps() {}, options)).toThrow('a generator gives no result')
    expect(() => toolFunc(who(), async function* steps() {}, options)).toThrow('a generator gives no result')
  })

  test('invalid places of a chat are refused', () => {
    expect(() => chatSession({ recordInputPaths: [7 as never] })).toThrow('a place in a request is a slot')
    expect(() => chatSession({ recordInputPaths: 'input' as never })).toThrow('recordInputPaths must be a list')
    expect(() => chatSession({ recordOutputPaths: 'reply' as never })).toThrow('recordOutputPaths must be a list')
  })

  test('prompts that are neither path nor text', async () => {
    for (const load of [loadYamlPrompt, loadJsonPrompt, loadPromptFile]) {
      for (const odd of [7, '', undefined]) {
        await expect(load(odd as never)).rejects.toMatchObject({ code: 'invalid_input' })
      }
    }
  })
})

test.each([
  ['wrapModel gives nothing', { wrapModel: () => undefined as never }, /wrapModel gave no answer/],
  ['wrapModel gives a number', { wrapModel: () => 5 as never }, /wrapModel gave no answer but number/],
  ['wrapModel gives no part', { wrapModel: () => ({ txt: 'x' }) as never }, /wrapModel gave no answer but \{ txt \}/],
  ['wrapModel gives a list of texts', { wrapModel: () => ['x'] as never }, /wrapModel gave no answer but a part/],
  ['wrapModel gives an empty list', { wrapModel: () => [] }, /wrapModel gave no answer but no parts/],
  [
    'onRequest gives messages that are none',
    { onRequest: () => ({ messages: [7 as never] }) },
    /messages\[0\] is not a message/,
  ],
])('%s: it is told, and the run goes on without it', async (_name, hooks, message) => {
  const run = openRuntime().run(who({ hooks }), 'go')
  const told = only(await eventsOf(run), 'extension-error')

  expect((await run.result).text).toBe('ok')
  expect(told.map((event) => event.message).join()).toMatch(message)
})

describe('afterTool', () => {
  const speak = tool({ description: 'Speaks', input: { type: 'object' }, effect: 'pure', execute: () => 'said' })
  const run = async (given: unknown) => {
    const model = scriptedModel([{ calls: [{ name: 'speak', input: {} }] }, 'done'])
    const hooks = { afterTool: () => given as never }
    const ran = openRuntime().run(who({ model, tools: { speak }, hooks }), 'go')
    const events = await eventsOf(ran)
    const [result] = resultsIn(model.requests[1])
    return { content: result?.content, result: only(events, 'tool-result')[0], told: only(events, 'extension-error') }
  }

  test.each<[unknown, string]>([
    [{ reslt: 'x' }, '{ reslt }'],
    [{ result: 'x', iserror: true }, '{ result, iserror }'],
    [{ result: 'x', isError: 'yes' }, '{ result, isError }'],
    [{}, '{}'],
    ['text', 'a text'],
    [5, '5'],
  ])('gives %j: it is told, and the result stays', async (given, shown) => {
    const { content, told } = await run(given)

    expect(content).toBe('said')
    expect(told).toMatchObject([{ hook: 'afterTool', message: expect.stringContaining(`or nothing, not ${shown}`) }])
  })

  test.each([true, false])('gives { isError: %s }: the result stays', async (isError) => {
    const { content, result, told } = await run({ isError })

    expect(content).toBe('said')
    expect(result?.isError).toBe(isError)
    expect(told).toEqual([])
  })
})
