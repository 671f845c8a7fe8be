import { expect, test } from 'vitest'
import { checkGrant } from './grant.ts'
import { readRule, splitRule } from './rule.ts'

test.each<[string, string, string]>([
  ['tool:read', 'tool', 'read'],
  ['net:a:80', 'net', 'a:80'],
  ['file.read:/a', 'file.read', '/a'],
  [':read', '', 'read'],
  ['read', '', 'read'],
  ['tool:', 'tool', ''],
  ['', '', ''],
])('%j is of the domain %j with the pattern %j', (rule, domain, pattern) => {
  expect(splitRule(rule)).toEqual({ domain, pattern })
})

test.each([
  ['sec/**', '/workspace/sec/**'],
  ['s', '/workspace/s'],
  ['./sec', '/workspace/sec'],
  ['/workspace/sec/', '/workspace/sec/**'],
  ['/workspace//sec', '/workspace/sec'],
  ['/workspace/././sec/.', '/workspace/sec/**'],
  ['*', '**'],
  ['[s]', '/workspace/[s]'],
  ['/workspace/a?', 'a path such as file.read:/workspace/src/**'],
  ['/a\\b', 'a path such as file.read:/workspace/src/**'],
  ['../a', 'a path such as file.read:/workspace/src/**'],
])('no file can match %j, and the refusal says what to write', (pattern, right) => {
  const hint = right.startsWith('a path') ? right : `file.read:${right}`
  expect(() => checkGrant({ deny: [`file.read:${pattern}`] }, 'agent()')).toThrow(`write ${hint}.`)
})

test.each(['**', '/', '/a', '/a/**', '**/a', '/**/.env*', '/workspace/app/[id]/*.ts', '/a/{b}', '/a b/ä'])(
  'a file can match %j',
  (pattern) => {
    expect(readRule(`file.read:${pattern}`).trouble).toBeNull()
  },
)
