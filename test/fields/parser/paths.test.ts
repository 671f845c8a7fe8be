import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import {
  dotPath,
  type FieldPath,
  type FieldValue,
  fieldParser,
  matchesPath,
  missingFields,
  readPath,
  slashPath,
  wildcardPath,
} from 'legate/fields'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

const anyKey = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('', '0', '*', 'a.b', 'a[0]', 'a"b', 'a\\', '~', '/', '~1', '[*]', '__proto__', 'é', 'tasks'),
)
const anyPath = fc.array(fc.oneof(anyKey, fc.nat(1_000)), { maxLength: 6 })

describe('paths', () => {
  test('what is written is read back as the same place, and matches no other', () => {
    fc.assert(
      fc.property(anyPath, anyPath, (path, other) => {
        expect(matchesPath(readPath(dotPath(path)), path)).toBe(true)
        expect(matchesPath(readPath(dotPath(path)), other)).toBe(isDeepStrictEqual(path, other))
        expect(matchesPath(readPath(slashPath(path)), path)).toBe(true)
        // Slashes have no way to write a key that is `*`: there it is a wildcard.
        if (!path.includes('*')) {
          expect(matchesPath(readPath(slashPath(path)), other)).toBe(slashPath(path) === slashPath(other))
        }
        expect(matchesPath(readPath(wildcardPath(path)), path)).toBe(true)
        expect(matchesPath(readPath(path), path)).toBe(true)
      }),
      {
        numRuns: 300,
        examples: [
          [
            ['0', '*'],
            [0, '*'],
          ],
        ],
      },
    )
  })

  test.each([
    ['', []],
    ['a', ['a']],
    ['a.b[0].c', ['a', 'b', 0, 'c']],
    ['a[0][1]', ['a', 0, 1]],
    ['a.0.b', ['a', 0, 'b']],
    ['[2].t', [2, 't']],
    ['a[*]', ['a', 7]],
    ['a[].t', ['a', 7, 't']],
    ['*.t', ['any', 't']],
    ['headers["content-type"]', ['headers', 'content-type']],
    ['headers.content-type', ['headers', 'content-type']],
    ['a["\\"]"]', ['a', '"]']],
    ['/a/b/0/c', ['a', 'b', 0, 'c']],
    ['/a/0', ['a', '0']],
    ['/a~1b/~0', ['a/b', '~']],
    ['/', ['']],
    ['/a/*/t', ['a', 3, 't']],
    ['/a/*/t', ['a', 'k', 't']],
  ])('%j leads to %j', (text, path) => {
    expect(matchesPath(readPath(text), path)).toBe(true)
  })

  test.each([
    ['a[*]', ['a', 'k']],
    ['*', [0]],
    ['a[0]', ['a', 1]],
    ['a[0]', ['a', '0']],
    ['a', ['a', 'b']],
    ['a.b', ['a']],
    ['/a/00', ['a', 0]],
    ['["*"]', ['x']],
  ])('%j does not lead to %j', (text, path) => {
    expect(matchesPath(readPath(text), path)).toBe(false)
  })

  test.each(['.a', 'a.', 'a..b', 'a[', 'a[0', 'a[x]', 'a[-1]', 'a[01]', 'a["x]', 'a[0]b', 'a["x"', "a['x']"])(
    '%j is no path, and the error says from where on',
    (text) => {
      expect(() => readPath(text)).toThrow(/is no path, from character \d+ on; write tasks\[0\]\.title/)
    },
  )

  test('an event knows whether a pattern leads to it, as its path does', () => {
    const events = fieldParser().push('{"tasks":[{"t":"a","x":[1]},{"t":"b"}],"0":{"a.b":1}}')
    const patterns = [
      '',
      'tasks',
      'tasks[*]',
      'tasks[1].t',
      '/tasks/*/t',
      'tasks[*].x[0]',
      '*',
      '["0"]["a.b"]',
      '/0/a.b',
    ]
    for (const pattern of patterns.map((text) => readPath(text))) {
      const found = events.filter((event) => event.isAt(pattern))

      expect(found).toEqual(events.filter((event) => matchesPath(pattern, event.path)))
      expect(found.length).toBeGreaterThan(0)
    }
  })
})

