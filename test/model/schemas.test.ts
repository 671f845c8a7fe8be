import { agent, createRuntime, type RunEvent, type Schema, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { MAY_START, oddServer } from '../tools/mcp/support.ts'
import { type Client, clients } from './support/clients.ts'
import { refusalOf } from './support/provider-rules.ts'
import { Wire } from './support/wire.ts'
import { ask, typesOf } from './support/world.ts'

let wire: Wire

beforeAll(async () => {
  wire = await Wire.open()
  wire.rules = refusalOf
})
beforeEach(() => wire.reset())
afterAll(() => wire.close())

const Tree = z.object({
  name: z.string(),
  get kids() {
    return z.array(Tree)
  },
})
const Cat = z.object({ kind: z.literal('cat'), lives: z.number() })
const Dog = z.object({ kind: z.literal('dog'), barks: z.boolean() })

/** A schema, and a value of it. */
const shapes: readonly [string, Schema, unknown][] = [
  ['a union of objects', z.union([z.object({ city: z.string() }), z.object({ at: z.array(z.number()) })]), { at: [1] }],
  ['a discriminated union', z.discriminatedUnion('kind', [Cat, Dog]), { kind: 'dog', barks: true }],
  ['a union inside', z.object({ pet: z.discriminatedUnion('kind', [Cat, Dog]) }), { pet: { kind: 'cat', lives: 9 } }],
  ['a text', z.string(), 'Say "hi" } ] {'],
  ['a number', z.number(), 7],
  ['true or false', z.boolean(), true],
  ['one of several words', z.enum(['red', 'green']), 'green'],
  ['a list', z.array(z.object({ a: z.number() })), [{ a: 1 }, { a: 2 }]],
  ['a pair', z.tuple([z.string(), z.number()]), ['a', 1]],
  ['a list of anything', z.array(z.any()), [1, 'b']],
  ['a map', z.record(z.string(), z.number()), { a: 1, b: 2 }],
  ['a text or null', z.string().nullable(), 'x'],
  ['anything', z.any(), [1, { a: 2 }]],
  ['a JSON Schema that says nothing', {}, 'x'],
  ['a reference', z.lazy(() => Tree), { name: 'a', kids: [{ name: 'b', kids: [] }] }],
  ['an object that holds itself', Tree, { name: 'a', kids: [{ name: 'b', kids: [] }] }],
  ['a list of what holds itself', z.union([z.string(), z.array(Tree)]), [{ name: 'a', kids: [] }]],
  [
    'a reference to the root from inside a union',
    { anyOf: [{ type: 'string' }, { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] }] },
    { next: { next: 'end' } },
  ],
  [
    'all of two objects',
    { allOf: [{ type: 'object', properties: { a: { type: 'number' } } }, { properties: { b: { type: 'string' } } }] },
    { a: 1, b: 'c' },
  ],
  [
    'an object of which one part is needed',
    {
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      anyOf: [{ required: ['a'] }, { required: ['b'] }],
    },
    { b: 2 },
  ],
  ['values of several types', { enum: ['auto', 1, 2] }, 2],
  ['several types', { type: ['string', 'array', 'null'], items: { type: 'number' } }, [1]],
  ['an object without a type', { properties: { a: { type: 'number' } } }, { a: 1 }],
  ['no arguments', { type: 'object' }, {}],
]

/** How a provider's model answers: it follows the schema that it was sent. */
function written(client: Client, shape: string, value: unknown): string {
  const isObject = ['a union inside', 'an object that holds itself', 'all of two objects', 'an object without a type']
  const isPlain =
    isObject.includes(shape) || shape === 'no arguments' || (shape === 'a map' && client.name !== 'google')
  return JSON.stringify(isPlain ? value : { input: value })
}

const deltas = (events: readonly RunEvent[]) =>
  events.flatMap((event) => (event.type === 'tool-input-delta' ? [event.text] : [])).join('')

