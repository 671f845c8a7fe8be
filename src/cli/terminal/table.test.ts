import { afterEach, describe, expect, test, vi } from 'vitest'
import { tableText } from './table.ts'

const names = ['files', 'broken', 'lead', 'researcher', 'operator'].join(', ')

function show(): string {
  return (
    tableText([{ title: 'PID', isNumber: true }, { title: 'AGENTS' }], 'NOW', [['4711', names, 'lead']]).lines[0] ?? ''
  )
}

describe('a table', () => {
  afterEach(() => vi.unstubAllGlobals())

  test('is whole where no terminal cuts it', () => {
    vi.stubGlobal('process', { ...process, stdout: { isTTY: false } })
    expect(show()).toBe(`4711  ${names}  lead`)
  })

  test('cuts its columns in a terminal', () => {
    vi.stubGlobal('process', { ...process, stdout: { isTTY: true, columns: 80 } })
    expect(show()).toBe('4711  files, broken, lead, re…  lead')
  })
})
