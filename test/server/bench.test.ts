import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { skipUnlessBuilt } from '../support/program.ts'

const bench = path.resolve(import.meta.dirname, '../../bench/server.mjs')

test('every measurement of the server works, and finds nothing lost', async ({ skip }) => {
  skipUnlessBuilt({ skip })
  const names = ['readers', 'runs', 'idle', 'drops', 'first', 'lists']
  // They wait for most of their time.
  const shares = [names.slice(0, 3), names.slice(3)]
  const printed = await Promise.all(
    shares.map((share) => promisify(execFile)(process.execPath, [bench, ...share, '--small'], { timeout: 110_000 })),
  )
  const [stdout, stderr] = [printed.map((one) => one.stdout).join(''), printed.map((one) => one.stderr).join('')]

  expect(stderr).toBe('')
  for (const name of names) expect(stdout).toMatch(new RegExp(`^${name}$`, 'm'))
  expect(stdout.match(/gaps, doubled +0, 0$/gm)).toHaveLength(2)
  expect(stdout).toMatch(/lost, doubled, wrong texts +0, 0, 0$/m)
  expect(stdout).toMatch(/as legate log --json has it +true$/m)
  expect(stdout).toMatch(/text deltas +400$/m)
  expect(stdout).not.toMatch(/NaN|undefined/)
}, 120_000)
