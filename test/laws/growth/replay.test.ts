import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/core/store/memory/index.ts'
import { realign } from '../../../src/testing/replay/answer-parts.ts'
import { Cleaner } from '../../../src/testing/replay/clean.ts'
import { matchText } from '../../../src/testing/replay/differences.ts'
import { IdTokens } from '../../../src/testing/replay/packed-request.ts'
import { testGrowth } from '../../support/growth.ts'
import { inChunks } from './tokens.ts'

const MOST = 1_000_000
const ID = '01900000-0000-7000-8000-00000000abcd'
const TOKENS: readonly string[] = [
  ...[
    'a',
    ' ',
    '"',
    '\\"',
    '***',
    '***a',
    '***#2',
    '<id:1>',
    '***<id:1>',
    '<duration>',
    '<time:1>',
    ID,
    'hunterhunter',
  ],
  ...[
    '"password":"',
    '\\"token\\": \\"a',
    'sk-aaaaaaaaaaaaaaaa ',
    'key: ',
    'password=a&',
    '2026-01-01T00:00:00Z',
    '**Duration:** 1',
  ],
]

function cleaner(): Cleaner {
  const made = new Cleaner(new IdTokens(memoryStore()))
  made.learn(['hunterhunter', 'aaaaaaaa'])
  return made
}

describe('a recording', () => {
  testGrowth('a text of it', { read: (text) => cleaner().request(text), tokens: TOKENS, most: MOST })
  testGrowth('an object of it', {
    read: (text) =>
      cleaner().answer(Object.fromEntries(inChunks(text, 30).map((value, at) => [`${value}${at}`, value]))),
    tokens: TOKENS,
    most: MOST / 4,
  })
  testGrowth('a stream of it', {
    read: (text) => realign(inChunks(text, 3), cleaner().text(text)),
    tokens: TOKENS,
    most: MOST,
  })
  testGrowth('what is held against it', {
    read: (text) => [
      matchText(text, `${text.replaceAll('***', 'b')}c`, () => true),
      matchText(`***${text}`, text, () => true),
    ],
    tokens: TOKENS,
    most: MOST,
  })
})

test('marks stand for any text, each for its own', () => {
  const any = () => true
  expect(matchText('a *** b *** c', 'a x b y b z c', any)).toBe(true)
  expect(matchText('***a***a***b', `${'a'.repeat(5_000)}c`, any)).toBe(false)
  expect(matchText('***a***a***b', `${'a'.repeat(5_000)}b`, any)).toBe(true)
  expect(matchText('*** is *** <duration>.', 'it is what it is 3s.', any)).toBe(true)
  expect(matchText('*** x', 'y', any)).toBe(false)
})
