import { describe, expect, test } from 'vitest'
import { DefinitionError } from './error.ts'
import {
  anything,
  code,
  flag,
  int,
  list,
  listOf,
  nearest,
  number,
  type OptionRule,
  oneOf,
  orJust,
  positive,
  readOptions,
  record,
  text,
} from './options.ts'

const rules = { retries: int(0, 100), onFailure: oneOf('fail', 'return'), grant: record }
const read = (given: unknown) => () => readOptions('bake()', given as object, rules as never)

describe('options', () => {
  test('right options are given back as they are', () => {
    const given = { retries: 3, onFailure: 'fail', grant: undefined }

    expect(read(given)()).toBe(given)
    expect(read({})()).toEqual({})
  })

  test.each<[string, unknown, string]>([
    ['a misspelt name', { grnat: {} }, 'bake() has no option "grnat". Did you mean "grant"?'],
    [
      'the name that other libraries use',
      { permissions: {} },
      'bake() has no option "permissions". Did you mean "grant"?',
    ],
    ['a name that is like none', { oven: 1 }, 'bake() has no option "oven". It has retries, onFailure, grant.'],
    ['a name of every object', { toString: 1 }, 'bake() has no option "toString". It has retries, onFailure, grant.'],
    [
      'a name that is long',
      { ['x'.repeat(5_000)]: 1 },
      `bake() has no option "${'x'.repeat(59)}…. It has retries, onFailure, grant.`,
    ],
    ['a number out of range', { retries: 101 }, 'bake(): retries must be a whole number from 0 to 100, not 101.'],
    ['a text for a number', { retries: '3' }, 'bake(): retries must be a whole number from 0 to 100, not "3".'],
    ['another word', { onFailure: 'cry' }, 'bake(): onFailure must be one of "fail", "return", not "cry".'],
    ['a list for an object', { grant: [] }, 'bake(): grant must be an object, not a list.'],
    ['null', { grant: null }, 'bake(): grant must be an object, not null.'],
    ['no object', 7, 'bake() takes an object of options, not 7.'],
    ['a list', [], 'bake() takes an object of options, not a list.'],
  ])('%s is refused in a sentence', (_name, given, message) => {
    expect(read(given)).toThrow(DefinitionError)
    expect(read(given)).toThrow(expect.objectContaining({ message }))
  })
})

describe('a rule', () => {
  test.each<[string, OptionRule, readonly unknown[], readonly unknown[], string]>([
    ['int', int(1), [1, 2 ** 40], [0, 1.5, Number.NaN, '1', 1n, 2 ** 53], 'a whole number of at least 1'],
    ['number', number(0, 1), [0, 0.5, 1], [-0.1, 1.1, Number.NaN, '1'], 'a number from 0 to 1'],
    ['any number', number(), [-5, 0.5], [Number.NaN, Number.POSITIVE_INFINITY, '1'], 'a number'],
    ['positive', positive, [0.1, 5], [0, -1, Number.POSITIVE_INFINITY, '1'], 'a number above 0'],
    ['text', text, ['', 'a'], [1, null], 'a text'],
    ['flag', flag, [true, false], [0, 'true'], 'true or false'],
    ['code', code, [() => 1], [{}], 'a function'],
    ['list', list, [[]], [{}, 'ab'], 'a list'],
    ['listOf', listOf(text, 'names'), [[], ['a']], [[1], 'a'], 'a list of names'],
    ['record', record, [{}], [[], null, 'a'], 'an object'],
    ['orJust', orJust(false, record), [false, {}], [true, 0], 'an object, or false'],
  ])('%s', (_name, rule, right, wrong, words) => {
    for (const value of right) expect(rule(value)).toBeNull()
    for (const value of wrong) expect(rule(value)).toBe(words)
  })

  test('anything is right where it is checked elsewhere', () => {
    expect(anything(Symbol('x'))).toBeNull()
  })
})

describe('the nearest word', () => {
  const words = ['type', 'desc', 'instruct', 'chat_history']

  test.each([
    ['typ', 'type'],
    ['tpye', 'type'],
    ['tipe', 'type'],
    ['dsec', 'desc'],
    ['instuct', 'instruct'],
    ['chatHistory', 'chat_history'],
  ])('%s is meant as %s', (written, word) => {
    expect(nearest(written, words)).toBe(word)
  })

  test('of two words that are near, the nearer one is meant', () => {
    expect(nearest('mdoels', ['model', 'models'])).toBe('models')
  })

  test.each(['type', 'ref', 'tips', 'instructions', '', 'x'.repeat(10_000)])(
    '%j is meant as it is written',
    (written) => {
      expect(nearest(written, words)).toBeUndefined()
    },
  )
})
