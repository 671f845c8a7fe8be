import { describe, expect, test } from 'vitest'
import { secretsInCommand, shownWords } from '../../../src/core/base/secrets/command-secrets.ts'
import { Secrets, withoutSecrets } from '../../../src/core/base/secrets/secrets.ts'
import { isSecretName, isSecretOption, looksSecret, withoutShapes } from '../../../src/core/base/secrets/shapes.ts'
import { testGrowth } from '../../support/growth.ts'
import { inChunks } from './tokens.ts'

const MOST = 4_000_000
const KNOWN = [
  'abcdefgh',
  'a b c d e f g h i',
  'postgres://me:secretsecret@host/db',
  'x'.repeat(5_000),
  'aaaaaaaaaaaaaaaaaaaa',
]

const SHORT = KNOWN.filter(({ length }) => length < 100)

/** Beginnings of what looks like a secret, and what may stand around it. */
const SHAPES: readonly string[] = [
  ...[
    'a',
    'A',
    '1',
    ' ',
    '\n',
    '\t',
    '"',
    "'",
    '-',
    '_',
    '.',
    '/',
    '//',
    ':',
    '@',
    '=',
    '&',
    '*',
    '?',
    '#',
    '+',
    '~',
    ';',
  ],
  ...[
    'key',
    'key:',
    'key: ',
    'key=',
    'token',
    'token: ',
    'password":"',
    'secret',
    'sig=',
    'Bearer',
    'Bearer ',
    'Basic\n',
  ],
  ...[
    'sk-',
    'sk-aaaaaaaa',
    '-eyJ',
    '-eyJaaaaaaaa',
    'eyJaaaaaaaa.',
    'SG.',
    '-SG.aaaaaaaaaaaaaaaaaaa',
    'AIza',
    'ya29.',
    'ghp_',
  ],
  ...[
    'github_pat_',
    'glpat-',
    '-glaa-',
    'AKIA',
    'xoxb-',
    'xoxb.xoxp-',
    'hf_',
    'pypi-',
    'dapi',
    'hvs.',
    '-dapi',
    'GOCSPX-',
    'shpat_',
    'sntrys_',
    '-key-',
    'NRAK-',
    'aaa1Q~',
    '12345:A',
    'dp.pt.',
    'EAAA',
    'pataaaaaaaaaaaaaa.',
    'aaaaaaaaaaaaaa.atlasv1.',
    'hooks.slack.com/services/',
  ],
  ...[
    '-----BEGIN ',
    '-----BEGIN PRIVATE KEY-----',
    '-----END ',
    '-----',
    'PRIVATE KEY-----',
    '//a',
    '//a:',
    '//a:b@',
    '://',
    'redis://a:',
    'mongodb+srv://',
    'secret = ',
    'password: "',
    'password\\\\"',
    'pwd=>',
  ],
  ...['é', '\u200b', '😀', '\ud800', '--token ', '--token=', '-u ', '--a', ' --key a'],
]

describe('what looks like a secret', () => {
  testGrowth('a text', { read: withoutShapes, tokens: SHAPES, most: MOST })
  testGrowth('a value', { read: looksSecret, tokens: SHAPES, most: MOST })
  testGrowth('a private key', {
    read: withoutShapes,
    tokens: SHAPES,
    most: MOST,
    around: (body) => `-----BEGIN PRIVATE KEY-----${body}`,
  })
  testGrowth('a name', {
    read: (text) => [isSecretName(text), isSecretOption(text)],
    tokens: ['a', 'A', 'aA', '_', '-', 'TOKEN', 'token', 'PASSW', 'API', 'KEY', 'KEYS', '1', 'é', 'BW_SESSION'],
    most: MOST,
  })

  test('4 MB behind the beginning of a private key are no secret to the last one of them', () => {
    expect(withoutShapes(`-----BEGIN PRIVATE KEY-----${'a'.repeat(MOST)}`)).toBe('***')
  })
})

describe('known secrets', () => {
  const secrets = new Secrets(KNOWN)
  const tokens = [
    ...SHAPES,
    ...KNOWN,
    'abcdefg',
    'aaaaaaaaaaa',
    'a\u200bb',
    'YWJjZGVmZ2g',
    '%20',
    '\\u0061',
    'secretsecre',
  ]

  testGrowth('a text without secrets', { read: (text) => secrets.clean(text), tokens, most: MOST })
  testGrowth('blocks of an answer', { read: (text) => secrets.cleanAll(inChunks(text, 9)), tokens, most: MOST / 4 })
  testGrowth('values of an answer', {
    read: (text) => secrets.cleanJson(inChunks(text, 30).map((value) => ({ [value]: [value] }))),
    tokens,
    most: MOST / 8,
  })
  testGrowth('an error', { read: (text) => withoutSecrets(text, SHORT), tokens, most: MOST })
})

describe('a command line', () => {
  const read = (words: readonly string[]) => [secretsInCommand(words), shownWords(words)]

  testGrowth('a script in a command line', { read: (text) => read(['sh', '-c', text]), tokens: SHAPES, most: 400_000 })
  testGrowth('an option of a command line', {
    read: (text) => read(['a', `--${text}`, text]),
    tokens: SHAPES,
    most: 400_000,
  })
  testGrowth('words of a command line', { read: (text) => read(text.split(' ')), tokens: SHAPES, most: 400_000 })
  testGrowth('options with secrets', {
    read: (text) => read(text.split(' ').map((word, at) => `${word}${'a'.repeat(at % 200)}${at}`)),
    tokens: ['--token a://b/ ', '--token=', 'KEY=a ', '--key= ', 'a://b:c@ '],
    most: 400_000,
  })
})
