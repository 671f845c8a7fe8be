import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import { z as z3 } from 'zod3'
import {
  type Checked,
  describeIssues,
  type InferInput,
  type InferOutput,
  type Issue,
  type JsonSchema,
  readSchema,
  type Schema,
  type StandardSchema,
} from './schema.ts'

const where = 'input of tool "search"'

const handWritten: StandardSchema<string, number> = {
  '~standard': {
    version: 1,
    vendor: 'own',
    validate: (value) =>
      typeof value === 'string'
        ? { value: value.length }
        : { issues: [{ message: 'must be text', path: ['a', { key: 0 }] }] },
    jsonSchema: { input: () => ({ type: 'string' }), output: () => ({ type: 'number' }) },
  },
}

describe.each<[string, Schema]>([
  ['zod 4', z.object({ q: z.string().min(3), tags: z.array(z.string()).optional() })],
  ['arktype', type({ q: 'string>=3', 'tags?': 'string[]' })],
  [
    'wrapped valibot',
    toStandardJsonSchema(v.object({ q: v.pipe(v.string(), v.minLength(3)), tags: v.optional(v.array(v.string())) })),
  ],
  [
    'raw JSON Schema',
    {
      type: 'object',
      properties: { q: { type: 'string', minLength: 3 }, tags: { type: 'array', items: { type: 'string' } } },
      required: ['q'],
    },
  ],
])('%s', (_, schema) => {
  test('shows the same JSON Schema', () => {
    expect(readSchema(schema, where).jsonSchema).toEqual({
      type: 'object',
      properties: { q: { type: 'string', minLength: 3 }, tags: { type: 'array', items: { type: 'string' } } },
      required: ['q'],
    })
  })

  test('accepts what fits', async () => {
    const checked = await readSchema(schema, where).validate({ q: 'cats', tags: ['a'] })

    expect(checked).toEqual({ ok: true, value: { q: 'cats', tags: ['a'] } })
  })

  test('names the place of each issue', async () => {
    const checked = await readSchema(schema, where).validate({ q: 'cats', tags: ['a', 7] })

    expect(checked).toEqual({ ok: false, issues: [{ path: ['tags', 1], message: expect.any(String) }] })
    expect(describeIssues(issuesOf(checked))).toMatch(/^tags\[1\]: .*string/)
  })

  test.each([undefined, null, 7, 'text', [], {}])('refuses %j with an issue', async (value) => {
    const checked = await readSchema(schema, where).validate(value)

    expect(checked.ok).toBe(false)
    expect(describeIssues(issuesOf(checked))).not.toBe('')
  })
})