describe.each(clients)('$name takes, and gives back unwrapped,', (client) => {
  const model = () => client.model(wire.url)

  test.each(shapes)('a tool whose input is %s', async (shape, input, value) => {
    const given: unknown[] = []
    const keep = tool({
      description: 'Keeps.',
      input,
      execute: (input) => {
        given.push(input)
        return 'kept'
      },
    })
    wire.mock.on({ hasToolResult: true }, { content: 'Done.' })
    wire.mock.on({}, { toolCalls: [{ id: 'c1', name: 'keep', arguments: written(client, shape, value) }] })

    const { outcome, events, nodes } = await ask(model(), 'go', { tools: { keep } })

    expect(outcome).toMatchObject({ status: 'completed', text: 'Done.', error: null })
    expect(given).toEqual([value])
    if (typesOf(events, 'tool-input-delta').length > 0) expect(JSON.parse(deltas(events))).toEqual(value)
    expect(nodes.find(({ kind }) => kind === 'task')?.input.call?.input).toEqual(value)
    // What was said before goes back as it was said.
    const sent = JSON.stringify(wire.bodies[1]).replaceAll('\\', '')
    if (shape !== 'no arguments') expect(sent).toContain(written(client, shape, value).replaceAll('\\', ''))
  })

  test('tools of an MCP server that are no plain objects', async () => {
    const calls = ['given', 'given_any', 'given_one'].map((name) => ({ id: name, name: `odd__${name}` }))
    wire.mock.on({ hasToolResult: true }, { content: 'Done.' })
    wire.mock.on({}, { toolCalls: calls.map((call) => ({ ...call, arguments: '{"input":{"a":1}}' })) })

    const { outcome, events } = await ask(model(), 'go', { sources: { odd: oddServer('unions') }, grant: MAY_START })

    const results = events.flatMap((event) => (event.type === 'tool-result' ? [event.content] : []))
    expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(results).toEqual(['{"a":1}', '{"input":{"a":1}}', '{"a":1}'])
  })

  test.each(shapes.slice(0, 4))('a subagent whose input is %s', async (shape, input, value) => {
    const says = scriptedModel(({ messages }) => String(messages.at(-1)?.content))
    const expert = agent({ name: 'expert', instructions: '', input, model: says })
    wire.mock.on({ hasToolResult: true }, { content: 'Done.' })
    wire.mock.on({}, { toolCalls: [{ id: 'c1', name: 'expert', arguments: written(client, shape, value) }] })

    const { outcome, events } = await ask(model(), 'go', { subagents: { expert } })

    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
    const results = events.flatMap((event) => (event.type === 'tool-result' ? [String(event.content)] : []))
    expect(results).toEqual([typeof value === 'string' ? value : JSON.stringify(value)])
  })

  test.each(shapes.filter((_, at) => [0, 1, 4, 6, 7, 12, 14, 19].includes(at)))(
    'an answer that is %s',
    async (_shape, output, value) => {
      // Either way: as the setting asks for it, or as the words do.
      wire.mock.on({}, { content: JSON.stringify(value) }, { chunkSize: 3 })
      const runtime = createRuntime()
      const clerk = agent({ name: 'clerk', instructions: 'You are a clerk.', model: model(), output })
      const plain = await runtime.run(clerk, 'go').result
      const isWrapped = JSON.stringify(wire.bodies[0]).includes('"output":{')
      wire.reset()
      wire.mock.on({}, { content: JSON.stringify(isWrapped ? { output: value } : value) }, { chunkSize: 3 })
      const outcome = await runtime.run(clerk, 'go').result
      await runtime.close()

      expect(plain).toMatchObject({ status: 'completed', output: value })
      expect(outcome).toMatchObject({ status: 'completed', output: value, modelCalls: 1 })
      expect(JSON.parse(outcome.text)).toEqual(value)
    },
  )
})

test.each(clients)('I10: references that double with each step cost $name nothing', async (client) => {
  const $defs: Record<string, object> = { s0: { type: 'string' } }
  for (let at = 1; at <= 40; at++) {
    const before = { $ref: `#/$defs/s${at - 1}` }
    $defs[`s${at}`] = { type: 'object', properties: { a: before, b: before } }
  }
  const input = { type: 'object', properties: { a: { $ref: '#/$defs/s40' } }, $defs }
  wire.mock.on({}, { content: 'Done.' })
  const started = performance.now()

  const many = tool({ description: 'Many.', input, execute: () => 'x' })
  const { outcome } = await ask(client.model(wire.url), 'go', { tools: { many } })

  expect(outcome).toMatchObject({ status: 'completed', text: 'Done.' })
  expect(performance.now() - started).toBeLessThan(5_000)
})
