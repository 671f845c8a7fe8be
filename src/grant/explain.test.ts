import { expect, test } from 'vitest'
import { explain } from './decide.ts'
import { type Layer, useLayer } from './grant.ts'

test('an explanation has every voice in words: a rule, the want of one, or nothing to say', () => {
  const layers = [
    useLayer('app', { use: ['tool:*'] }),
    useLayer('host', { use: ['model:openai/*', 'agent:*'], ask: ['model:openai/dear'] }),
    useLayer('worker', { use: ['model:small'] }),
  ]

  expect(explain(layers, 'model:openai/dear')).toEqual({
    verdict: 'deny',
    by: 'worker',
    reason: 'no rule of worker allows model:openai/dear',
    request: 'model:openai/dear',
    answers: [
      { by: 'app', verdict: 'allow', rule: null },
      { by: 'host', verdict: 'ask', rule: 'model:openai/dear' },
      { by: 'worker', verdict: 'deny', rule: null },
    ],
    text: [
      'model:openai/dear: deny, no rule of worker allows model:openai/dear',
      '  app: says nothing',
      '  host: ask by model:openai/dear',
      '  worker: deny, no rule allows it',
    ].join('\n'),
  })
})

test('all that is allowed is explained too', () => {
  expect(explain([useLayer('me', { use: ['tool:a*'] })], 'tool:ab').text).toBe(
    'tool:ab: allow, every layer allows it\n  me: allow by tool:a*',
  )
  expect(explain([], 'tool:ab').text).toBe('tool:ab: allow, every layer allows it')
})

test('a layer that cannot be read says deny, and the others are still heard', () => {
  const broken = { by: 'broken', allow: null, ask: [], deny: [] } as unknown as Layer

  expect(explain([useLayer('me', undefined), broken], 'tool:x')).toMatchObject({
    verdict: 'deny',
    by: null,
    reason: expect.stringMatching(/^the rules cannot be read: ./),
    answers: [
      { by: 'me', verdict: 'allow', rule: 'tool:*' },
      { by: 'broken', verdict: 'deny', rule: null },
    ],
    text: expect.stringContaining('\n  broken: deny, no rule allows it'),
  })
})
