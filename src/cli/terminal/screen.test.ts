import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { plainLine, Screen } from './screen.ts'

/** A terminal of which only the size and what was written are known. */
function terminal(columns: number, rows: number) {
  const stream = Object.assign(new PassThrough(), { columns, rows })
  stream.setEncoding('utf8')
  const screen = new Screen(stream as unknown as NodeJS.WriteStream)
  return { stream, screen, written: () => String(stream.read() ?? '') }
}

const lines = (...texts: readonly string[]) => texts.map(plainLine)

test('a frame writes the lines that changed and no others, in one write', () => {
  const { screen, written } = terminal(40, 10)
  screen.draw(lines('one', 'two', 'three'))
  written()

  screen.draw(lines('one', '2', 'three'))

  expect(written()).toBe('\u001b[?2026h\r\u001b[2A2\u001b[K\n\n\u001b[?2026l')
  screen.draw(lines('one', '2', 'three'))
  expect(written()).toBe('')
  screen.draw(lines('one'))
  expect(written()).toBe('\u001b[?2026h\r\u001b[2A\u001b[J\u001b[?2026l')
  screen.close()
})

test('after the terminal became narrower, the broken lines are gone over and drawn anew', () => {
  const { stream, screen, written } = terminal(40, 10)
  screen.draw(lines('x'.repeat(35), 'short'))
  written()
  stream.columns = 20

  screen.draw(lines('y', 'short'))

  expect(written()).toBe('\u001b[?2026h\r\u001b[3A\u001b[Jy\u001b[K\nshort\u001b[K\n\u001b[?2026l')
  screen.close()
})

test('the cursor is hidden while the screen is open, and back when it is closed, once', () => {
  const { screen, written } = terminal(40, 10)
  screen.draw(lines('one'))
  expect(written().startsWith('\u001b[?25l')).toBe(true)

  screen.close()
  screen.close()
  screen.print('later\n')

  expect(written()).toBe('\u001b[?25hlater\n')
})
