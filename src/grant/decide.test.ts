import { describe, expect, test } from 'vitest'
import { decide } from './decide.ts'
import type { Layer } from './grant.ts'

describe('a decision', () => {
  const allowing = (...allow: string[]): Layer => ({ by: 'me', allow, ask: [], deny: [] })

  test('without layers allows', () => {
    expect(decide([], 'tool', 'x')).toMatchObject({ verdict: 'allow', by: null })
  })

  test('without a rule denies, and says so', () => {
    expect(decide([allowing('tool:search')], 'tool', 'deploy')).toEqual({
      verdict: 'deny',
      by: 'me',
      reason: 'no rule of me allows tool:deploy',
    })
  })

  test('names the layer and the rule that decided', () => {
    const strict: Layer = { by: 'boss', allow: ['tool:*'], ask: ['tool:d*'], deny: ['tool:deploy'] }

    expect(decide([allowing('tool:*'), strict], 'tool', 'deploy').reason).toBe('boss denies tool:deploy')
    expect(decide([allowing('tool:*'), strict], 'tool', 'draw')).toMatchObject({
      verdict: 'ask',
      by: 'boss',
      reason: 'boss asks for tool:d*',
    })
  })

  test('deny beats ask, ask beats allow, within one layer', () => {
    const all: Layer = { by: 'me', allow: ['tool:*'], ask: ['tool:*'], deny: ['tool:x'] }

    expect(decide([all], 'tool', 'x').verdict).toBe('deny')
    expect(decide([all], 'tool', 'y').verdict).toBe('ask')
  })

  test('a rule of one domain says nothing of another', () => {
    expect(decide([allowing('agent:search')], 'tool', 'search').verdict).toBe('deny')
    expect(decide([allowing('tool:*')], 'toolbox', 'x').verdict).toBe('deny')
    expect(decide([allowing('file.read:**')], 'file.write', '/x').verdict).toBe('deny')
    expect(decide([allowing('file.*:/x/**')], 'file.write', '/x/y').verdict).toBe('allow')
    expect(decide([allowing('file.*:**')], 'tool', 'x').verdict).toBe('deny')
  })

  test('a layer without a rule for models says nothing of them; one with a rule does', () => {
    expect(decide([allowing('tool:*')], 'model', 'openai/gpt').verdict).toBe('allow')
    expect(decide([allowing()], 'model', 'openai/gpt').verdict).toBe('allow')
    expect(decide([allowing('model:openai/*')], 'model', 'openai/gpt').verdict).toBe('allow')
    expect(decide([allowing('model:openai/*')], 'model', 'other/gpt').verdict).toBe('deny')
    expect(decide([{ ...allowing(), deny: ['model:openai/*'] }], 'model', 'openai/gpt').verdict).toBe('deny')
  })

  test('a name that holds a colon is matched as a whole', () => {
    expect(decide([allowing('agent:team:lead')], 'agent', 'team:lead').verdict).toBe('allow')
    expect(decide([allowing('agent:team:lead')], 'agent', 'team').verdict).toBe('deny')
  })
})
