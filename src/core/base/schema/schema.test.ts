import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import { z as z3 } from 'zod3'
import {
  describeIssues,
  type InferInput,
  type InferOutput,
  type Issue,
  type JsonSchema,
  readSchema,
  type Schema,
  type StandardSchema,
  type Validation,
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

  test('a Standard Schema written by hand works on both sides', async () => {
    const checked = readSchema(handWritten, where)

    expect(checked.jsonSchema).toEqual({ type: 'string' })
    expect(readSchema(handWritten, where, 'output').jsonSchema).toEqual({ type: 'number' })
    expect(await checked.validate('four')).toEqual({ ok: true, value: 4 })
    expect(await checked.validate(4)).toEqual({ ok: false, issues: [{ path: ['a', 0], message: 'must be text' }] })
  })

  test('a Standard Schema without a JSON Schema validates, and says so when a model should see it', async () => {
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
    Validation<{ n: number; d: number }> | Promise<Validation<{ n: number; d: number }>>
  >()
  expectTypeOf(readSchema({ type: 'string' }, where).validate).returns.toEqualTypeOf<Validation | Promise<Validation>>()
})

function issuesOf(checked: Validation): readonly Issue[] {
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
