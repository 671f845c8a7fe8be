import { expect, test } from 'vitest'
import { ErrorOutput } from './error-output.ts'

function kept(...chunks: readonly string[]): string {
  const output = new ErrorOutput()
  for (const chunk of chunks) output.add(chunk)
  return output.text
}

const FRAMES = Array.from({ length: 60 }, (_, n) => `    at load (/srv/node_modules/some-package/lib/part-${n}.js:1:1)`)

test('the line that says why comes before everything that was tried, and frames of a stack are left out', () => {
  const tried = Array.from({ length: 30 }, (_, n) => ` → /srv/node_modules/native/build/${'x'.repeat(60)}/${n}.node`)
  const words = ['/srv/index.js:10', '  throw e', '  ^', '', 'Error: Could not locate the file. Tried:', ...tried]
  const said = kept([...words, ...FRAMES, '', 'Node.js v20.20.2', ''].join('\n'))

  expect(said).toMatch(/^\/srv\/index\.js:10\n\s+throw e\nError: Could not locate the file\. Tried:/)
  expect(said).toMatch(/Node\.js v20\.20\.2$/)
  expect(said).not.toContain('at load')
  expect(said.length).toBeLessThan(2_600)
})

test('a cause between a long log and a long end is shown', () => {
  const log = (word: string) => Array.from({ length: 100 }, (_, n) => `${word} ${n} ${'.'.repeat(30)}`).join('\n')
  const said = kept(`${log('starting')}\nFatal: the database is locked\n${log('closing')}\n`)

  expect(said).toMatch(/^starting 0 .*\.\.\. Fatal: the database is locked\n\.\.\. closing.*closing 99 \.+$/s)
})

test('lines come whole out of pieces, a last line without an end counts, and little is said as it is', () => {
  expect(kept('could not rea', 'ch the database\nTry', ' later')).toBe('could not reach the database\nTry later')
  expect(kept('')).toBe('')
  expect(kept('Traceback (most recent call last):\n', '  File "a.py", line 3, in <module>\nKeyError: x\n')).toBe(
    'Traceback (most recent call last):\nKeyError: x',
  )
})

test('I10: a flood without line ends costs a few kilobytes, and time that grows with its length only', () => {
  const output = new ErrorOutput()
  const since = performance.now()
  for (let count = 0; count < 20_000; count++) output.add('x'.repeat(1_000))
  for (let count = 0; count < 200_000; count++) output.add(`error ${count}\n`)

  expect(performance.now() - since).toBeLessThan(5_000)
  expect(output.text.length).toBeLessThan(3_000)
  expect(output.text).toMatch(/error 199999$/)
})
