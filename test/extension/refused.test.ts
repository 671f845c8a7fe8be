import { agent, chatSession } from 'legate'
import { loadJsonPrompt, loadPromptFile, loadYamlPrompt } from 'legate/prompt'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { eventsOf, only, openRuntime } from '../support/reading.ts'

const who = (extra: object = {}) => agent({ name: 'who', instructions: '', model: scriptedModel(() => 'ok'), ...extra })

describe('what could never work is refused where it is said', () => {
  test.each<[string, () => unknown, RegExp]>([
    [
      'an agent that looks like a promise',
      () => Object.fromEntries([['then', () => 1]]),
      /"then": an agent is no promise/,
    ],
    ['a method that is none', () => ({ size: 1 }), /its method "size" is no function/],
    ['no methods at all', () => null, /methods\(agent\) gives an object of functions/],
  ])('%s', (_name, methods, message) => {
    expect(() => who().use({ name: 'odd', methods: methods as never })).toThrow(message)
  })

  test('tools that are none, and generators as tools', () => {
    for (const odd of [null, undefined, 7]) expect(() => who().useTools(odd as never)).toThrow('give names, or tools')
    const options = { description: '', input: { type: 'object' } } as const
    expect(() => who().toolFunc(function* steps() {}, options)).toThrow('a generator gives no result')
    expect(() => who().toolFunc(async function* steps() {}, options)).toThrow('a generator gives no result')
  })

  test('places of a chat that are none', () => {
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
  ['wrapModel gives nothing', { wrapModel: () => undefined as never }, /wrapModel|no answer/],
  [
    'onRequest gives messages that are none',
    { onRequest: () => ({ messages: [7 as never] }) },
    /messages\[0\] is none/,
  ],
])('%s: it is told, and the run goes on without it', async (_name, hooks, message) => {
  const run = openRuntime().run(who({ hooks }), 'go')
  const told = only(await eventsOf(run), 'extension-error')

  expect((await run.result).text).toBe('ok')
  expect(told.map((event) => event.message).join()).toMatch(message)
})
