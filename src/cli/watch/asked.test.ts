import { expect, test } from 'vitest'
import type { Node } from '../../index.ts'
import { callOf, wholeCallOf } from './asked.ts'

const node = (more: object) => ({ kind: 'agent_message', input: {}, metadata: {}, ...more }) as unknown as Node

test('who is asked to let a server be started sees which', () => {
  const about = { mcp: 'npx -y some-package', command: 'npx', args: ['-y', 'some-package'] }
  const asked = node({ metadata: { approval: { request: 'exec:npx', input: about } } })

  expect(wholeCallOf(asked)).toBe(`exec:npx ${JSON.stringify(about)}`)
  expect(callOf(asked)).toMatch(/^exec:npx .*some-package/)
})

test('a model that is asked for has no more to show than its name', () => {
  const asked = node({ metadata: { approval: { request: 'model:openai/gpt-5', input: null } } })

  expect([callOf(asked), wholeCallOf(asked)]).toEqual(['model:openai/gpt-5', 'model:openai/gpt-5'])
})

test('a node that waits for nothing is told by its kind', () => {
  expect(callOf(node({}))).toBe('agent_message')
})
