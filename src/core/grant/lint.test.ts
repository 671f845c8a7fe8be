import { describe, expect, test } from 'vitest'
import type { Grant } from './grant.ts'
import { lint } from './lint.ts'

describe('a rule that can never matter', () => {
  const messages = (grant: Grant) => lint(grant, []).map(({ problem, message }) => `${problem}: ${message}`)

  test.each<[string, Grant, string]>([
    ['deny before use', { use: ['tool:read'], deny: ['tool:r*'] }, 'use: tool:read … deny: tool:r* takes all of it'],
    ['ask before use', { use: ['tool:read'], ask: ['tool:read'] }, 'use: tool:read … ask: tool:read takes all of it'],
    ['deny before ask', { ask: ['tool:x'], deny: ['tool:*'] }, 'ask: tool:x … deny: tool:* takes all of it'],
    ['deny before delegate', { delegate: ['net:a'], deny: ['net:*'] }, 'delegate: net:a … deny: net:* takes all of it'],
    [
      'deny before free',
      { ask: ['tool:*'], free: ['tool:a'], deny: ['tool:a'] },
      'free: tool:a … deny: tool:a takes all of it',
    ],
    ['free without an ask', { use: ['tool:a'], free: ['tool:a'] }, 'free: tool:a … no rule of ask matches it'],
    [
      'free without a use',
      { use: ['agent:b'], ask: ['tool:*'], free: ['tool:a'] },
      'free: tool:a … use does not allow it',
    ],
    ['ask before delegate', { delegate: ['net:a'], ask: ['net:a'] }, 'delegate: net:a … ask: net:a takes all of it'],
    ['a wider one', { use: ['tool:ab', 'tool:a*'] }, 'use: tool:ab … tool:a* in the same list covers it'],
    ['a wider one before it', { use: ['tool:a*', 'tool:ab'] }, 'use: tool:ab … tool:a* in the same list covers it'],
    [
      'secrets of one name',
      { use: ['secret:*', 'secret:TOKEN'] },
      'use: secret:TOKEN … secret:* in the same list covers it',
    ],
    ['the same twice', { deny: ['exec:git', 'exec:git'] }, 'deny: exec:git … exec:git in the same list covers it'],
    [
      'a wider path',
      { use: ['file.*:/a/**', 'file.read:/a/b'] },
      'use: file.read:/a/b … file.*:/a/** in the same list covers it',
    ],
    [
      'any number of segments',
      { use: ['file.read:/a/**', 'file.read:/a/b/**'] },
      'use: file.read:/a/b/** … file.read:/a/** in the same list covers it',
    ],
    [
      'one segment of any number',
      { use: ['file.read:/a/**', 'file.read:/a/*'] },
      'use: file.read:/a/* … file.read:/a/** in the same list covers it',
    ],
  ])('%s', (_name, grant, told) => {
    expect(messages(grant)).toEqual([`never_matters: ${told.replace(' … ', ' can never matter: ')}.`])
  })

  test.each<[string, Grant]>([
    ['a list that is not there', {}],
    ['one rule', { use: ['tool:a'] }],
    ['use and delegate are two lists', { use: ['tool:a'], delegate: ['tool:a'] }],
    ['a narrower deny leaves some', { use: ['tool:*'], deny: ['tool:a'] }],
    ['a rule that is free in spite of an ask', { use: ['exec:npm test'], ask: ['exec:*'], free: ['exec:npm test'] }],
    ['an ask takes nothing from a deny', { ask: ['tool:*'], deny: ['tool:a'] }],
    ['a use takes nothing from an ask', { use: ['tool:*'], ask: ['tool:a'] }],
    ['another domain', { use: ['tool:a'], deny: ['agent:a'] }],
    ['a tool is no path', { use: ['tool:/a/b'], deny: ['file.*:/a/**'] }],
    ['another operation', { use: ['file.read:/a'], deny: ['file.write:/a'] }],
    ['one operation of four', { use: ['file.*:/a'], deny: ['file.read:/a'] }],
    ['one segment never covers any number of them', { use: ['file.read:/a/**'], deny: ['file.read:/a/*'] }],
    ['nor do several', { use: ['file.read:/a/**'], deny: ['file.read:/a/*/*'] }],
    ['nor what begins below', { use: ['file.read:/a/**'], deny: ['file.read:/a/**/b'] }],
    ['nor what leaves out the top', { use: ['file.read:/a/**'], deny: ['file.read:/a/*/**'] }],
    ['one segment is not all there are', { use: ['file.read:**'], deny: ['file.read:*'] }],
    ['nor is all that ends in a slash', { use: ['file.read:**'], deny: ['file.read:**/'] }],
    ['nor is a tail that only seems to fit', { use: ['file.read:/x/x/**'], deny: ['file.read:/**/x/*'] }],
    ['a star of a path stays in its segment', { use: ['file.read:/a/b/c'], deny: ['file.read:/a/*'] }],
    ['a secret is no host', { use: ['secret:TOKEN'], deny: ['net:*'] }],
    ['two that overlap', { use: ['tool:a*', 'tool:*b'] }],
  ])('not this: %s', (_name, grant) => {
    expect(messages(grant)).toEqual([])
  })
})

describe('of what is known', () => {
  const known = ['tool:read', 'agent:expert']

  test('a rule that matches none of it is told, in each list', () => {
    const grant = { use: ['tool:*', 'agent:*', 'tool:raed'], delegate: ['tool:x'], ask: ['agent:y'], deny: ['tool:z*'] }
    const found = lint(grant, known).filter(({ problem }) => problem === 'matches_nothing')

    expect(found).toEqual(
      ['use: tool:raed', 'delegate: tool:x', 'ask: agent:y', 'deny: tool:z*'].map((subject) => ({
        problem: 'matches_nothing',
        subject,
        message: `${subject} matches nothing that this agent has.`,
      })),
    )
  })

  test('all three problems of one grant are found together', () => {
    const grant = { use: ['tool:read', 'tool:r*', 'tool:write'] }

    expect(lint(grant, known).map(({ problem, subject }) => [problem, subject])).toEqual([
      ['never_matters', 'use: tool:read'],
      ['matches_nothing', 'use: tool:write'],
      ['never_allowed', 'agent:expert'],
    ])
  })

  test('a rule of a domain of which nothing is known is not', () => {
    expect(lint({ use: ['tool:*', 'agent:*', 'net:example.com', 'file.read:/x'] }, known)).toEqual([])
  })

  test('what no rule allows is told with the reason; what is asked for is not', () => {
    expect(lint({ use: ['tool:*'] }, known)).toEqual([
      {
        problem: 'never_allowed',
        subject: 'agent:expert',
        message: 'agent:expert is never allowed: no rule of this grant allows agent:expert.',
      },
    ])
    expect(lint({ use: ['tool:*'], ask: ['agent:expert'] }, known)).toEqual([])
    expect(lint({ deny: ['agent:*'] }, known)).toEqual([
      {
        problem: 'never_allowed',
        subject: 'agent:expert',
        message: 'agent:expert is never allowed: this grant denies agent:*.',
      },
    ])
  })
})
