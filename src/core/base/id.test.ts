import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deriveIds, foreignId, freshId, isId, matchesId, shortId } from './id.ts'

const parent = '01928c5e-5b00-7abc-8def-0123456789ab'
const anyTime = fc.integer({ min: 0, max: 2 ** 48 - 1 })

describe('freshId', () => {
  test('is a UUIDv7 of the time it was given', () => {
    fc.assert(
      fc.property(anyTime, (now) => {
        const id = freshId(now)
        expect(isId(id)).toBe(true)
        expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(now)
      }),
    )
  })

  test('no two are alike, also within one millisecond', () => {
    const ids = Array.from({ length: 20_000 }, () => freshId(1_700_000_000_000))

    expect(new Set(ids).size).toBe(ids.length)
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 1.7, 2 ** 60])(
    'a clock that says %s still gives a valid id',
    (now) => {
      expect(isId(freshId(now))).toBe(true)
    },
  )
})

describe('deriveIds', () => {
  test('gives the same ids in every process', () => {
    expect(deriveIds(parent, 'task', 2)).toEqual([
      '01928c5e-5b00-7ed9-9e98-796391235006',
      '01928c5e-5b00-7ed9-9e98-79632f5ac9b7',
    ])
  })

  test('makes valid ids that keep the time of the parent', () => {
    fc.assert(
      fc.property(anyTime, fc.string(), fc.integer({ min: 0, max: 50 }), (now, label, count) => {
        const from = freshId(now)
        const ids = deriveIds(from, label, count)
        expect(ids).toHaveLength(count)
        for (const id of ids) {
          expect(isId(id)).toBe(true)
          expect(id.slice(0, 13)).toBe(from.slice(0, 13))
        }
      }),
    )
  })

  test('a longer list begins with the shorter one', () => {
    expect(deriveIds(parent, 'task', 40).slice(0, 7)).toEqual(deriveIds(parent, 'task', 7))
  })

  test('100,000 ids all differ in their last 8 characters', () => {
    const endings = new Set(deriveIds(parent, 'task', 100_000).map(shortId))

    expect(endings.size).toBe(100_000)
  })

  test('another label or another parent gives other ids', () => {
    const other = freshId(1_700_000_000_000)
    const lists = [deriveIds(parent, 'a', 100), deriveIds(parent, 'b', 100), deriveIds(other, 'a', 100)]

    expect(new Set(lists.flat()).size).toBe(300)
  })

  test.each([-1, 1.5, Number.NaN, 100_001])('refuses a count of %s', (count) => {
    expect(() => deriveIds(parent, 'task', count)).toThrow(/0 to 100000/)
  })

  test('refuses a parent that is not an id', () => {
    expect(() => deriveIds('root', 'task', 1)).toThrow('"root" is not an id.')
  })
})

describe('isId', () => {
  test.each([
    parent.toUpperCase(),
    parent.replaceAll('-', ''),
    `${parent}\n`,
    ` ${parent}`,
    '01928c5e-5b00-4abc-8def-0123456789ab',
    '01928c5e-5b00-7abc-cdef-0123456789ab',
    '',
    null,
    undefined,
    7,
    [parent],
  ])('is false for %j', (text) => {
    expect(isId(text)).toBe(false)
  })
})

describe('short ids', () => {
  test('are the last 8 characters', () => {
    expect(shortId(parent)).toBe('456789ab')
  })

  test('an ending matches whatever its case and dashes', () => {
    for (const ending of ['ab', '456789AB', 'def-0123456789ab', 'DEF0123456789AB', parent, parent.toUpperCase()]) {
      expect(matchesId(parent, ending)).toBe(true)
    }
  })

  test('what is not an ending matches nothing', () => {
    for (const ending of ['', '-', '---', 'b ', '456789', `0${parent}`, '%', '.*']) {
      expect(matchesId(parent, ending)).toBe(false)
    }
  })

  test('every id matches each of its endings', () => {
    fc.assert(
      fc.property(anyTime, fc.integer({ min: 1, max: 36 }), (now, length) => {
        const id = freshId(now)
        const ending = id.slice(-length)
        expect(matchesId(id, ending)).toBe(ending.replaceAll('-', '') !== '')
      }),
    )
  })
})

describe('foreignId', () => {
  const any = fc.string({ unit: 'binary', maxLength: 12 })
  const anyKey = fc.record({ owner: fc.option(any), surface: any, agent: any, key: any })

  test('is an id, and the same one for the same key', () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        expect(isId(foreignId(key))).toBe(true)
        expect(foreignId({ ...key })).toBe(foreignId(key))
      }),
    )
  })

  test('no two keys have one id, wherever their parts are cut', () => {
    const texts = ['', 'a', 'b', 'ab', '1:a', 'a\n', '"', 'null', '\ud800', '\ud801', '\ufffd']
    const ids = new Set<string>()
    let count = 0
    for (const owner of [null, ...texts])
      for (const agent of texts)
        for (const key of texts) {
          ids.add(foreignId({ owner, surface: 'x', agent, key }))
          count++
        }

    expect(ids.size).toBe(count)
    expect(foreignId({ owner: null, surface: 'x', agent: 'a', key: 'k' })).not.toBe(
      foreignId({ owner: null, surface: 'y', agent: 'a', key: 'k' }),
    )
  })

  test('stays the one that stores hold', () => {
    expect(foreignId({ owner: 'ann', surface: 'chat', agent: 'clerk', key: 'my chat' })).toBe(
      '7edc9359-feda-78f8-9f8d-b3d7f7082a03',
    )
  })
})
