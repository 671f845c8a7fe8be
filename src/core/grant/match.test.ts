import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { matchName, matchPath } from './match.ts'

describe('a pattern', () => {
  test.each<[string, string, boolean]>([
    ['search', 'search', true],
    ['search', 'Search', false],
    ['search', 'search2', false],
    ['', '', true],
    ['', 'a', false],
    ['*', '', true],
    ['*', 'anything', true],
    ['*', 'a/b', false],
    ['read_*', 'read_file', true],
    ['read_*', 'read_', true],
    ['read_*', 'xread_file', false],
    ['*_file', 'read_file', true],
    ['r*_f*e', 'read_file', true],
    ['r*x*e', 'read_file', false],
    ['**', 'a/b/c', true],
    ['**', '', true],
    ['openai/*', 'openai/gpt-5', true],
    ['openai/*', 'openai/gpt/5', false],
    ['openai/*', 'openai', false],
    ['openai/**', 'openai/gpt/5', true],
    ['/docs/**', '/docs/a/b.md', true],
    ['/docs/**', '/docs', true],
    ['/docs/**', '/docs2/a', false],
    ['/docs/**', '/', false],
    ['/docs/*', '/docs/a', true],
    ['/docs/*', '/docs/a/b', false],
    ['/docs/*', '/docs/', true],
    ['/**/b', '/a/x/b', true],
    ['/**/b', '/b', true],
    ['/**/b', '/b/c', false],
    ['/a/**/b/**/c', '/a/b/c', true],
    ['/a/**/b/**/c', '/a/x/b/y/z/c', true],
    ['/a/**/b/**/c', '/a/x/c', false],
    ['a/b', 'a/b', true],
    ['a/b', 'a/c', false],
    ['**/*.md', 'docs/a.md', true],
    ['**/*.md', 'a.md', true],
    ['*.md', 'docs/a.md', false],
    ['a.c', 'abc', false],
    ['a+', 'aa', false],
    ['[ab]', 'a', false],
    ['(', '(', true],
    ['$', '', false],
  ])('%j on %j: %s', (pattern, text, expected) => {
    expect(matchPath(pattern, text)).toBe(expected)
  })

  test('without a star matches itself only', () => {
    const word = fc.string({ maxLength: 12 }).filter((text) => !text.includes('*'))
    fc.assert(fc.property(word, word, (pattern, text) => matchPath(pattern, text) === (pattern === text)))
  })

  test('agrees with a slow and plain matcher', () => {
    const letters = fc.constantFrom('a', 'b', '*', '**', '/')
    const text = fc.array(fc.constantFrom('a', 'b', '/'), { maxLength: 8 }).map((parts) => parts.join(''))
    const pattern = fc.array(letters, { maxLength: 6 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(pattern, text, (one, other) => matchPath(one, other) === slowMatch(one, other)),
      { numRuns: 5_000 },
    )
  })
})

describe('a pattern of a name', () => {
  test.each<[string, string, boolean]>([
    ['*', '', true],
    ['*', 'openai/gpt-5', true],
    ['', '', true],
    ['', 'a', false],
    ['a', 'a', true],
    ['a', 'b', false],
    ['a', 'A', false],
    ['openai*', 'openai/gpt/5', true],
    ['openai/*', 'openai', false],
    ['*/gpt', 'a/b/gpt', true],
    ['**', 'a/b', true],
    ['a**', 'ab', true],
    ['*b*', 'abc', true],
    ['a*c', 'ab', false],
  ])('%j on %j: %s', (pattern, text, expected) => {
    expect(matchName(pattern, text)).toBe(expected)
  })
})

/** By all ways there are: `**` is any number of segments, `*` any characters of one. */
function slowMatch(pattern: string, text: string): boolean {
  if (pattern === '**') return true
  return segmentsMatch(pattern.split('/'), text.split('/'))
}

function segmentsMatch([first, ...patterns]: string[], segments: string[]): boolean {
  if (first === undefined) return segments.length === 0
  if (first === '**') {
    return Array.from({ length: segments.length + 1 }, (_, at) => segments.slice(at)).some((rest) =>
      segmentsMatch(patterns, rest),
    )
  }
  const [segment, ...rest] = segments
  return segment !== undefined && charactersMatch(first, segment) && segmentsMatch(patterns, rest)
}

function charactersMatch(pattern: string, text: string): boolean {
  if (pattern === '') return text === ''
  if (pattern.startsWith('*')) {
    return Array.from({ length: text.length + 1 }, (_, at) => text.slice(at)).some((rest) =>
      charactersMatch(pattern.slice(1), rest),
    )
  }
  return pattern[0] === text[0] && text !== '' && charactersMatch(pattern.slice(1), text.slice(1))
}
