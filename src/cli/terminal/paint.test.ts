import { expect, test } from 'vitest'
import { painter } from './paint.ts'

const terminal = { isTTY: true }

test('colours are for terminals, or forced, and only where nobody objects', () => {
  expect(painter(terminal, {})('red', 'text')).toBe('\u001b[31mtext\u001b[39m')
  expect(painter({}, {})('red', 'text')).toBe('text')
  expect(painter({}, { FORCE_COLOR: '1' })('red', 'text')).not.toBe('text')
  expect(painter(terminal, { FORCE_COLOR: '0' })('red', 'text')).toBe('text')
  expect(painter(terminal, { NO_COLOR: '1' })('red', 'text')).toBe('text')
  expect(painter(terminal, { NO_COLOR: '1', FORCE_COLOR: '1' })('red', 'text')).toBe('text')
  expect(painter(terminal, { NO_COLOR: '' })('red', 'text')).not.toBe('text')
  expect(painter(terminal, { TERM: 'dumb' })('red', 'text')).toBe('text')
})
