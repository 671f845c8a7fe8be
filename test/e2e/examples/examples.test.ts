import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { runProgram, skipUnlessBuilt } from '../../support/program.ts'

const folder = path.resolve(import.meta.dirname, '../../../examples')
const examples = readdirSync(folder)
  .filter((file) => file.endsWith('.ts'))
  .sort()

test.each(examples)('%s is short', (file) => {
  expect(textOf(file).split('\n').length).toBeLessThanOrEqual(60)
})

describe('with the built package, in a process of its own', () => {
  beforeEach(skipUnlessBuilt)

  test.each(examples)('%s holds what it asserts, prints something, and its process ends by itself', async (file) => {
    expect(await runProgram(textOf(file))).not.toBe('')
  })
})

function textOf(file: string): string {
  return readFileSync(path.join(folder, file), 'utf8')
}
