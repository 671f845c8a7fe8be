import { expect, test } from 'vitest'
import { ruleText } from './approvals.ts'

test('a rule names the request once', () => {
  expect(ruleText('operator asks for tool:deploy', 'tool:deploy')).toBe('operator asks for tool:deploy')
  expect(ruleText('operator asks for tool:*', 'tool:deploy')).toBe('operator asks for tool:*, for tool:deploy')
})
