import { expect, test } from 'vitest'
import { withDashes } from './find-run.ts'

const id = '01a1de88-4321-79ec-b083-0809287dc468'

test('an ending is looked for as ids are stored, however it was typed', () => {
  for (let length = 1; length <= id.length; length++) {
    const ending = id.slice(-length)
    expect(id.endsWith(withDashes(ending)), ending).toBe(true)
    expect(id.endsWith(withDashes(ending.replaceAll('-', '').toUpperCase())), ending).toBe(true)
  }
  expect(withDashes('')).toBe('')
})
