import { expect, test } from 'vitest'
import { compareWords } from '../../web/pages/diff/words.ts'

const own = (text: string) => ({ text, isOwn: true })
const both = (text: string) => ({ text, isOwn: false })

test('marks the words that the other text lacks, and joins to the texts again', () => {
  const [one, two] = ['QUIC runs over UDP and is fast.', 'QUIC runs over UDP and keeps streams apart.']
  const [first, second] = compareWords(one, two)

  expect(first).toEqual([both('QUIC runs over UDP and '), own('is'), both(' '), own('fast'), both('.')])
  expect(
    second
      .filter(({ isOwn }) => isOwn)
      .map(({ text }) => text)
      .join(''),
  ).toBe('keepsstreams apart')
  expect(first.map(({ text }) => text).join('')).toBe(one)
  expect(second.map(({ text }) => text).join('')).toBe(two)
})

test('equal texts have no mark, and an empty one has no piece', () => {
  expect(compareWords('a b', 'a b')).toEqual([[both('a b')], [both('a b')]])
  expect(compareWords('', 'new')).toEqual([[], [own('new')]])
})

test('very long texts that differ are marked whole, at once', () => {
  const long = 'word '.repeat(20_000)
  const started = performance.now()
  expect(compareWords(long, `${long}!`)).toEqual([[own(long)], [own(`${long}!`)]])
  expect(performance.now() - started).toBeLessThan(2_000)
})