describe('Standard Schemas', () => {
  test('what a transform makes passes through as it is', async () => {
    const date = z.object({ at: z.string().transform((text) => new Date(text)) })

    const checked = await readSchema(date, where).validate({ at: '2020-01-01' })

    expect(checked.ok && checked.value.at).toBeInstanceOf(Date)
  })

  test('defaults are filled in, and only the input side may leave them out', async () => {
    const schema = z.object({ limit: z.number().default(5) })

    expect(await readSchema(schema, where).validate({})).toEqual({ ok: true, value: { limit: 5 } })
    expect(readSchema(schema, where).jsonSchema['required']).toBeUndefined()
    expect(readSchema(schema, where, 'output').jsonSchema['required']).toEqual(['limit'])
  })

  test('synchronous schemas answer at once and asynchronous ones later', async () => {
    const slow = z.string().refine(async (text) => text === 'yes')

    expect(readSchema(z.string(), where).validate('x')).toEqual({ ok: true, value: 'x' })
    const pending = readSchema(slow, where).validate('no')
    expect(pending).toBeInstanceOf(Promise)
    expect(await pending).toMatchObject({ ok: false, issues: [{ path: [] }] })
  })

  test('one written by hand works on both sides', async () => {
    const checked = readSchema(handWritten, where)

    expect(checked.jsonSchema).toEqual({ type: 'string' })
    expect(readSchema(handWritten, where, 'output').jsonSchema).toEqual({ type: 'number' })
    expect(await checked.validate('four')).toEqual({ ok: true, value: 4 })
    expect(await checked.validate(4)).toEqual({ ok: false, issues: [{ path: ['a', 0], message: 'must be text' }] })
  })

  test('one without a JSON Schema validates, and says so when a model should see it', async () => {
    const schema = readSchema(standard({ vendor: 'own', validate: (value: unknown) => ({ value }) }), where)

    expect(await schema.validate(1)).toEqual({ ok: true, value: 1 })
    expect(() => schema.jsonSchema).toThrow(/^input of tool "search": this own schema has no JSON Schema to show/)
    await expect(schema.prepare()).rejects.toMatchObject({ name: 'DefinitionError', code: 'definition' })
  })

  test('the JSON Schema is made when first read, and once', () => {
    let made = 0
    const input = () => {
      made++
      return { type: 'object' }
    }
    const schema = readSchema(
      standard({ validate: (value: unknown) => ({ value }), jsonSchema: { input, output: input } }),
      where,
    )

    expect(made).toBe(0)
    expect(schema.jsonSchema).toBe(schema.jsonSchema)
    expect(made).toBe(1)
  })

  test('a schema that JSON Schema cannot express says so with its place', () => {
    const schema = readSchema(z.object({ at: z.date() }), where)

    expect(() => schema.jsonSchema).toThrow(/^input of tool "search": the zod schema has no JSON Schema: Date cannot/)
    expect(() => schema.jsonSchema).toThrow(expect.objectContaining({ name: 'DefinitionError' }))
  })

  test('a recursive schema is shown and checked', async () => {
    const Tree = z.object({
      name: z.string(),
      get children() {
        return z.array(Tree)
      },
    })
    const schema = readSchema(Tree, where)

    expect(JSON.stringify(schema.jsonSchema)).toContain('"$ref":"#"')
    expect(await schema.validate({ name: 'a', children: [{ name: 1, children: [] }] })).toMatchObject({
      issues: [{ path: ['children', 0, 'name'] }],
    })
  })

  test.each<[string, (value: unknown) => unknown]>([
    ['throws', hostile],
    ['throws undefined', () => raise(undefined)],
    ['rejects', () => Promise.reject(new Error('hostile'))],
    ['answers nothing', () => undefined],
    ['answers null', () => null],
    ['answers a promise of nothing', async () => undefined],
    ['answers issues that throw', () => ({ issues: new Proxy([], { get: hostile }) })],
    ['answers issues of another kind', () => ({ issues: [null] })],
    ['answers a path that throws', () => ({ issues: [{ message: 'x', path: [{ key: { toString: hostile } }] }] })],
    ['answers a throwing then', () => Object.defineProperty({}, 'then', { get: hostile })],
    ['answers no issue at all', () => ({ issues: [] })],
  ])('a schema that %s gives an issue, never an exception', async (_, validate) => {
    const checked = await readSchema(standard({ validate }), where).validate({})

    expect(checked).toEqual({ ok: false, issues: [{ path: [], message: expect.stringMatching(/.+/) }] })
  })

  test('symbols in a path are shown and many issues are cut', async () => {
    const issues = Array.from({ length: 5000 }, () => ({ message: 'x\ny', path: [Symbol('s')] }))

    const checked = await readSchema(standard({ validate: () => ({ issues }) }), where).validate({})

    expect(issuesOf(checked)).toHaveLength(100)
    expect(issuesOf(checked)[0]).toEqual({ path: ['Symbol(s)'], message: 'x y' })
  })
})

