import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileJsonSchema } from '../../../src/core/base/schema/json-check.ts'
import { type JsonSchema, readSchema } from '../../../src/core/base/schema/schema.ts'
import { testGrowth } from '../../support/growth.ts'
import { watchWork } from '../../support/pace.ts'

const MOST = 16_000_000

describe('values and their schemas', async () => {
  const lists = ['1,', '1.0,', '"a",', '{"a":1,"b":2},', '{"b":2,"a":1},', '[],', '[1],', 'null,', '{"a":{"a":[{}]}},']
  const unique = await compileJsonSchema({ type: 'array', uniqueItems: true }, 'test')
  testGrowth('a list whose items differ', {
    read: (text) => unique((JSON.parse(text) as unknown[]).map((item, at) => [at, item])),
    tokens: lists,
    most: MOST / 8,
    around: asList,
  })

  const choice = await compileJsonSchema({ items: { enum: Array.from({ length: 4_000 }, (_, at) => at) } }, 'test')
  testGrowth('a list of allowed values', {
    read: (text) => choice(JSON.parse(text)),
    tokens: lists,
    most: MOST / 8,
    around: asList,
  })

  const item = { type: 'object', required: ['b'] }
  const wrong = await compileJsonSchema({ items: { $ref: '#/$defs/item' }, $defs: { item } }, 'test')
  testGrowth('a list of wrong items', {
    read: (text) => wrong(JSON.parse(text)),
    tokens: lists,
    most: MOST / 8,
    around: asList,
  })

  test.each([
    ['uniqueItems', { uniqueItems: true }, Array.from({ length: 100_000 }, (_, at) => ({ at }))],
    ['a pattern that multiplies', { items: { pattern: '^(a+)+$' } }, [`${'a'.repeat(100_000)}!`]],
    ['a pattern of many parts', { items: { pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' } }, ['a'.repeat(100_000)]],
    ['a pattern for keys', { patternProperties: { '^(a|a)*$': false } }, { [`${'a'.repeat(50_000)}!`]: 1 }],
  ])('%s: 100 KB and more are checked within a second', async (_, schema: JsonSchema, value) => {
    const check = await compileJsonSchema(schema, 'test')
    check(Array.isArray(value) ? [] : {})
    const work = watchWork()

    check(value)

    expect(work()).toBeLessThan(1_000)
  })

  test.each(['maxLength', 'minLength'])(
    '%s: a long text is measured once, however often it is asked for',
    async (name) => {
      const allOf = Array.from({ length: 2_300 }, () => ({ [name]: 950_000 }))
      const check = await compileJsonSchema({ items: { allOf } }, 'test')
      check([])
      const work = watchWork()

      expect(check(['😀'.repeat(950_000)])).toEqual([])
      expect(work()).toBeLessThan(1_000)
    },
  )

  test('the length of a text is its number of characters, not of their units', async () => {
    const check = await compileJsonSchema({ items: { minLength: 2, maxLength: 3 } }, 'test')

    expect(check(['😀😀', '😀😀😀', 'abc', '\ud83d\ud83d'])).toEqual([])
    expect(check(['😀', '😀😀😀😀', 'a', '\ude00']).map(({ pointer, message }) => `${pointer} ${message}`)).toEqual([
      '/0 must NOT have fewer than 2 characters',
      '/1 must NOT have more than 3 characters',
      '/2 must NOT have fewer than 2 characters',
      '/3 must NOT have fewer than 2 characters',
    ])
  })

  test('more text than can be compared with patterns at once is an issue, within a second', async () => {
    const check = readSchema({ items: { pattern: '^\\p{L}*$' } }, 'test')
    const value = Array.from({ length: 40 }, () => 'é'.repeat(100_000))
    await check.prepare()
    const work = watchWork()

    expect(await check.validate(value)).toEqual({
      ok: false,
      issues: [
        {
          path: [],
          message: 'the schema failed: more than 1000000 characters would have to be compared with patterns',
        },
      ],
    })
    expect(work()).toBeLessThan(2_000)
    expect(await check.validate(['é'])).toEqual({ ok: true, value: ['é'] })
  })

  test('a schema that doubles with each level is an issue, within a second', async () => {
    const level = { properties: { default: { $ref: '#/$defs/level' } } }
    const check = readSchema(
      { $ref: '#/$defs/level', $defs: { level: { anyOf: [{ allOf: [level, false] }, { allOf: [level, false] }] } } },
      'test',
    )
    let value: unknown = {}
    for (let depth = 0; depth < 60; depth++) value = { default: value }
    await check.prepare()
    const work = watchWork()

    expect(await check.validate(value)).toMatchObject({ ok: false, issues: [{ message: /too often to be checked/ }] })
    expect(work()).toBeLessThan(2_000)
  })
})

describe('errors', () => {
  test('all are told of a small value, the first of a large one', async () => {
    const check = await compileJsonSchema({ items: { $ref: '#/$defs/a' }, $defs: { a: { type: 'string' } } }, 'test')

    expect(check([1, 'a', 2])).toEqual(['/0', '/2'].map((pointer) => ({ pointer, message: 'must be string' })))
    expect(check(Array.from({ length: 5_000 }, () => 1))).toEqual([{ pointer: '/0', message: 'must be string' }])
  })
})

describe('a schema of a file or a server', () => {
  const strings = (count: number) => Array.from({ length: count }, () => ({ type: 'string' }))

  test.each<[string, JsonSchema]>([
    ['properties', { properties: Object.fromEntries(strings(2_400).map((one, at) => [`p${at}`, one])) }],
    ['allOf', { allOf: strings(2_400) }],
    ['prefixItems', { prefixItems: strings(2_400) }],
  ])('a schema that is as large as it may be is compiled: %s', async (_, schema) => {
    const check = await compileJsonSchema(schema, 'test')

    expect(check({ p1: 1 })).toHaveLength('properties' in schema ? 1 : 'allOf' in schema ? 2_400 : 0)
  })

  test('a schema that is larger is refused with the limit', async () => {
    await expect(compileJsonSchema({ allOf: strings(5_000) }, 'test')).rejects.toThrow(/more than 5000 values/)
  })
})

describe('uniqueItems and enum', () => {
  test('mean what they meant: the order of keys does not matter, the type does', async () => {
    const check = await compileJsonSchema({ uniqueItems: true }, 'test')
    const plain = await ajv({ uniqueItems: true })
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 6 }), (made) => {
        const value = JSON.parse(JSON.stringify([...made, ...made.slice(0, made.length % 2)])) as unknown[]
        expect(check(value).length > 0).toBe(hasEqual(value))
      }),
    )
    for (const value of [
      [1, 1],
      [1, '1'],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [null, 'null'],
      [[], {}],
      [0, -0],
      [true, 'true'],
    ]) {
      expect(check(value).length === 0).toBe(plain(value))
    }
    expect(check([1, 2, 1])).toEqual([
      { pointer: '', message: 'must NOT have duplicate items (items ## 0 and 2 are identical)' },
    ])
  })

  test('values are allowed by what they are', async () => {
    const check = await compileJsonSchema({ enum: [1, 'a', { a: 1, b: [2] }, null] }, 'test')

    for (const value of [1, 'a', { b: [2], a: 1 }, null]) expect(check(value)).toEqual([])
    for (const value of ['1', 'b', { a: 1 }, false]) expect(check(value)).toHaveLength(1)
    expect(check(2)[0]?.message).toBe('must be equal to one of the allowed values: 1, "a", {"a":1,"b":[2]}, null')
  })
})