describe('missing fields', () => {
  test.each([
    [{ a: null }, ['a'], []],
    [{ a: 1 }, ['a', 'b', 'c.d'], ['b', 'c']],
    [{ items: [{ t: 1 }, {}, { t: null }] }, ['items[*].t'], ['items[1].t']],
    [{ items: [] }, ['items[*].t', '/items/*/t'], []],
    [{ items: [] }, ['items[0]'], ['items[0]']],
    [{ items: 'none' }, ['items[*].t'], ['items[*]']],
    [{}, ['items[*].t'], ['items']],
    [{ m: { x: { v: 1 }, y: {} } }, ['m.*.v'], ['m.y.v']],
    [[{ a: 1 }], ['[0].a', '[1].a'], ['[1]']],
    [{}, ['constructor', '__proto__'], ['constructor', '__proto__']],
    [null, ['a'], ['a']],
    [undefined, [''], []],
  ])('of %j, %j are wanted and %j lack', (value, wanted, missing) => {
    expect(missingFields(value, wanted)).toEqual(missing)
  })
})

describe('paths are checked by the compiler', () => {
  interface Plan {
    title: string
    tasks: { name: string; 'due-date'?: string; steps: { n: number }[] }[]
    meta: Record<string, { v: boolean }> | null
    size?: number | null
    raw: unknown
  }
  interface Tree {
    label: string
    kids: Tree[]
  }

  test('the compiler accepts paths of the schema', () => {
    expectTypeOf<'title' | 'tasks' | 'tasks[*]' | 'tasks[3].name' | 'tasks[*]["due-date"]'>().toExtend<
      FieldPath<Plan>
    >()
    expectTypeOf<'/tasks/*/steps/0/n' | 'tasks[*].steps[1].n' | 'meta.x.v' | 'raw.any.thing' | ''>().toExtend<
      FieldPath<Plan>
    >()
    expectTypeOf<'kids[*].kids[0].label'>().toExtend<FieldPath<Tree>>()
    expectTypeOf<'[*].t' | '/0/t'>().toExtend<FieldPath<{ t: 1 }[]>>()
    expectTypeOf<FieldPath<unknown>>().toEqualTypeOf<string>()
  })

  test('others are refused', () => {
    expectTypeOf<'titel'>().not.toExtend<FieldPath<Plan>>()
    expectTypeOf<'tasks.name'>().not.toExtend<FieldPath<Plan>>()
    expectTypeOf<'tasks[*].nam'>().not.toExtend<FieldPath<Plan>>()
    expectTypeOf<'title[0]'>().not.toExtend<FieldPath<Plan>>()
    expectTypeOf<'/tasks/*/nam'>().not.toExtend<FieldPath<Plan>>()
  })

  test('what is there has its type', () => {
    expectTypeOf<FieldValue<Plan, 'title'>>().toEqualTypeOf<string>()
    expectTypeOf<FieldValue<Plan, 'tasks[*].name'>>().toEqualTypeOf<string>()
    expectTypeOf<FieldValue<Plan, 'tasks[0]["due-date"]'>>().toEqualTypeOf<string>()
    expectTypeOf<FieldValue<Plan, '/tasks/0/steps/*/n'>>().toEqualTypeOf<number>()
    expectTypeOf<FieldValue<Plan, 'tasks[*].steps'>>().toEqualTypeOf<{ n: number }[]>()
    expectTypeOf<FieldValue<Plan, 'meta.x.v'>>().toEqualTypeOf<boolean>()
    expectTypeOf<FieldValue<Plan, 'size'>>().toEqualTypeOf<number | null>()
    expectTypeOf<FieldValue<Plan, 'raw.x'>>().toEqualTypeOf<unknown>()
    expectTypeOf<FieldValue<Plan, ''>>().toEqualTypeOf<Plan>()
    expectTypeOf<FieldValue<Tree, 'kids[0].kids'>>().toEqualTypeOf<Tree[]>()
    expectTypeOf<FieldValue<unknown, 'a'>>().toEqualTypeOf<unknown>()
  })

  test('a parser knows them from its schema', async () => {
    const parser = fieldParser({ schema: z.object({ tasks: z.array(z.object({ n: z.number() })) }) })
    // @ts-expect-error there is no such field
    for await (const field of parser.fields([], 'task[*]')) expect(field).toBeUndefined()
    const other = fieldParser({ schema: z.object({ tasks: z.array(z.object({ n: z.number() })) }) })
    for await (const { value } of other.fields(['{"tasks":[{"n":1}]}'], 'tasks[*]')) {
      expectTypeOf(value).toEqualTypeOf<{ n: number }>()
      expect(value.n).toBe(1)
    }
  })
})