describe('what is refused at once', () => {
  test.each<[string, unknown, RegExp]>([
    ['zod 3', z3.object({ a: z3.string() }), /zod 3 schemas cannot be shown to a model; upgrade to zod 4/],
    ['an old zod 3', { _def: { typeName: 'ZodObject' }, parse() {} }, /upgrade to zod 4/],
    ['zod mini', mini.object({ a: mini.string() }), /import z from 'zod' itself, version 4\.2 or newer/],
    [
      'bare valibot',
      v.object({ a: v.string() }),
      /wrap it: toStandardJsonSchema\(schema\), from '@valibot\/to-json-schema'/,
    ],
    ['a zod shape', { query: z.string() }, /this is a shape, not a schema; wrap it, as in z\.object/],
    ['a zod shape with the word type', { type: z.string() }, /this is a shape/],
    ['a zod 3 shape', { query: z3.string() }, /this is a shape/],
    ['text', 'string', /this is not a schema/],
    ['a list', [{ type: 'string' }], /this is not a schema/],
    ['a function', () => true, /this is not a schema/],
    ['null', null, /this is not a schema/],
    ['undefined', undefined, /this is not a schema/],
    ['an object of other words', { topic: 'string' }, /this is not a schema/],
    ['a cyclic JSON Schema', cyclic(), /the JSON Schema is not plain JSON\. "properties\.self" is part of a cycle/],
    ['a JSON Schema with code in it', { type: 'object', default: () => 1 }, /"default" is a function/],
  ])('%s', (_, schema, message) => {
    const read = () => readSchema(schema as Schema, where)

    expect(read).toThrow(expect.objectContaining({ name: 'DefinitionError', code: 'definition' }))
    expect(read).toThrow(message)
    expect(read).toThrow(/^input of tool "search": [^\n]+$/)
  })
})

describe('JSON Schema shown to a model', () => {
  test('has no titles and no $schema, but keeps properties of those names', () => {
    const schema = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'Root',
      type: 'object',
      properties: {
        title: { title: 'Title', type: 'string', default: { title: 'kept' }, enum: [{ title: 'kept' }] },
        $schema: { type: 'string' },
        list: { type: 'array', items: { title: 'Item', anyOf: [{ title: 'A', type: 'string' }, true] } },
      },
      $defs: { title: { title: 'Def', const: { title: 'kept' } } },
      additionalProperties: { title: 'Rest', not: { title: 'Not' } },
    }
    const before = JSON.stringify(schema)

    expect(readSchema(schema, where).jsonSchema).toEqual({
      type: 'object',
      properties: {
        title: { type: 'string', default: { title: 'kept' }, enum: [{ title: 'kept' }] },
        $schema: { type: 'string' },
        list: { type: 'array', items: { anyOf: [{ type: 'string' }, true] } },
      },
      $defs: { title: { const: { title: 'kept' } } },
      additionalProperties: { not: {} },
    })
    expect(JSON.stringify(schema)).toBe(before)
  })

  test.each<[JsonSchema, JsonSchema]>([
    [{ type: 'object' }, { type: 'object', properties: {} }],
    [{ properties: { a: {} } }, { type: 'object', properties: { a: {} } }],
    [
      { oneOf: [{ type: 'object' }, { properties: {} }] },
      { oneOf: [{ type: 'object' }, { properties: {} }], type: 'object', properties: {} },
    ],
    [{ anyOf: [{ type: 'object' }, { type: 'null' }] }, { anyOf: [{ type: 'object' }, { type: 'null' }] }],
    [{ type: 'string' }, { type: 'string' }],
    [{ type: ['object', 'null'] }, { type: ['object', 'null'] }],
    [{}, {}],
    [{ enum: [1] }, { enum: [1] }],
  ])('an object schema says type and properties: %j', (schema, shown) => {
    expect(readSchema(schema, where).jsonSchema).toEqual(shown)
  })

  test('tuples of older drafts take the present form', async () => {
    const old = { type: 'array', items: [{ type: 'string' }, { type: 'number', title: 'N' }], additionalItems: false }
    const schema = readSchema(old, where)

    expect(schema.jsonSchema).toEqual({
      type: 'array',
      prefixItems: [{ type: 'string' }, { type: 'number' }],
      items: false,
    })
    expect((await schema.validate(['a', 1])).ok).toBe(true)
    expect((await schema.validate(['a', 1, 2])).ok).toBe(false)
  })

  test('a property called __proto__ stays a property', () => {
    const { jsonSchema } = readSchema(JSON.parse('{"properties":{"__proto__":{"type":"string"}}}'), where)

    expect(JSON.stringify(jsonSchema)).toBe('{"properties":{"__proto__":{"type":"string"}},"type":"object"}')
  })
})

