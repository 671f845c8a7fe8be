import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { skipUnlessBuilt } from '../support/program.ts'

const bench = path.resolve(import.meta.dirname, '../../bench/server.mjs')

test('every measurement of the server works, and finds nothing lost', async ({ skip }) => {
  skipUnlessBuilt({ skip })
  const names = ['readers', 'runs', 'idle', 'drops', 'first', 'lists']
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [bench, ...names, '--small'], {
    timeout: 110_000,
  })

  expect(stderr).toBe('')
  for (const name of names) expect(stdout).toMatch(new RegExp(`^${name}$`, 'm'))
  expect(stdout.match(/gaps, doubled +0, 0$/gm)).toHaveLength(2)
  expect(stdout).toMatch(/lost, doubled, wrong texts +0, 0, 0$/m)
  expect(stdout).toMatch(/as legate log --json has it +true$/m)
  expect(stdout).toMatch(/text deltas +400$/m)
  expect(stdout).not.toMatch(/NaN|undefined/)
}, 120_000)
