import { expect, test } from 'vitest'
import { questionLines } from './request-text.ts'

const prompt = 'Allow? y or n'

test('a question that fits is shown whole, the keys below it', () => {
  expect(questionLines({ text: 'May I go there now?', prompt }, 14, 5)).toEqual(['May I go there', 'now?', prompt])
})

test('of one that does not fit it is said how much is hidden, and the keys stay', () => {
  const text = 'x'.repeat(500)

  expect(questionLines({ text, prompt }, 60, 4)).toEqual([
    'x'.repeat(60),
    'x'.repeat(60),
    '… 380 more characters: legate approvals shows all',
    prompt,
  ])
  expect(questionLines({ text, prompt }, 60, 1)).toEqual(['… 500 more characters: legate approvals shows all', prompt])
})
