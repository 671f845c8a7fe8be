import { fieldParser } from 'legate/fields'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { cutBy } from './support.ts'

const plan = z.object({
  title: z.string().min(3),
  tasks: z.array(z.object({ name: z.string(), hours: z.number().max(8) })),
  meta: z.record(z.string(), z.number()).optional(),
})

describe('a field is checked when it is complete', () => {
  test('and flagged before the rest has come', async () => {
    const parser = fieldParser({ schema: plan })
    const [, , hours] = parser
      .push('{"title":"Move","tasks":[{"name":"pack","hours":9')
      .concat(parser.push(','))
      .filter(({ kind }) => kind === 'done')

    expect(hours?.dot).toBe('tasks[0].hours')
    expect(hours && (await parser.check(hours))).toEqual([{ path: ['tasks', 0, 'hours'], message: 'must be <= 8' }])
    expect(hours?.issues).toHaveLength(1)
    expect(parser.state).toBe('reading')
  })

  test('also where a library has patterns with lookahead: those it checks itself, at the end', async () => {
    const parser = fieldParser({ schema: z.object({ mail: z.string().regex(/^(?!no)/), hours: z.number().max(8) }) })
    const [mail, hours] = parser.push('{"mail":"nobody","hours":9}').filter(({ kind }) => kind === 'done')

    expect(mail && (await parser.check(mail))).toEqual([])
    expect(hours && (await parser.check(hours))).toEqual([{ path: ['hours'], message: 'must be <= 8' }])
    const result = await parser.result()
    expect(!result.ok && result.issues.map(({ path }) => path.join('.')).sort()).toEqual(['hours', 'mail'])
  })

  test('each field that is asked for, in order, with its issues', async () => {
    const text =
      '{"title":"Go","tasks":[{"name":"a","hours":1},{"name":"b"},{"name":"c","hours":"many"}],"meta":{"x":"y"}}'
    const parser = fieldParser({ schema: plan })
    const seen: unknown[] = []
    for await (const { dot, value, issues } of parser.fields(cutBy(text, 5), 'tasks[*]'))
      seen.push([dot, value, issues])

    expect(seen).toEqual([
      ['tasks[0]', { name: 'a', hours: 1 }, []],
      ['tasks[1]', { name: 'b' }, [{ path: ['tasks', 1], message: "must have required property 'hours'" }]],
      ['tasks[2]', { name: 'c', hours: 'many' }, [{ path: ['tasks', 2, 'hours'], message: 'must be number' }]],
    ])
    const result = await parser.result()
    expect(result).toMatchObject({ ok: false, reason: 'invalid', partial: { title: 'Go' } })
    expect(!result.ok && result.issues.map(({ path }) => path.join('.')).sort()).toEqual([
      'meta.x',
      'tasks.1.hours',
      'tasks.2.hours',
      'title',
    ])
  })

  test('all fields, when no path is said', async () => {
    const parser = fieldParser({ schema: plan })
    const wrong: string[] = []
    for await (const { dot, issues } of parser.fields(['{"title":"x","tasks":[],"meta":{"a":"b"},"more":1}'])) {
      if (issues?.length) wrong.push(dot)
    }

    expect(wrong).toEqual(['title', 'meta.a', 'meta', ''])
  })

  test('a single value is checked too', async () => {
    const parser = fieldParser({ schema: z.number().min(10) })
    for await (const { value, issues } of parser.fields(['7'])) {
      expect([value, issues]).toEqual([7, [{ path: [], message: 'must be >= 10' }]])
    }

    expect(await parser.result()).toMatchObject({ ok: false, reason: 'invalid' })
  })

  test('transforms and defaults apply to the whole only', async () => {
    const schema = z.object({ at: z.string().transform(Number), n: z.number().default(1) })
    const parser = fieldParser({ schema })
    for await (const { value, issues } of parser.fields(['{"at":"7"}'], 'at'))
      expect([value, issues]).toEqual(['7', []])

    expect(await parser.result()).toEqual({ ok: true, value: { at: 7, n: 1 }, notes: [] })
  })
})

describe('where in a schema a field is described', () => {
  const tree = {
    $id: 'https://example.com/tree',
    $defs: {
      node: {
        type: 'object',
        properties: { 'a/b c~': { type: 'integer' }, kids: { items: { $ref: '#/$defs/node' } } },
      },
    },
    $ref: '#/$defs/node',
  }
  const shapes = {
    type: 'object',
    properties: {
      pet: {
        oneOf: [
          { properties: { name: { type: 'string' } } },
          { properties: { name: { type: 'number' } } },
          { type: 'null' },
        ],
      },
      both: { allOf: [{ properties: { n: { minimum: 1 } } }, { properties: { n: { maximum: 3 } } }] },
      pair: { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
      closed: { type: 'object', properties: { known: {} }, additionalProperties: false },
      loose: { type: 'object', patternProperties: { '^x': { type: 'string' } } },
      self: { $ref: '#/properties/self' },
      named: { $id: 'https://example.com/named', properties: { n: { type: 'string' } } },
      gone: { $ref: '#/$defs/nowhere' },
      fenced: { type: 'array', items: false },
    },
  }

  test.each([
    [tree, '{"kids":[{"a/b c~":"x"}]}', ['kids[0]["a/b c~"]: must be integer']],
    [tree, '{"kids":[{"kids":[{"a/b c~":1.5}]}]}', ['kids[0].kids[0]["a/b c~"]: must be integer']],
    [shapes, '{"pet":{"name":"x"}}', []],
    [
      shapes,
      '{"pet":{"name":true}}',
      ['pet.name: must be string', 'pet.name: must be number', 'pet.name: must match a schema in anyOf'],
    ],
    [shapes, '{"both":{"n":5}}', ['both.n: must be <= 3']],
    [shapes, '{"pair":["x",1,"y"]}', ['pair[2]: must be number']],
    [shapes, '{"closed":{"known":1,"other":2}}', ['closed.other: is not in the schema']],
    [shapes, '{"loose":{"x":1,"y":2}}', []],
    [shapes, '{"self":{"a":1},"gone":{"a":1},"named":{"n":1},"unknown":{"a":1}}', []],
    [shapes, '{"pair":{"a":1},"fenced":[1]}', ['pair.a: is not in the schema', 'fenced[0]: is not in the schema']],
  ])('%#: in %j the innermost fields of %j', async (schema, text, wrong) => {
    const parser = fieldParser({ schema })
    const found: string[] = []
    for await (const { value, dot, issues } of parser.fields([text])) {
      if (typeof value !== 'object') found.push(...(issues ?? []).map(({ message }) => `${dot}: ${message}`))
    }

    expect(found).toEqual(wrong)
  })
})

test('without a schema every document is good, and every field', async () => {
  const parser = fieldParser()
  for await (const { issues } of parser.fields(['{"a":1}'])) expect(issues).toBeUndefined()

  expect(await parser.result()).toEqual({ ok: true, value: { a: 1 }, notes: [] })
})

test('what is not a schema is refused at once', () => {
  expect(() => fieldParser({ schema: { a: z.string() } })).toThrow('the schema of a parser: this is a shape')
})
