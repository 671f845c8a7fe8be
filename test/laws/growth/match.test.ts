import { describe, expect, test } from 'vitest'
import { matchPath } from '../../../src/core/grant/match.ts'

describe('I10: a hostile pattern', () => {
  test.each<[string, string, string]>([
    ['16 stars on 10,000 characters', `${'a*'.repeat(16)}b`, 'a'.repeat(10_000)],
    ['16 stars that match nothing', `${'*a'.repeat(16)}*b`, 'a'.repeat(10_000)],
    ['5,000 stars', '*'.repeat(5_000), 'a'.repeat(10_000)],
    ['16 double stars', `${'**/a/'.repeat(16)}b`, 'a/'.repeat(5_000)],
    ['stars inside double stars', `${'**/*a*a*a/'.repeat(8)}b`, 'aaaa/'.repeat(2_000)],
    ['one long segment behind a double star', `**/${'*a'.repeat(16)}*b`, 'a'.repeat(10_000)],
    ['only slashes', '/'.repeat(5_000), '/'.repeat(10_000)],
  ])('%s ends within 50 ms', (name, pattern, text) => {
    const times = Array.from({ length: 3 }, () => {
      const start = performance.now()
      expect(matchPath(pattern, text)).toBe(name === '5,000 stars')
      return performance.now() - start
    })

    expect(Math.min(...times)).toBeLessThan(50)
  })
})
