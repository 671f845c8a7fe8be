import { describe, expect, test } from 'vitest'
import { DefinitionError } from '../base/error.ts'
import { decide } from './decide.ts'
import { checkGrant, delegateLayer, EVERYTHING, type Grant, hasSameRules, runtimeLayers, useLayer } from './grant.ts'
import { readRequest } from './request.ts'

const where = 'agent "clerk"'

describe('a grant that could never mean what it says is refused', () => {
  test.each<[string, unknown, RegExp]>([
    ['an unknown key', { allow: ['tool:*'] }, /use, delegate, ask, free and deny, not "allow"/],
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
    ['a rule that is not a text', { deny: [7] }, /7/],
    ['a rule that is null', { deny: [null] }, /null/],
    ['a text instead of a list', { deny: 'tool:deploy' }, /deny.*list/],
    ['an object instead of a list', { use: { tool: '*' } }, /use.*list/],
    ['only spaces after the colon', { deny: ['tool:  '] }, /"tool: {2}" needs a pattern right after the colon/],
    ['a host with a port', { use: ['net:a.test:8080'] }, /"net:a.test:8080" has a port, .*: write net:a.test\./],
    ['an address', { deny: ['net:https://a.test/x'] }, /"net:https:.*" is more than a host: write net:a.test\./],
    ['a user of a host', { deny: ['net:me@a.test'] }, /is more than a host: write net:a.test\./],
    ['no host', { use: ['net:a b'] }, /"net:a b" names no host/],
    ['a quote that is open', { use: ["exec:echo it's"] }, /has a quote that is not closed/],
    ['a list instead of a grant', ['tool:*'], /use, delegate, ask, free and deny, not "0"/],
    ['a text instead of a grant', 'tool:*', /a grant is an object with lists of rules/],
    ['a number instead of a grant', 7, /a grant is an object with lists of rules/],
    ['nothing instead of a grant', null, /a grant is an object with lists of rules/],
  ])('%s', (_name, grant, message) => {
    const check = () => checkGrant(grant as Grant, where)

    expect(check).toThrow(DefinitionError)
    expect(check).toThrow(expect.objectContaining({ code: 'definition' }))
    expect(check).toThrow(message)
    expect(check).toThrow(where)
  })

  test('and every rule that can is taken', () => {
    checkGrant({}, where)
    checkGrant({ use: undefined } as object, where)
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
      expect(decide([layer], readRequest('tool:any')).verdict).toBe('allow')
      expect(decide([layer], readRequest('agent:any')).verdict).toBe('allow')
      expect(decide([layer], readRequest('model:openai/gpt-5')).verdict).toBe('allow')
      for (const domain of ['file.read', 'file.write', 'exec', 'net']) {
        expect(decide([layer], readRequest(`${domain}:/x`)).verdict).toBe('deny')
      }
    }
  })

  test('an empty use is nothing, to use and to pass on', () => {
    for (const layer of [useLayer('me', { use: [] }), delegateLayer('me', { use: [] })]) {
      for (const request of ['tool:a', 'agent:a', 'file.list:/a', 'file.read:/a', 'exec:a', 'net:a.test']) {
        expect(decide([layer], readRequest(request)).verdict).toBe('deny')
      }
      expect(decide([layer], readRequest('model:a/b')).verdict).toBe('allow')
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
      expect(decide([layer], readRequest('tool:a')).verdict).toBe('ask')
      expect(decide([layer], readRequest('tool:b')).verdict).toBe('deny')
      expect(decide([layer], readRequest('tool:c')).verdict).toBe('allow')
    }
  })

  test('what is passed on carries the budget of whoever passes it on, where there is one', () => {
    const layer = delegateLayer('me', { use: ['tool:a'] }, { modelCalls: 3 })

    expect(layer).toStrictEqual({ by: 'me', allow: ['tool:a'], ask: [], deny: [], budget: { modelCalls: 3 } })
    expect(delegateLayer('me', { use: ['tool:a'] })).toStrictEqual({ by: 'me', allow: ['tool:a'], ask: [], deny: [] })
  })

  test('of the application: none, its grant, or a budget alone, which denies nothing', () => {
    const plain = { by: 'the runtime', ask: [], deny: [] }

    expect(runtimeLayers(undefined, undefined)).toEqual([])
    expect(runtimeLayers({ use: [] }, undefined)).toStrictEqual([{ ...plain, allow: [], deny: ['model:*'] }])
    expect(runtimeLayers({ use: [], ask: ['tool:a'] }, undefined)).toStrictEqual([
      { ...plain, allow: [], ask: ['tool:a'] },
    ])
    expect(runtimeLayers({ use: ['tool:a'], ask: ['tool:b'], deny: ['tool:c'] }, { modelCalls: 2 })).toStrictEqual([
      { by: 'the runtime', allow: ['tool:a'], ask: ['tool:b'], deny: ['tool:c'], budget: { modelCalls: 2 } },
    ])
    expect(runtimeLayers(undefined, { modelCalls: 2 })).toStrictEqual([
      { ...plain, allow: EVERYTHING, budget: { modelCalls: 2 } },
    ])
    for (const domain of ['tool', 'agent', 'model', 'exec', 'net', 'file.read', 'file.delete']) {
      expect(decide(runtimeLayers(undefined, { modelCalls: 2 }), readRequest(`${domain}:/x`)).verdict).toBe('allow')
    }
  })

  test('say the same when holder and rules are equal, and not when one of them is another', () => {
    const layer = () => ({ by: 'me', allow: ['tool:a', 'tool:b'], ask: ['tool:c'], deny: ['tool:d'] })

    expect(hasSameRules(layer(), layer())).toBe(true)
    expect(hasSameRules(layer(), { ...layer(), budget: { modelCalls: 1 } })).toBe(true)
    const others: readonly object[] = [
      { by: 'you' },
      { allow: ['tool:a'] },
      { allow: ['tool:a', 'tool:b', 'tool:x'] },
      { allow: ['tool:a', 'tool:x'] },
      { allow: ['tool:b', 'tool:a'] },
      { ask: ['tool:x'] },
      { ask: [] },
      { deny: ['tool:x'] },
      { deny: [] },
    ]
    for (const other of others) {
      expect(hasSameRules(layer(), { ...layer(), ...other }), JSON.stringify(other)).toBe(false)
      expect(hasSameRules({ ...layer(), ...other }, layer()), JSON.stringify(other)).toBe(false)
    }
  })

  test('are plain data: what a child keeps of them is the same after a restart', () => {
    const layer = delegateLayer('me', { use: ['tool:a'], ask: ['tool:b'], deny: ['tool:c'] })

    expect(JSON.parse(JSON.stringify(layer))).toEqual(layer)
  })
})
