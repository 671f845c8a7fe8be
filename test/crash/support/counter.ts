import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type OutsideCounter, startCounter } from 'legate/testing'
import { afterAll } from 'vitest'

/** A counter for a whole suite. */
export async function useCounter(): Promise<OutsideCounter> {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-counter-'))
  const counter = await startCounter(folder)
  afterAll(async () => {
    await counter.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return counter
}