describe('patterns', () => {
  test.each([
    ['^[A-Z]{2}-\\d{4}$', ['AB-1234', 'AB-123', 'ab-1234', 'AB-12345']],
    ['^[\\w.+-]+@[\\w-]+\\.[\\w.]+$', ['a@b.c', 'a.b', '@b.c', 'a@b']],
    ['colou?r', ['color', 'my colours', 'colr']],
    ['^\\u0041\\x42\\/$', ['AB/', 'ab/']],
    ['^(?:a|bc)*?d$', ['abcd', 'd', 'abd']],
    ['^\\p{L}+$', ['été', '1']],
    ['^.{2,3}$', ['ab', 'abcd', '😀😀']],
    ['^[a-z]+(?:,[a-z]+)*$', ['a,b', 'a,', 'ab']],
  ])('%s means what it means in JavaScript', async (pattern, texts) => {
    const check = await compileJsonSchema({ pattern }, 'test')

    for (const text of texts) expect(check(text).length === 0).toBe(new RegExp(pattern, 'u').test(text))
    expect(check('\0')).toEqual([{ pointer: '', message: `must match pattern "${pattern}"` }])
  })

  test.each(['^(?=a)', '(?<!a)b', '(a)\\1', 'a{2000}', '('])(
    '%s is refused, and what to do is told',
    async (pattern) => {
      await expect(compileJsonSchema({ items: { pattern } }, 'input of tool "x"')).rejects.toThrow(
        /^input of tool "x": not a usable JSON Schema: the pattern ".*" cannot be used\. Write it without lookahead/,
      )
    },
  )
})

function hasEqual(items: readonly unknown[]): boolean {
  return items.some((item, at) => items.slice(0, at).some((before) => isDeepStrictEqual(before, item)))
}

function asList(body: string): string {
  return `[${body.slice(0, body.lastIndexOf(','))}]`
}

async function ajv(schema: object): Promise<(value: unknown) => boolean> {
  const { Ajv2020 } = await import('ajv/dist/2020.js')
  const check = new Ajv2020({ strict: false }).compile(schema)
  return (value) => check(value) as boolean
}
