import { describe, expect, test } from 'vitest'
import { DefinitionError } from '../base/error.ts'
import { decide } from './decide.ts'
import { checkGrant, delegateLayer, type Grant, useLayer } from './grant.ts'

const where = 'agent "clerk"'

describe('a grant that could never mean what it says is refused', () => {
  test.each<[string, unknown, RegExp]>([
    ['an unknown key', { allow: ['tool:*'] }, /use, delegate, ask and deny, not "allow"/],
    ['a misspelt domain', { use: ['tols:search'] }, /"tols:search" must start with one of tool, agent, model/],
    ['an unknown domain', { use: ['database:read'] }, /"database:read"/],
    ['a domain in capitals', { deny: ['Tool:deploy'] }, /"Tool:deploy"/],
    ['no domain', { deny: ['deploy'] }, /"deploy" must start with/],
    ['only a domain', { use: ['tool'] }, /"tool" must start with/],
    ['only a colon', { use: [':search'] }, /":search"/],
    ['nothing after the colon', { deny: ['tool:'] }, /"tool:"/],
    ['a space after the colon', { deny: ['tool: deploy'] }, /"tool: deploy"/],
    ['a space at the end', { deny: ['tool:deploy '] }, /"tool:deploy "/],
    ['files without an operation', { use: ['file:/docs/**'] }, /"file:\/docs\/\*\*"/],
    ['an empty rule', { use: [''] }, /""/],
    ['a rule that is no text', { deny: [7] }, /7/],
    ['a rule that is null', { deny: [null] }, /null/],
    ['a text instead of a list', { deny: 'tool:deploy' }, /deny.*list/],
    ['an object instead of a list', { use: { tool: '*' } }, /use.*list/],
    ['a list instead of a grant', ['tool:*'], /./],
    ['a text instead of a grant', 'tool:*', /./],
  ])('%s', (_name, grant, message) => {
    const check = () => checkGrant(grant as Grant, where)

    expect(check).toThrow(DefinitionError)
    expect(check).toThrow(message)
    expect(check).toThrow(where)
  })

  test('and every rule that can is taken', () => {
    checkGrant({}, where)
    checkGrant({ use: [], delegate: [], ask: [], deny: [] }, where)
    checkGrant(
      {
        use: ['tool:*', 'tool:read_*', 'agent:Research Agent', 'model:openai/*', 'exec:git', 'net:*.example.com'],
        delegate: ['file.*:/workspace/**', 'file.read:/docs/**', 'file.list:/', 'file.delete:/tmp/**'],
        ask: ['file.write:/workspace/**'],
        deny: ['tool:deploy', 'agent:team:lead'],
      },
      where,
    )
  })
})

describe('the layers of a grant', () => {
  test('no grant is everything in the toolkit, to use and to pass on; files, programs and hosts need a rule', () => {
    for (const layer of [useLayer('me', undefined), delegateLayer('me', undefined), useLayer('me', {})]) {
      expect(decide([layer], 'tool', 'any').verdict).toBe('allow')
      expect(decide([layer], 'agent', 'any').verdict).toBe('allow')
      expect(decide([layer], 'model', 'openai/gpt-5').verdict).toBe('allow')
      for (const domain of ['file.read', 'file.write', 'exec', 'net']) {
        expect(decide([layer], domain, '/x').verdict).toBe('deny')
      }
    }
  })

  test('an empty use is nothing, to use and to pass on', () => {
    for (const layer of [useLayer('me', { use: [] }), delegateLayer('me', { use: [] })]) {
      expect(decide([layer], 'tool', 'any').verdict).toBe('deny')
      expect(decide([layer], 'agent', 'any').verdict).toBe('deny')
    }
  })

  test('delegate is use unless it is said, and says nothing of the agent’s own use', () => {
    expect(delegateLayer('me', { use: ['tool:a'] }).allow).toEqual(['tool:a'])
    expect(delegateLayer('me', { use: ['tool:a'], delegate: ['tool:b'] }).allow).toEqual(['tool:b'])
    expect(useLayer('me', { use: ['tool:a'], delegate: ['tool:b'] }).allow).toEqual(['tool:a'])
  })

  test('ask and deny bind both', () => {
    const grant: Grant = { ask: ['tool:a'], deny: ['tool:b'] }

    for (const layer of [useLayer('me', grant), delegateLayer('me', grant)]) {
      expect(decide([layer], 'tool', 'a').verdict).toBe('ask')
      expect(decide([layer], 'tool', 'b').verdict).toBe('deny')
      expect(decide([layer], 'tool', 'c').verdict).toBe('allow')
    }
  })

  test('are plain data: what a child keeps of them is the same after a restart', () => {
    const layer = delegateLayer('me', { use: ['tool:a'], ask: ['tool:b'], deny: ['tool:c'] })

    expect(JSON.parse(JSON.stringify(layer))).toEqual(layer)
  })
})
