import { expect, test } from 'vitest'
import { splitRule } from './rule.ts'

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
