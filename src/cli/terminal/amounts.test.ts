import { expect, test } from 'vitest'
import { age, count, duration, money } from './amounts.ts'

test('times are short and never say 60 of anything', () => {
  expect([0, 9_940, 9_960, 59_400, 59_600, 3_599_400, 3_600_000, 90_000_000].map(duration)).toEqual([
    '0.0 s',
    '9.9 s',
    '10 s',
    '59 s',
    '1m 00s',
    '59m 59s',
    '1h 00m',
    '1d 1h',
  ])
  expect([-5, 59_999, 60_000, 7_200_000, 172_800_000].map(age)).toEqual(['0 s', '59 s', '1 min', '2 h', '2 d'])
})

test('numbers keep three figures, money its cents', () => {
  expect([999, 1_000, 99_940, 99_960, 999_960].map(count)).toEqual(['999', '1.0k', '99.9k', '100k', '1.0M'])
  expect([0, 0.00001, 0.0042, 1.239].map(money)).toEqual(['$0', '<$0.0001', '$0.0042', '$1.24'])
})
