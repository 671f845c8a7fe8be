import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram, skipUnlessBuilt } from '../../support/program.ts'
import { snippetsIn } from './snippets.ts'

const readme = readFileSync(path.resolve(import.meta.dirname, '../../../README.md'), 'utf8')

test('the example of the README is short, runs, and prints what it says', async (context) => {
  skipUnlessBuilt(context)
  const [example, ...others] = snippetsIn('README.md')
  if (example === undefined) throw new Error('README.md has no example')

  expect(others).toEqual([])
  const lines = example.code.trim().split('\n')
  expect(lines.filter((line) => !line.startsWith('// > ')).length).toBeLessThanOrEqual(20)
  expect(await runProgram(example.code)).toBe(example.prints)
})

test('the README is one page and has the two commands', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(120)
  expect(readme).toContain('npm install && npm run demo\n')
  expect(readme).toContain('npm install && npm test\n')
})
