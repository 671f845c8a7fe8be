import { expect, test } from 'vitest'
import { isAsWide } from './as-wide.ts'
import type { Principal } from './principal.ts'

const wide: Principal = { id: 'lea', scopes: ['start', 'read', 'admin'], sees: ['lea', 'ann'] }

test.each<[string, Partial<Principal>]>([
  ['a scope less', { scopes: ['start', 'read'] }],
  ['an owner less', { sees: 'own' }],
  ['some agents only', { agents: ['echo'] }],
  ['less by one above it', { within: { ...wide, agents: ['echo'] } }],
])('who reaches %s is not as wide, and the other way round is', (_, less) => {
  const narrow = { ...wide, ...less }
  expect(isAsWide(narrow, wide)).toBe(false)
  expect(isAsWide(wide, narrow)).toBe(true)
  expect(isAsWide(narrow, narrow)).toBe(true)
})

test('lists of agents and owners are compared name by name', () => {
  const [some, more] = [
    { ...wide, agents: ['echo'] },
    { ...wide, agents: ['echo', 'review*'] },
  ]
  expect(isAsWide(more, some)).toBe(true)
  expect(isAsWide(some, more)).toBe(false)
  expect(isAsWide({ ...wide, sees: 'all' }, wide)).toBe(true)
  expect(isAsWide(wide, { ...wide, sees: 'all' })).toBe(false)
  expect(isAsWide({ ...wide, sees: ['ann'] }, { ...wide, sees: ['bob'] })).toBe(false)
})
