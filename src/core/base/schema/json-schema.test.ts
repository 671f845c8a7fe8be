import { describe, expect, test } from 'vitest'
import { watchWork } from '../../../../test/support/pace.ts'
import { compileJsonSchema } from './json-check.ts'
import { describeIssues, type Issue, type JsonSchema, readSchema, type Validation } from './schema.ts'

const where = 'input of tool "search"'

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

describe('a raw JSON Schema with a plain mistake is refused at once, with its place', () => {
  test.each<[JsonSchema, string]>([
    [{ type: 'strng' }, 'the schema: type must be one of "string", "number"'],
    [{ type: ['string', 'nil'] }, 'the schema: type must be one of'],
    [{ type: 'array', items: { type: 'Array' } }, 'items: type must be one of'],
    [{ type: 'object', required: 'name' }, 'the schema: required must be a list of names, not "name"'],
    [{ type: 'object', properties: ['a'] }, 'the schema: properties must be an object, not ["a"]'],
    [{ anyOf: { type: 'string' } }, 'the schema: anyOf must be a list, not an object'],
    [{ anyOf: [{ not: 'x' }] }, 'anyOf[0]: not must be a schema'],
    [{ enum: 'a' }, 'the schema: enum must be a list'],
    [{ type: 'number', minimum: '1' }, 'the schema: minimum must be a number, not "1"'],
    [{ type: 'number', minimum: 1, exclusiveMinimum: true }, 'the schema: exclusiveMinimum must be a number'],
    [{ type: 'array', uniqueItems: 'yes' }, 'the schema: uniqueItems must be true or false'],
    [{ $ref: 5 }, 'the schema: $ref must be a text'],
    [{ $ref: '#/$defs/b', $defs: { a: {} } }, 'the schema: $ref must be the place of a schema in this one'],
    [{ properties: { 'x-y': { $ref: '#nowhere' } } }, 'properties["x-y"]: $ref must be the place'],
    [{ items: { $ref: 'https://example.com/schema.json' } }, 'items: $ref must be the place'],
  ])('%j', async (schema, why) => {
    expect(() => readSchema(schema, where)).toThrow(`${where}: not a usable JSON Schema: ${why}`)
    // A validator says so too, only later.
    await expect(compileJsonSchema(schema, where)).rejects.toThrow('not a usable JSON Schema')
  })

  test.each<[JsonSchema, string]>([
    [{ type: 'object', required: ['a', 1] }, 'the schema: required must be a list of names'],
    [{ type: 'object', properties: { a: 'string' } }, 'properties: a must be a schema: an object, true or false'],
    [{ allOf: [{}, 'x'] }, 'allOf: 1 must be a schema'],
  ])('also where a validator would check nothing: %j', (schema, why) => {
    expect(() => readSchema(schema, where)).toThrow(`${where}: not a usable JSON Schema: ${why}`)
  })

  test.each<JsonSchema>([
    { type: ['string', 'null'], 'x-type': { type: 'strng' } },
    { properties: { type: { const: { type: 'strng' } }, required: true, $ref: { type: 'string' } } },
    { enum: [{ $ref: '#/nowhere' }], default: { type: 'int' }, examples: [{ required: 1 }] },
    { $ref: '#' },
    { $ref: '#/$defs/a%20b~1c', $defs: { 'a b/c': { type: 'string' } } },
    { $ref: '#/definitions/no', definitions: { no: false } },
    { $ref: '#item', $defs: { a: { $anchor: 'item' } } },
    { $ref: '#/components/a', components: { a: { type: 'string' } } },
    { $ref: 'item.json', $defs: { a: { $id: 'item.json', type: 'string' } } },
    { $id: 'https://example.com/a', properties: { a: { $ref: 'a#/$defs/x' } }, $defs: { x: {} } },
    { type: 'array', items: [{ type: 'string' }], additionalItems: false },
    { dependentSchemas: { a: true }, if: {}, else: false, unevaluatedProperties: { type: 'string' } },
    { properties: { n: { type: 'string', nullable: true, format: 'any', maxLength: 2.5, deprecated: 'yes' } } },
  ])('but not where a validator takes it: %j', async (schema) => {
    await readSchema(schema, where).prepare()
  })

  test('of a schema with 40,000 properties is found in time in proportion to its size (I10)', () => {
    const properties = Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`p${at}`, { type: 'string' }]))
    const workMs = watchWork()

    expect(() => readSchema({ properties: { ...properties, last: { type: 'x' } } }, where)).toThrow(
      'properties.last: type',
    )

    expect(workMs()).toBeLessThan(2_000)
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
    ['a broken pattern', { type: 'string', pattern: '(' }],
    ['a reference to elsewhere, among addresses', { $id: 'https://example.com/a', items: { $ref: 'b' } }],
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

    expect(issuesOf(await schema.validate(Array(4000).fill(1)))).toHaveLength(100)
  })
})

function issuesOf(checked: Validation): readonly Issue[] {
  return checked.ok ? [] : checked.issues
}
