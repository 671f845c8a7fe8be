import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { skipUnlessBuilt } from '../support/program.ts'

const bench = path.resolve(import.meta.dirname, '../../bench/sqlite.mjs')

test('every part of the benchmark on SQLite works: all runs are taken up, and nothing is found', async ({ skip }) => {
  skipUnlessBuilt({ skip })
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [bench, '--small'], { timeout: 110_000 })

  expect(stderr).toBe('')
  expect(stdout).toMatch(/^park +runs 80, ms each of the first [\d.]+, of the last [\d.]+$/m)
  expect(stdout).toMatch(/^resume +CPU ms \d+, longest stop ms \d+, heap MB \d+, open 100$/m)
  expect(stdout).toMatch(/^audit 4 .* nodes 400, findings 0$/m)
  expect(stdout).toMatch(/^audit 35 .* nodes 3500, findings 0$/m)
}, 120_000)
