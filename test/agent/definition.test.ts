import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import {
  type AgentDefinition,
  type AnyAgent,
  agent,
  auto,
  DefinitionError,
  type Schema,
  SubAgentUnavailable,
  tool,
} from 'legate'
import { registerTool, toolFunc, useTool, useTools } from 'legate/compat'
import { extension } from 'legate/hooks'
import { scriptedModel } from 'legate/testing'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { z as z3 } from 'zod3'
import { withChanges, withIdentity } from '../../src/core/agent/build/identity.ts'
import { openRuntime } from '../support/reading.ts'

const search = tool({ description: 'Search', input: { type: 'object' }, execute: () => 'found' })
const worker = agent({ name: 'worker', instructions: 'You work.' })

describe('a definition that cannot work is refused with what to do', () => {
  const good = { name: 'clerk', instructions: 'You file.' }

  test.each<[string, object, RegExp]>([
    ['no name', { instructions: 'x' }, /not a name for an agent/],
    ['an empty name', { ...good, name: '' }, /not a name for an agent/],
    ['a name with a line break', { ...good, name: 'a\nb' }, /not a name for an agent/],
    ['a name with a slash', { ...good, name: 'a/b' }, /not a name for an agent/],
    ['a name of 129 characters', { ...good, name: 'x'.repeat(129) }, /at most 128/],
    ['a name of 5,000 characters', { ...good, name: 'x'.repeat(5_000) }, /"x{80}" is not a name for an agent/],
    ['no instructions', { name: 'clerk' }, /needs instructions/],
    ['a system prompt', { ...good, system: 'x' }, /agent\(\) has no option "system"\. Did you mean "instructions"/],
    ['a model that is not a model', { ...good, model: {} }, /stream\(request/],
    ['a model without a name', { ...good, model: ' ' }, /"provider\/model"/],
    [
      'a tool that is no tool',
      { ...good, tools: { search: { execute: () => 1 } } },
      /tools\.search is not a tool.*tool\(/,
    ],
    ['a tool name with a space', { ...good, tools: { 'look up': search } }, /"look up" is not a name for a tool/],
    ['a tool name of 65 characters', { ...good, tools: { ['x'.repeat(65)]: search } }, /at most 64/],
    ['a list of tools', { ...good, tools: [search] }, /tools.*\{ name: tool/],
    ['a subagent that is not an agent', { ...good, subagents: { worker: { name: 'worker' } } }, /subagents\.worker/],
    ['a subagent that is text', { ...good, subagents: { worker: 'worker' } }, /subagents\.worker/],
    ['a subagent that is undefined', { ...good, subagents: { worker: undefined } }, /subagents\.worker/],
    ['settings without an agent', { ...good, subagents: { worker: { description: 'x' } } }, /subagents\.worker/],
    [
      'a wrong setting',
      { ...good, subagents: { worker: { agent: worker, brief: 'none' } } },
      /worker has no option "brief"/,
    ],
    ['a wrong briefing', { ...good, subagents: { worker: { agent: worker, briefing: 'all' } } }, /briefing.*"all"/],
    ['a list with something else in it', { ...good, subagents: [worker, search] }, /not an agent/],
    ['a tool and a subagent of one name', { ...good, tools: { worker: search }, subagents: { worker } }, /Rename one/],
    ['a zod 3 input', { ...good, input: z3.object({}) }, /"clerk", input: zod 3/],
    ['a zod 3 output', { ...good, output: z3.object({}) }, /"clerk", output: zod 3/],
    ['a shape for an input', { ...good, input: { q: z.string() } }, /z\.object/],
    ['a wrong budget', { ...good, budget: { turn: 3 } }, /"clerk": a budget has modelCalls.*not "turn"/],
    [
      'a budget below 1',
      { ...good, budget: { modelCalls: 0 } },
      /budget\.modelCalls must be a whole number of at least 1/,
    ],
    ['a budget in text', { ...good, budget: { modelCalls: '3' } }, /budget\.modelCalls/],
    ['a wrong grant', { ...good, grant: { allow: [] } }, /use, delegate, ask, free and deny, not "allow"/],
    ['a wrong rule', { ...good, grant: { use: ['tols:search'] } }, /"tols:search" must start with one of tool/],
    ['null', null as unknown as object, /agent\(\) takes an object/],
    ['nothing', undefined as unknown as object, /agent\(\) takes an object/],
  ])('%s', (_name, definition, message) => {
    const define = () => agent(definition as AgentDefinition<undefined, undefined>)

    expect(define).toThrow(DefinitionError)
    expect(define).toThrow(message)
  })
})

describe('two subagents with one tool name are refused, never replaced', () => {
  const twins = [
    agent({ name: 'Research Agent', instructions: '' }),
    agent({ name: 'research_agent', instructions: '' }),
  ] as const

  test('when both derive it', () => {
    const define = () => agent({ name: 'host', instructions: '', subagents: twins })

    expect(define).toThrow(SubAgentUnavailable)
    expect(define).toThrow(/"host" has two tools named "call_research_agent"/)
  })

  test('when a tool has it', () => {
    const tools = { call_research_agent: search }
    const define = () => agent({ name: 'host', instructions: '', tools, subagents: [twins[0]] })

    expect(define).toThrow(SubAgentUnavailable)
    expect(define).toThrow(/"call_research_agent" is a tool and a subagent/)
  })
})

describe('an agent', () => {
  test('is immutable and shows what it was given', () => {
    const tools = { search }
    const clerk = agent({ name: 'clerk', description: 'Files', instructions: 'You file.', tools })

    expect(Object.isFrozen(clerk)).toBe(true)
    expect(clerk).toMatchObject({ name: 'clerk', description: 'Files', instructions: 'You file.', model: null })
    expect(clerk.tools.get('search')).toBe(search)
  })

  test('has a hash that changes with what it is told or may use, and not with the code inside its tools', () => {
    const base = { name: 'clerk', instructions: 'You file.', tools: { search } } as const
    const other = tool({ description: 'Search', input: { type: 'object' }, execute: () => 'other code' })
    const { hash } = agent(base).identity.ref

    expect(agent(base).identity.ref.hash).toBe(hash)
    expect(agent({ ...base, tools: { search: other } }).identity.ref.hash).toBe(hash)
    expect(agent({ ...base, instructions: 'You sort.' }).identity.ref.hash).not.toBe(hash)
    expect(agent({ ...base, tools: { find: search } }).identity.ref.hash).not.toBe(hash)
    expect(agent({ ...base, grant: { deny: ['tool:search'] } }).identity.ref.hash).not.toBe(hash)
    expect(agent({ ...base, output: z.object({ a: z.string() }) }).identity.ref.hash).not.toBe(hash)
    expect(agent({ ...base, subagents: { worker } }).identity.ref.hash).not.toBe(hash)
  })

  test('is named by what it is, also one that was made of another', () => {
    const base = agent({ name: 'clerk', instructions: 'You file.', tools: { search } })
    const described = { name: 'sum', description: 'Adds.', input: z.object({}), output: z.object({}) } as const
    const made: readonly AnyAgent[] = [
      base.use(extension({ name: 'first' })),
      base.use(extension({ name: 'first' })).use(extension({ name: 'second' })),
      registerTool(base, 'find', { description: 'Finds', input: { type: 'object' }, execute: () => '' }),
      useTools(base, { look: search }),
      useTool(base, { seek: search }),
      toolFunc(base, () => '', { name: 'see', description: 'Sees', input: { type: 'object' } }),
      base.auto(described),
      base.auto(described).use(extension({ name: 'first' })),
      auto(described),
      withChanges(base, { name: 'other' }),
      withChanges(base, { model: scriptedModel([]) }),
      withChanges(base.auto(described), { tools: {} }),
    ]

    for (const one of made) {
      expect(one.identity.ref).toEqual(withIdentity(one).identity.ref)
      expect(one.identity.ref.name).toBe(one.name)
    }
    expect(new Set([base, ...made].map(({ identity }) => identity.ref.hash)).size).toBe(made.length + 1)
    expect(useTools(base, 'search').identity.ref).toEqual(base.identity.ref)
  })

  test('a tool given part by part is answered with the form that is taken', () => {
    const base = agent({ name: 'clerk', instructions: '', model: scriptedModel([]) })
    const register = registerTool as (...given: readonly unknown[]) => unknown

    expect(() => register(base, 'weather', 'Says the weather', { city: ['str', 'Where'] }, () => 'fine')).toThrow(
      'registerTool: description, arguments and function have names here: ' +
        'registerTool(agent, "weather", { desc, kwargs, func, returns }).',
    )
  })

  test.each<[string, Schema]>([
    ['zod 4', z.object({ topic: z.string().min(3) })],
    ['valibot', toStandardJsonSchema(v.object({ topic: v.pipe(v.string(), v.minLength(3)) }))],
    ['arktype', type({ topic: 'string>=3' })],
    ['JSON Schema', { type: 'object', properties: { topic: { type: 'string', minLength: 3 } }, required: ['topic'] }],
  ])('takes an input and an output of %s', async (_name, schema) => {
    const model = scriptedModel(['{"topic":"HTTP/3"}'])
    const clerk = agent({ name: 'clerk', instructions: '', model, input: schema, output: schema })

    const outcome = await openRuntime().run(clerk, { topic: 'QUIC' }).result

    expect(outcome).toMatchObject({ status: 'completed', output: { topic: 'HTTP/3' } })
    expect(model.requests[0]?.outputSchema).toMatchObject({ properties: { topic: { minLength: 3 } } })
    expect(model.requests[0]?.messages.at(-1)).toEqual({ role: 'user', content: '{"topic":"QUIC"}' })
  })
})

test('createRuntime refuses a wrong grant and a wrong budget', () => {
  expect(() => openRuntime({ grant: { use: ['everything'] } })).toThrow(DefinitionError)
  expect(() => openRuntime({ budget: { modelCalls: -1 } })).toThrow(/createRuntime: budget\.modelCalls/)
})

test.each(['input', 'output'] as const)('an %s that no model can be shown is refused at once, of code too', (side) => {
  const schema = { [side]: z.object({ day: z.date() }) }
  const words = `agent "a", ${side}: the zod schema has no JSON Schema: Date cannot be represented in JSON Schema`

  expect(() => agent({ name: 'a', instructions: '', ...schema })).toThrow(words)
  expect(() => agent({ name: 'a', reply: () => 'x', ...schema } as never)).toThrow(words)
})
