import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { jsonStore } from '../../src/stores/json/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { until } from '../support/process.ts'

describe.each([
  ['sqlite', (disk: string) => sqliteStore(path.join(disk, 'rows.db'))],
  ['json', (disk: string) => jsonStore(path.join(disk, 'rows'))],
] as const)('a full disk (%s)', (_, open) => {
  let disk = ''
  let isMounted = false
  beforeEach(() => {
    disk = mkdtempSync(path.join(tmpdir(), 'legate-disk-'))
    isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk]).status === 0
  })
  afterEach(() => {
    if (isMounted) spawnSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true, force: true })
  })

  const start = (text: string) => {
    const reports: string[] = []
    const ignore = () => undefined
    const logger = { debug: ignore, info: ignore, warn: ignore, error: (said: string) => void reports.push(said) }
    const store = open(disk)
    const runtime = createRuntime({ store, logger, engine: { sweepMs: 50, graceMs: 50 } })
    const model = scriptedModel((_request, call) => {
      if (call === 0) leave(100_000)
      return text
    })
    return { store, runtime, reports, model, clerk: agent({ name: 'clerk', instructions: 'Work.', model }) }
  }
  /** So many bytes are left. */
  const leave = (bytes: number) => {
    const { bavail, bsize } = statfsSync(disk)
    writeFileSync(filler(), Buffer.alloc(Math.max(0, bavail * bsize - bytes)))
  }
  const filler = () => path.join(disk, 'filler')
  const isTold = (reports: readonly string[]) => reports.some((said) => said.includes('is full'))

  test('I3: the answer waits for room; the model is asked once, and the run completes', async ({ skip }) => {
    if (!isMounted) skip('no file system can be mounted here')
    const { store, runtime, reports, model, clerk } = start('x'.repeat(1_000_000))
    const run = runtime.run(clerk, 'go')
    await until('it is told', () => isTold(reports))
    await sleep(1_500)

    expect(model.requests).toHaveLength(1)
    expect(store.turn(run.id)?.state).toBe('running')
    rmSync(filler())

    expect(await run.result).toMatchObject({ status: 'completed' })
    expect(model.requests).toHaveLength(1)
    expect(reports.filter((said) => said.includes('is full'))).toHaveLength(1)
    await runtime.close()
  })

  test('I3: what a process left on a full disk goes on in the next one', async ({ skip }) => {
    if (!isMounted) skip('no file system can be mounted here')
    const first = start('x'.repeat(1_000_000))
    const run = first.runtime.run(first.clerk, 'go')
    run.result.catch(() => undefined)
    await until('it is told', () => isTold(first.reports))
    await first.runtime.close().catch(() => undefined)
    expect(first.model.requests).toHaveLength(1)
    expect(existsSync(filler())).toBe(true)
    rmSync(filler())

    const second = createRuntime({ store: open(disk), agents: [first.clerk] })
    const [resumed] = await second.resume()

    expect(resumed?.id).toBe(run.id)
    expect((await resumed?.result)?.status).toBe('completed')
    await second.close()
  })
})
