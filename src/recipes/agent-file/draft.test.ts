import { expect, test } from 'vitest'
import { explain } from '../../core/grant/decide.ts'
import { narrowingLayer } from '../../core/grant/grant.ts'
import { combineGrants } from './draft.ts'

function verdict(grant: Parameters<typeof combineGrants>[0], request: string): string {
  return grant === null ? 'allow' : explain([narrowingLayer('both', grant)], request).verdict
}

test.each([
  [
    'a question of one opens nothing that the other forbids',
    { use: ['tool:*'] },
    { ask: ['exec:*'] },
    'exec:ls',
    'deny',
  ],
  [
    'a question of one stays one where the other allows',
    { use: ['exec:git *'] },
    { ask: ['exec:*'] },
    'exec:git log',
    'ask',
  ],
  ['and is none where the other forbids', { use: ['exec:git *'] }, { ask: ['exec:*'] }, 'exec:rm x', 'deny'],
  ['what neither covers is forbidden', { use: ['exec:g* log'] }, { ask: ['exec:git l*'] }, 'exec:git log', 'deny'],
  [
    'one star of a path covers no two',
    { use: ['file.read:/w/*'] },
    { use: ['file.read:/w/**'] },
    'file.read:/w/a/b',
    'deny',
  ],
  ['what both allow is allowed', { use: ['exec:git *'] }, { use: ['exec:git log *'] }, 'exec:git log -1', 'allow'],
  [
    'a list of one and a question of the other inside it',
    { use: ['net:*'] },
    { use: ['net:*'], ask: ['net:x'] },
    'net:x',
    'ask',
  ],
])('%s', (_, first, second, request, expected) => {
  expect(verdict(combineGrants(first, second), request)).toBe(expected)
  expect(verdict(combineGrants(second, first), request)).toBe(expected)
})
