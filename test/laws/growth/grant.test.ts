import { describe, expect, test } from 'vitest'
import { decide } from '../../../src/core/grant/decide.ts'
import { checkGrant, useLayer } from '../../../src/core/grant/grant.ts'
import { hostPattern, plainHost } from '../../../src/core/grant/host.ts'
import { covers, lint, mayMeet } from '../../../src/core/grant/lint.ts'
import { matchName, matchPath } from '../../../src/core/grant/match.ts'
import { programRequest, readRequest } from '../../../src/core/grant/request.ts'
import { readRule } from '../../../src/core/grant/rule.ts'
import { keyOfPattern, plainProgram, quoteWords, readWords } from '../../../src/core/grant/words.ts'
import { commandWords } from '../../../src/core/tools/shell-tool.ts'
import { combineGrants } from '../../../src/recipes/agent-file/draft.ts'
import { MOST_RULES } from '../../../src/recipes/agent-file/patterns.ts'
import { isFull } from '../../crash/support/full.ts'
import { testGrowth } from '../../support/growth.ts'
import { watchWork } from '../../support/pace.ts'

const MOST = 500_000
const REQUEST = isFull ? 1_900_000 : 500_000

const PATTERN: readonly string[] = [
  'a',
  '*',
  '**',
  '/',
  '/**',
  '/**/',
  'a*',
  '*a',
  'aa*',
  '*ab',
  '/*',
  '/*a',
  'b',
  '.',
  'é',
]
const COMMAND: readonly string[] = [
  ...[
    'a',
    ' ',
    '\t',
    "'",
    '"',
    '\\',
    '$',
    '`',
    '!',
    '*',
    '|',
    ';',
    '&',
    '(',
    '\n',
    '=',
    '-',
    '/',
    './',
    '../../',
    "'a'",
  ],
  ...['"a"', '\'"\'"', "''", '"" ', 'a ', 'a\'b\'"c"', '//', 'é', '😀', '\ud800', '\0', 'A=b ', '--a=b ', '-c '],
]
/** Words that look like secrets, and words before which a program may stand. */
const SECRETS: readonly string[] = [
  ...['API_KEY=a ', 'TOKEN=a;', 'A_KEY=a$A_KEY ', 'TOKEN=a $TOKEN ', 'export API_KEY=abc\n', 'PASSWORD=$PASSWORD '],
  ...[
    '--token ',
    '-/env ',
    'TOKEN=Zq81Lm55Tt09Xx37Aa12Bb34;',
    'sk-Zq81Lm55Tt09Xx37Aa12Bb34 ',
    'a://b:c@ ',
    'Bearer a ',
  ],
]
const HOST: readonly string[] = [
  ...[
    'a',
    '.',
    'a.',
    '../..',
    ':',
    '::',
    '/',
    '@',
    'a@',
    '%',
    '%41',
    '-',
    'xn--',
    'é',
    '😀',
    '。',
    '1',
    '1.',
    '0x',
    '[',
    ']',
  ],
  ...['*', '?', '#', '\\', ' ', '\n', 'A', 'ß', '\u00ad', '\u200d', '://', 'f:', 'ffff:', '\ud800', '_', '٣', 'ا'],
]

describe('patterns', () => {
  const path = `/workspace/${'a/'.repeat(60)}${'a'.repeat(200)}b`

  testGrowth('a pattern and a path', { read: (text) => matchBoth(`/${text}b`, path), tokens: PATTERN, most: MOST })
  testGrowth('a short pattern and a name', {
    read: (text) => ['*a*b', 'a**b', '**/a*a/b', '*aaaaaaaab', '**/**/b'].map((pattern) => matchBoth(pattern, text)),
    tokens: PATTERN,
    most: MOST,
  })
  testGrowth('a pattern and a name that is nearly its own', {
    read: (text) => matchName(`*${text.replaceAll('*', 'c')}b`, `${text}${text}c`),
    tokens: PATTERN,
    most: MOST,
  })
  testGrowth('a pattern of many parts', {
    read: (text) => matchName(`${text.replaceAll('a', 'a*')}b`, text.repeat(3)),
    tokens: PATTERN,
    most: MOST,
  })
})