describe('raw JSON Schema', () => {
  test('validates later the first time and at once after that', async () => {
    const schema = readSchema({ type: 'string' }, where)

    const first = schema.validate('x')
    expect(first).toBeInstanceOf(Promise)
    expect(await first).toEqual({ ok: true, value: 'x' })
    expect(schema.validate('x')).toEqual({ ok: true, value: 'x' })
  })

  test('once prepared it validates at once', async () => {
    const schema = readSchema({ type: 'string' }, where)
    await schema.prepare()

    expect(schema.validate(1)).toEqual({ ok: false, issues: [{ path: [], message: 'must be string' }] })
  })

  test('gives back the very value it was given', async () => {
    const value = { a: new Date(), b: undefined }

    const checked = await readSchema({ type: 'object' }, where).validate(value)

    expect(checked.ok && checked.value).toBe(value)
  })

  test('says all that is wrong, with what is needed to correct it', async () => {
    const schema = {
      type: 'object',
      properties: {
        size: { enum: ['s', 'm'] },
        kind: { const: 'cat' },
        'x/y~z': { type: 'object', properties: { '0': { type: 'number' } } },
        list: { type: 'array', items: { minLength: 2 } },
      },
      required: ['name'],
      additionalProperties: false,
    }
    const value = { size: 'xl', kind: 'dog', 'x/y~z': { '0': 'a' }, list: ['', 'ok'], other: 1 }

    const checked = await readSchema(schema, where).validate(value)

    expect(describeIssues(issuesOf(checked)).split('\n').sort()).toEqual([
      '["x/y~z"]["0"]: must be number',
      'kind: must be equal to constant: "cat"',
      'list[0]: must NOT have fewer than 2 characters',
      `must NOT have additional properties: "other"`,
      `must have required property 'name'`,
      'size: must be equal to one of the allowed values: "s", "m"',
    ])
  })

  test('speaks draft 2020-12', async () => {
    const schema = readSchema(
      {
        $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
        $ref: '#/$defs/node',
        unevaluatedProperties: false,
      },
      where,
    )

    expect((await schema.validate({ next: { next: {} } })).ok).toBe(true)
    expect((await schema.validate({ nex: {} })).ok).toBe(false)
  })

  test('unknown keywords, formats and old drafts do not matter', async () => {
    const schema = readSchema(
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        type: 'string',
        format: 'telepathy',
        'x-order': 1,
        widget: {},
      },
      where,
    )

    expect((await schema.validate('anything')).ok).toBe(true)
  })

  test('patterns that only the older expressions take are accepted', async () => {
    const schema = readSchema({ type: 'string', pattern: '^a\\-b$' }, where)

    expect((await schema.validate('a-b')).ok).toBe(true)
    expect((await schema.validate('a+b')).ok).toBe(false)
  })

  test.each<[string, JsonSchema]>([
    ['a type that does not exist', { type: 'nonsense' }],
    ['a reference to nothing', { $ref: '#/$defs/missing' }],
    ['a reference to elsewhere', { $ref: 'https://example.com/schema.json' }],
    ['a broken pattern', { type: 'string', pattern: '(' }],
    ['a keyword of the wrong kind', { type: 'object', required: 'name' }],
  ])('%s is a DefinitionError when prepared and an issue when validated', async (_, raw) => {
    const schema = readSchema(raw, where)

    await expect(schema.prepare()).rejects.toMatchObject({
      name: 'DefinitionError',
      message: expect.stringMatching(/^input of tool "search": not a usable JSON Schema: /),
    })
    expect(await schema.validate({})).toEqual({
      ok: false,
      issues: [{ path: [], message: expect.stringMatching(/^input of tool "search": not a usable JSON Schema: /) }],
    })
  })

  test('a schema that never ends gives an issue', async () => {
    const checked = await readSchema({ $ref: '#' }, where).validate({})

    expect(checked).toMatchObject({ ok: false, issues: [{ message: expect.stringMatching(/call stack/) }] })
  })

  test('inherited properties satisfy nothing', async () => {
    const schema = readSchema({ type: 'object', required: ['constructor', '__proto__'] }, where)

    expect(issuesOf(await schema.validate({}))).toHaveLength(2)
  })

  test('two schemas of one $id stay apart, also one that claims to be the meta schema', async () => {
    const id = 'https://json-schema.org/draft/2020-12/schema'
    const text = readSchema({ $id: id, type: 'string' }, where)
    const number = readSchema({ $id: id, type: 'number' }, where)

    expect((await text.validate('a')).ok).toBe(true)
    expect((await number.validate(1)).ok).toBe(true)
    expect((await number.validate('a')).ok).toBe(false)
  })

  test('$async in a schema cannot turn a refusal into a promise', async () => {
    const schema = readSchema({ $async: true, type: 'string' }, where)

    expect((await schema.validate(1)).ok).toBe(false)
  })

  test('many issues are cut', async () => {
    const schema = readSchema({ type: 'array', items: { type: 'string' } }, where)

    expect(issuesOf(await schema.validate(Array(5000).fill(1)))).toHaveLength(100)
  })
})

