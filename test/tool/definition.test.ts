import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import { agent, DefinitionError, type Schema, type StandardSchema, type Tool, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { z as z3 } from 'zod3'
import { openRuntime, resultIn } from '../support/reading.ts'

const handWritten: StandardSchema<{ city: string }> = {
  '~standard': {
    version: 1,
    vendor: 'own',
    validate: (value) => {
      const city: unknown = Object(value)['city']
      if (typeof city === 'string' && city.length >= 3) return { value: { city } }
      return { issues: [{ message: 'must be at least 3 letters', path: ['city'] }] }
    },
    jsonSchema: {
      input: () => ({ type: 'object', properties: { city: { type: 'string', minLength: 3 } }, required: ['city'] }),
      output: () => ({ type: 'object' }),
    },
  },
}

const schemas: [string, Schema<{ city: string }>][] = [
  ['zod 4', z.object({ city: z.string().min(3) })],
  ['valibot', toStandardJsonSchema(v.object({ city: v.pipe(v.string(), v.minLength(3)) }))],
  ['arktype', type({ city: 'string>=3' })],
  ['a Standard Schema written by hand', handWritten],
  [
    'raw JSON Schema',
    { type: 'object', properties: { city: { type: 'string', minLength: 3 } }, required: ['city'] } as Schema<never>,
  ],
]

describe.each(schemas)('peers 6/2: a tool with %s', (_name, schema) => {
  const lookUp = tool({
    description: 'Population',
    input: schema,
    execute: (input) => ({ got: input as { city: string } }),
  })

  test('shows the model exactly its fields', async () => {
    const model = scriptedModel(['done'])

    await openRuntime().run(agent({ name: 'clerk', instructions: '', model, tools: { lookUp } }), 'go').result

    const [offered] = model.requests[0]?.tools ?? []
    expect(offered).toMatchObject({ name: 'lookUp', description: 'Population' })
    expect(offered?.inputSchema).toMatchObject({
      type: 'object',
      properties: { city: { type: 'string', minLength: 3 } },
      required: ['city'],
    })
  })

  test('gets what fits', async () => {
    const said = await resultOf(lookUp, { city: 'Oslo' })

    expect(said).toBe('{"got":{"city":"Oslo"}}')
  })

  test.each([[{ city: 'X' }], [{}], [{ city: 7 }], ['"Oslo"'], [null], [['Oslo']]])(
    'answers the arguments %j with what is wrong, and is not run',
    async (input) => {
      let runs = 0
      const counted = tool({ description: 'Population', input: schema, execute: () => ++runs })

      const said = await resultOf(counted, input)

      expect(said).toMatch(/^The arguments of it are wrong\. ./)
      expect(runs).toBe(0)
    },
  )
})

test('a transform and a default of the schema reach execute', async () => {
  const add = tool({
    description: 'Adds',
    input: z.object({ a: z.string().transform(Number), b: z.number().default(40) }),
    execute: ({ a, b }) => a + b,
  })

  expect(await resultOf(add, { a: '2' })).toBe('42')
})

test('extra arguments are dropped or refused as the schema says', async () => {
  const echo = (input: Schema) => tool({ description: 'Echo', input, execute: (given) => given as string })
  const input = { q: 'a', constructor: 'x', _host: 'x' }

  expect(await resultOf(echo(z.object({ q: z.string() })), input)).toBe('{"q":"a"}')
  expect(await resultOf(echo(z.strictObject({ q: z.string() })), input)).toContain('"constructor"')
})

test('a schema that checks asynchronously is awaited', async () => {
  const slow = tool({
    description: 'Slow',
    input: z.object({ q: z.string().refine(async (q) => q !== 'bad', { message: 'is bad' }) }),
    execute: ({ q }) => q,
  })

  expect(await resultOf(slow, { q: 'good' })).toBe('good')
  expect(await resultOf(slow, { q: 'bad' })).toContain('q: is bad')
})

describe('a definition that cannot work is refused with what to do', () => {
  const good = { description: 'Echo', input: { type: 'object' }, execute: () => 1 }

  test.each<[string, object, RegExp]>([
    ['no description', { ...good, description: undefined }, /needs a description/],
    ['no execute', { ...good, execute: undefined }, /needs execute\(input, context\)/],
    ['an execute that is not a function', { ...good, execute: 'rm -rf' }, /execute must be a function/],
    ['no input', { ...good, input: undefined }, /needs an input.*\{ type: "object" \}/],
    ['the word of the AI SDK', { ...good, inputSchema: {} }, /no option "inputSchema"\. .*input/],
    ['the word parameters', { ...good, parameters: {} }, /no option "parameters"\. Did you mean "input"/],
    ['a name', { ...good, name: 'x' }, /no option "name"/],
    ['a wrong effect', { ...good, effect: 'readonly' }, /one of "pure", "idempotent", "effectful", not "readonly"/],
    ['a timeout of zero', { ...good, timeoutMs: 0 }, /timeoutMs/],
    ['a timeout that is not a number', { ...good, timeoutMs: '5s' }, /timeoutMs/],
    ['a timeout that is not a number', { ...good, timeoutMs: Number.NaN }, /timeoutMs/],
    ['a zod 3 schema', { ...good, input: z3.object({ q: z3.string() }) }, /zod 3 .*upgrade to zod 4/],
    ['a bare valibot schema', { ...good, input: v.object({ q: v.string() }) }, /toStandardJsonSchema/],
    ['a zod shape', { ...good, input: { q: z.string() } }, /this is a shape.*z\.object/],
    ['a string for a schema', { ...good, input: 'q: string' }, /not a schema/],
    [
      'a type that is none',
      { ...good, input: { properties: { q: { type: 'strng' } } } },
      /^the input of the tool "Echo": not a usable JSON Schema: properties\.q: type must be one of "string"/,
    ],
    [
      'an output with a reference to nowhere',
      { ...good, output: { $ref: '#/$defs/missing' } },
      /^the output of the tool "Echo": .* \$ref must be the place of a schema in this one/,
    ],
    ['a zod 3 output', { ...good, output: z3.string() }, /output.*zod 3/],
    ['null', null as unknown as object, /tool\(\) takes an object/],
    ['a function', (() => 1) as unknown as object, /tool\(\) takes an object/],
  ])('%s', (_name, definition, message) => {
    const define = () => tool(definition as typeof good)

    expect(define).toThrow(DefinitionError)
    expect(define).toThrow(message)
  })

  test.each(['input', 'output'] as const)('an %s that no model can be shown is refused at once', (side) => {
    const define = () =>
      tool({ description: 'When', input: { type: 'object' }, [side]: z.object({ at: z.date() }), execute: () => 1 })

    expect(define).toThrow(DefinitionError)
    expect(define).toThrow(`the ${side} of the tool "When": the zod schema has no JSON Schema: Date cannot be`)
  })
})

test('a tool is immutable', () => {
  const echo = tool({ description: 'Echo', input: { type: 'object' }, execute: () => 1 })

  expect(() => Object.assign(echo, { execute: () => 2 })).toThrow(TypeError)
})

/** Calls the tool once through an agent; what the model reads as the result. */
async function resultOf(it: Tool<never, unknown>, input: unknown): Promise<string> {
  const model = scriptedModel([{ calls: [{ name: 'it', input: input as never }] }, 'done'])
  const outcome = await openRuntime().run(agent({ name: 'clerk', instructions: '', model, tools: { it } }), 'go').result
  expect(outcome.status).toBe('completed')
  return resultIn(model.requests[1])
}
