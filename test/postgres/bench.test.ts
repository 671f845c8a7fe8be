import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { noPostgres } from '../support/postgres.ts'
import { skipUnlessBuilt } from '../support/program.ts'

const bench = path.resolve(import.meta.dirname, '../../bench/dist/run.mjs')
const workers = process.env['LEGATE_FULL'] === '1' ? ['1', '2'] : ['2']
const SMALL = ['--seconds', '0.3', '--workers', workers.join(), '--parked', '10', '--wakes', '8']

test.skipIf(noPostgres !== undefined)(
  'every part of the benchmark on PostgreSQL works, and no conversation is left open',
  { timeout: 200_000 },
  async ({ skip }) => {
    skipUnlessBuilt({ skip })
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [bench, ...SMALL], { timeout: 190_000 })

    expect(stderr).toBe('')
    const parts = [...workers.map(() => 'p1'), 'p2', 'p2', 'p3', 'p4 park', 'p4 wait', 'p4 answer', 'p5']
    expect(stdout.match(/^p\d( \w+)?(?= +legate )/gm)).toEqual(parts)
    expect(stdout).toMatch(/^p4 answer +legate +1 +done 10 /m)
    expect(stdout).toMatch(/^p5 +legate +1 +wakes 8 +p50 -?[\d.]+ /m)
    const [, log] = /^p1 .* walKb ([\d.]+) /m.exec(stdout) ?? []
    expect(Number(log), 'KB of log that a delegation writes').toBeLessThan(20)
    expect(stdout).not.toMatch(/NaN|undefined| 0 +perSecond/)
  },
)
