import { expect, test } from 'vitest'
import { signed } from '../../web/pages/diff/figures.tsx'
import {
  clock,
  count,
  groupBy,
  listOf,
  modelName,
  moment,
  money,
  shortId,
  size,
  span,
  spanSoFar,
  tokens,
} from '../../web/words/format.ts'

test.each([
  [0, '0'],
  [812, '812'],
  [4_100, '4.1k'],
  [46_000, '46.0k'],
  [99_949, '99.9k'],
  [99_950, '100k'],
  [212_000, '212k'],
  [999_499, '999k'],
  [999_500, '1.0M'],
  [2_100_000, '2.1M'],
])('%d tokens are %s', (given, shown) => expect(tokens(given)).toBe(shown))

test.each([
  [100, '0.1 s'],
  [5_600, '5.6 s'],
  [9_960, '10 s'],
  [12_000, '12 s'],
  [402_000, '6:42'],
  [1_199_000, '19:59'],
  [31 * 60_000, '31 min'],
  [130 * 60_000, '2 h 10 min'],
  [120 * 60_000, '2 h'],
  [76 * 3_600_000, '3 d 4 h'],
  [-5, '0.0 s'],
])('%d ms are %s', (given, shown) => expect(span(given)).toBe(shown))

test('a time that goes on has whole seconds', () => {
  expect([spanSoFar(900), spanSoFar(1_900), spanSoFar(61_000)]).toEqual(['0 s', '1 s', '1:01'])
})

test.each([
  [undefined, '—'],
  [0, '—'],
  [null, 'unknown'],
  [0.000_1, '< $0.001'],
  [0.004, '$0.004'],
  [0.82, '$0.82'],
  [12, '$12.00'],
] as const)('%s dollars are %s', (given, shown) => expect(money(given)).toBe(shown))

test('names, ids and sizes', () => {
  expect(listOf(['a'])).toBe('a')
  expect(listOf(['a', 'b'])).toBe('a and b')
  expect(listOf(['a', 'b', 'c'])).toBe('a, b and c')
  expect(listOf(['a', 'b', 'c', 'd', 'e'])).toBe('a, b and 3 more')
  expect([count(1, 'agent'), count(3, 'agent'), count(1_200, 'line')]).toEqual(['1 agent', '3 agents', '1,200 lines'])
  expect([size(214), size(2_140), size(214_000), size(3_000_000)]).toEqual(['214 B', '2.1 kB', '214 kB', '3.0 MB'])
  expect(shortId('01a1eb91-3133-7068-b579-d335898f7a76')).toBe('898f7a76')
  expect(modelName('anthropic/claude-sonnet-5')).toBe('claude-sonnet-5')
})

test('a moment is short today, has its day this week, and its date before', () => {
  const now = new Date(2026, 10, 17, 14, 2, 11).getTime()
  expect(clock(now)).toBe('14:02:11')
  expect(moment(now, now)).toBe('14:02')
  expect(moment(now - 2 * 86_400_000, now)).toBe('Sun 14:02')
  expect(moment(now - 14 * 86_400_000, now)).toBe('3 Nov 14:02')
})

test('groups keep the order of their first items', () => {
  expect([...groupBy(['b1', 'a1', 'b2'], ([first = '']) => first)]).toEqual([
    ['b', ['b1', 'b2']],
    ['a', ['a1']],
  ])
})

test('a difference has a sign, and is left out where its words say nothing', () => {
  expect(signed(-3_000, span)).toBe('−3.0 s')
  expect(signed(0.02, money)).toBe('+$0.02')
  expect([signed(-20, span), signed(0.000_1, money), signed(0, String), signed(null, money)]).toEqual([
    null,
    null,
    null,
    null,
  ])
})
