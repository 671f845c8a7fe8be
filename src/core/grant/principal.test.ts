import { expect, test } from 'vitest'
import {
  checkPrincipal,
  countedIds,
  hasScope,
  isOperator,
  looksAfter,
  mayApprove,
  maySee,
  mayStart,
  narrowPrincipal,
  ownersSeenBy,
  type Principal,
  principalLayers,
  seesEverything,
} from './principal.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read', 'approve'] }
const admin: Principal = { id: 'root', scopes: ['start', 'read', 'approve', 'admin'], sees: 'all' }

test.each([
  [{ scopes: ['read'] }, 'id must be a text'],
  [{ id: ' ', scopes: ['read'] }, 'id must be a text'],
  [{ id: 'ann' }, 'scopes must be a list'],
  [{ id: 'ann', scopes: ['raed'] }, '"raed" is no scope'],
  [{ id: 'ann', scopes: ['read'], sees: 'all' }, 'needs the scope admin or audit'],
  [{ id: 'ann', scopes: ['read'], sees: 'others' }, 'sees must be'],
  [{ id: 'ann', scopes: [], grant: { delegate: ['tool:*'] } }, 'not delegate'],
  [{ id: 'ann', scopes: [], grant: { deny: ['publish'] } }, 'publish'],
  [{ id: 'ann', scopes: [], budget: { turns: 5 } }, 'budget'],
  [{ id: 'ann', scopes: [], perDay: { euros: 5 } }, 'euros'],
  [{ id: 'ann', scopes: [], mayApprove: { notown: true } }, 'notOwn'],
  [{ id: 'ann', scopes: [], mayApprove: { requests: ['deploy'] } }, 'deploy'],
  [{ id: 'ann', scopes: [], agent: ['x'] }, 'agents'],
])('the principal %j is refused: %s', (given, words) => {
  expect(() => checkPrincipal(given as unknown as Principal)).toThrow(words)
})

test('a principal within another can do at most what both may', () => {
  const outer: Principal = { ...ann, agents: ['review*'], sees: ['ann', 'bob'], mayApprove: { requests: ['tool:*'] } }
  const inner = narrowPrincipal(outer, {
    id: 'ann',
    scopes: ['start', 'read'],
    agents: ['review-code', 'deploy'],
    sees: ['bob', 'eve'],
    mayApprove: { requests: ['tool:deploy', 'exec:*'] },
  })

  expect(hasScope(inner, 'start')).toBe(true)
  expect(hasScope(inner, 'approve')).toBe(false)
  expect([mayStart(inner, 'review-code'), mayStart(inner, 'review-text'), mayStart(inner, 'deploy')]).toEqual([
    true,
    false,
    false,
  ])
  expect(ownersSeenBy(inner)).toEqual(['bob'])
  expect([maySee(inner, 'bob'), maySee(inner, 'eve'), maySee(inner, 'ann'), maySee(inner, null)]).toEqual([
    true,
    false,
    false,
    false,
  ])
  expect(mayApprove(inner, 'tool:deploy', ['bob'])).toBe(true)
  expect(mayApprove(inner, 'exec:ls', ['bob'])).toBe(false)
  expect(mayApprove(inner, 'tool:other', ['bob'])).toBe(false)
})

test('only an admin makes a principal of another id, and nobody gives a scope that it lacks', () => {
  expect(() => narrowPrincipal(ann, { id: 'bob', scopes: ['read'] })).toThrow('scope admin')
  expect(() => narrowPrincipal(ann, { id: 'ann', scopes: ['delete'] })).toThrow('cannot give the scope delete')
  const bob = narrowPrincipal(admin, { id: 'bob', scopes: ['read'] })
  expect([maySee(bob, 'bob'), maySee(bob, 'ann'), maySee(bob, null)]).toEqual([true, false, false])
})

test('what nobody owns is seen only by those who see all', () => {
  expect([maySee(ann, null), maySee(admin, null)]).toEqual([false, true])
  expect([ownersSeenBy(ann), ownersSeenBy(admin)]).toEqual([['ann'], 'all'])
})

test('four eyes: nobody approves requests of its own conversations', () => {
  const careful: Principal = { ...admin, mayApprove: { notOwn: true } }
  expect([mayApprove(careful, 'tool:deploy', ['ann']), mayApprove(careful, 'tool:deploy', ['root'])]).toEqual([
    true,
    false,
  ])
})

test('a right to approve that says nothing of models allows none', () => {
  const tools: Principal = { ...admin, mayApprove: { requests: ['tool:*'] } }
  expect(mayApprove(tools, 'model:openai/gpt-5', ['ann'])).toBe(false)
})

test('every principal of the line that says something is a layer', () => {
  const outer: Principal = { ...ann, grant: { deny: ['tool:publish'] }, perDay: { runs: 3 } }
  const inner = narrowPrincipal(outer, { id: 'ann', scopes: [], budget: { modelCalls: 2 } })

  const layers = principalLayers(inner)

  expect(layers.map(({ by }) => by)).toEqual(['the principal ann', 'the principal ann'])
  expect(layers[0]?.budget).toEqual({ modelCalls: 2 })
  expect(layers[1]).toMatchObject({ deny: ['tool:publish'], perDay: { owner: 'ann', runs: 3 } })
  expect(layers.map(({ principal }) => principal)).toEqual(['ann', undefined])
  expect(principalLayers(ann)).toMatchObject([{ principal: 'ann', deny: [] }])
})

test('the day of everybody above binds, each under its own id', () => {
  const outer: Principal = { ...admin, perDay: { runs: 3 } }
  const inner = narrowPrincipal(outer, { id: 'bob', scopes: [], perDay: { runs: 9 } })

  expect(principalLayers(inner).map(({ perDay }) => perDay)).toEqual([
    { owner: 'bob', runs: 9 },
    { owner: 'root', runs: 3 },
  ])
})

test('whoever is of some agents, here or above, sees not everything and looks after no owner', () => {
  const narrow = narrowPrincipal({ ...admin, agents: ['review*'] }, { ...admin, agents: ['review*'] })
  const below = narrowPrincipal({ ...admin, agents: ['review*'] }, admin)
  expect([admin, narrow, below].map(seesEverything)).toEqual([true, false, false])
  expect([admin, narrow, below].map((one) => looksAfter(one, 'bob'))).toEqual([true, false, false])
  expect([ann, { ...admin, sees: ['bob'] }].map((one) => looksAfter(one, 'bob'))).toEqual([false, true])
  expect([admin, ann, { ...admin, sees: ['bob'] }, below].map(isOperator)).toEqual([true, false, false, false])
})

test('what somebody does counts for the ids of all who made it, up to an operator', () => {
  const lea: Principal = { id: 'lea', scopes: ['read', 'admin'], sees: ['lea', 'bob'] }
  const ofOperator = narrowPrincipal(admin, lea)
  const bob = narrowPrincipal(ofOperator, { id: 'bob', scopes: ['read'] })
  const narrower = narrowPrincipal(bob, { id: 'bob', scopes: [] })

  expect(countedIds(admin)).toEqual(['root'])
  expect(countedIds(ofOperator)).toEqual(['lea'])
  expect(countedIds(bob)).toEqual(['bob', 'lea'])
  expect(countedIds(narrower)).toEqual(['bob', 'lea'])
})
