import { expect, test } from 'vitest'
import { line, painter } from './view.ts'

const terminal = { isTTY: true }

test('colours are for terminals, and only where nobody objects', () => {
  expect(painter(terminal, {})('red', 'text')).toBe('\u001b[31mtext\u001b[0m')
  expect(painter({}, {})('red', 'text')).toBe('text')
  expect(painter(terminal, { NO_COLOR: '1' })('red', 'text')).toBe('text')
  expect(painter(terminal, { NO_COLOR: '' })('red', 'text')).not.toBe('text')
  expect(painter(terminal, { TERM: 'dumb' })('red', 'text')).toBe('text')
})

test('a line says when, who and what', () => {
  expect(line(painter({}, {}), 1_234, ['lead', 'delegates'])).toBe('  1.2 s  lead          delegates\n')
})
