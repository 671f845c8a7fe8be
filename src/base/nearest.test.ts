import { expect, test } from 'vitest'
import { nearest } from './options.ts'

const words = ['type', 'desc', 'instruct', 'chat_history']

test.each([
  ['typ', 'type'],
  ['tpye', 'type'],
  ['tipe', 'type'],
  ['dsec', 'desc'],
  ['instuct', 'instruct'],
  ['chatHistory', 'chat_history'],
])('%s is meant as %s', (written, word) => {
  expect(nearest(written, words)).toBe(word)
})

test('of two words that are near, the nearer one is meant', () => {
  expect(nearest('mdoels', ['model', 'models'])).toBe('models')
})

test.each(['type', 'ref', 'tips', 'instructions', '', 'x'.repeat(10_000)])(
  '%j is meant as it is written',
  (written) => {
    expect(nearest(written, words)).toBeUndefined()
  },
)
