import { expect, test } from 'vitest'
import { DEFAULT_LIMITS } from '../../core/graph/limits.ts'
import { costBound } from './first-request.ts'

test('beside the most that a run may cost stands what a short run costs', () => {
  const { usd, how } = costBound('openai/gpt-5', { limits: DEFAULT_LIMITS, spend: null })
  expect(usd).toBeGreaterThan(10)
  expect(how).toMatch(
    /^25 calls that each fill \d+ tokens; .* 5 calls with 8000 tokens in and 800 out cost about \$0\.09/,
  )
})