describe('rules', () => {
  for (const domain of ['tool', 'file.read', 'exec', 'net']) {
    const rule = (text: string) => `${domain}:a${text}`
    testGrowth(`a rule of ${domain}`, {
      read: (text) => {
        attempt(() => checkGrant({ use: [rule(text)] }, 'test'))
        return [
          readRule(rule(text)),
          covers(rule(text), rule(`${text}a`)),
          mayMeet(rule(`${text}*a`), rule(`*${text}`)),
        ]
      },
      tokens: [...PATTERN, ...(domain === 'net' ? HOST : COMMAND)],
      // Each is read eight times.
      most: MOST / 4,
    })
    testGrowth(`a decision about many rules of ${domain}`, {
      read: (text) => {
        const rules = text.split('\n').map((pattern, at) => `${domain}:${pattern}${at}`)
        checkGrant({ use: rules }, 'test')
        return decide([useLayer('test', { use: rules })], readRequest(`${domain}:b`))
      },
      tokens: ['a\n', '*\n', '/a/**\n', 'a b\n', 'a*b*c\n', '"a"\n'],
      most: MOST / 8,
      around: (body) => `${body}a`,
    })
  }

  test.each([
    ['plain', (at: number) => `/workspace/a${at}`],
    ['wide', (at: number) => `/workspace/**/a${at}/**`],
    ['with many double stars', (at: number) => `/${'**/*/'.repeat(20)}a${at}`],
    ['of many segments', (at: number) => `/${'*/'.repeat(200)}a${at}`],
  ])('500 rules that are %s are compared with one another within a second', (_, pattern) => {
    const rules = Array.from({ length: MOST_RULES / 2 }, (_, at) => `file.read:${pattern(at)}`)
    const read = () => combineGrants({ use: rules }, { use: rules.toReversed(), ask: ['exec:*'] })

    expect(leastWork(read)).toBeLessThan(1_000)
    expect(leastWork(() => lint({ use: rules, ask: rules }, ['file.read:/a']))).toBeLessThan(1_000)
  })
})

describe('command lines', () => {
  testGrowth('a command', {
    read: (text) => [commandWords(text), attempt(() => quoteWords(readWords(text) ?? [text])), keyOfPattern(text)],
    tokens: COMMAND,
    most: MOST,
  })
  testGrowth('a command in quotes', {
    read: (text) => [commandWords(text), keyOfPattern(text)],
    tokens: COMMAND,
    most: MOST,
    around: (body) => `ls "${body.replaceAll('"', '')}`,
  })
  testGrowth('a program', { read: plainProgram, tokens: COMMAND, most: MOST, around: (body) => `/a/${body}` })
  testGrowth('a request for a program', {
    read: (text) => [attempt(() => programRequest(['a', ...text.split(' ')])), readRequest(`exec:${text}`)],
    tokens: COMMAND,
    most: 100_000,
  })
  testGrowth('a request for a program with a long argument', {
    read: (text) => [attempt(() => programRequest(['sh', '-c', text]))],
    tokens: [...COMMAND, ...SECRETS],
    most: MOST,
  })

  test.each(SECRETS)(`I10 a request of ${REQUEST / 1_000_000} MB of %j is made in less than a second`, (part) => {
    const script = part.repeat(Math.floor(REQUEST / part.length))
    for (const words of [
      ['sh', '-c', script],
      ['x', script],
      ['env', ...script.split(/[ ;\n]/)],
    ]) {
      expect(leastWork(() => programRequest(words))).toBeLessThan(1_000)
    }
  })
})

describe('hosts', () => {
  const read = (text: string) => [plainHost(text), hostPattern(text), readRequest(`net:${text}`)]

  testGrowth('a host', { read, tokens: HOST, most: MOST })
  testGrowth('a host in an address', { read, tokens: HOST, most: MOST, around: (body) => `https://a${body}a/` })
  testGrowth('an address', { read, tokens: HOST, most: MOST, around: (body) => `https://a.b/${body}` })
  testGrowth('a host of digits', {
    read,
    tokens: ['1', ':', '.', 'a', 'f', '::'],
    most: MOST,
    around: (body) => `[${body}]`,
  })
})

function matchBoth(pattern: string, text: string): boolean[] {
  return [matchPath(pattern, text), matchName(pattern, text)]
}

/** Of a few times, if the first is not good enough. */
function leastWork(act: () => unknown): number {
  let least = Number.POSITIVE_INFINITY
  for (let time = 0; time < 5 && least >= 1_000; time++) {
    const work = watchWork()
    act()
    least = Math.min(least, work())
  }
  return least
}

function attempt(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}