describe('describeIssues', () => {
  test('writes one line for each issue', () => {
    const issues: Issue[] = [
      { path: [], message: 'is wrong' },
      { path: ['a', 0, 'b'], message: 'must\nbe text' },
    ]

    expect(describeIssues(issues)).toBe('is wrong\na[0].b: must be text')
    expect(describeIssues([])).toBe('')
  })

  test('is bounded', () => {
    const issues = Array.from({ length: 100 }, () => ({ path: ['x'.repeat(500)], message: 'y'.repeat(5000) }))

    const lines = describeIssues(issues).split('\n')

    expect(lines).toHaveLength(21)
    expect(lines.at(-1)).toBe('… and 80 more')
    expect(Math.max(...lines.map((line) => line.length))).toBe(300)
  })
})

test('types are inferred from every kind of schema', () => {
  const zod = z.object({ n: z.string().transform(Number), d: z.number().default(1) })
  const ark = type({ a: 'string', 'b?': 'number' })
  const valibot = toStandardJsonSchema(v.object({ a: v.pipe(v.string(), v.transform(Number)) }))

  expectTypeOf<InferInput<typeof zod>>().toEqualTypeOf<{ n: string; d?: number | undefined }>()
  expectTypeOf<InferOutput<typeof zod>>().toEqualTypeOf<{ n: number; d: number }>()
  expectTypeOf<InferOutput<typeof ark>>().toEqualTypeOf<{ a: string; b?: number }>()
  expectTypeOf<InferInput<typeof valibot>>().toEqualTypeOf<{ a: string }>()
  expectTypeOf<InferOutput<typeof valibot>>().toEqualTypeOf<{ a: number }>()
  expectTypeOf<InferInput<typeof handWritten>>().toEqualTypeOf<string>()
  expectTypeOf<InferOutput<typeof handWritten>>().toEqualTypeOf<number>()
  expectTypeOf<InferOutput<{ type: 'object' }>>().toEqualTypeOf<unknown>()
  expectTypeOf<InferOutput<JsonSchema>>().toEqualTypeOf<unknown>()
  expectTypeOf(readSchema(zod, where).validate).returns.toEqualTypeOf<
    Checked<{ n: number; d: number }> | Promise<Checked<{ n: number; d: number }>>
  >()
  expectTypeOf(readSchema({ type: 'string' }, where).validate).returns.toEqualTypeOf<Checked | Promise<Checked>>()
})

function issuesOf(checked: Checked): readonly Issue[] {
  return checked.ok ? [] : checked.issues
}

function standard(props: Record<string, unknown>): Schema {
  return { '~standard': { version: 1, vendor: 'own', ...props } }
}

function hostile(): never {
  throw new Error('hostile')
}

function raise(value: unknown): never {
  throw value
}

function cyclic(): unknown {
  const schema: Record<string, unknown> = { type: 'object' }
  schema['properties'] = { self: schema }
  return schema
}
