import { type OutsideCounter, startCounter } from 'legate/testing'
import { afterAll } from 'vitest'
import { tempFolder } from '../../support/temp-folder.ts'

/** A counter for a whole suite. */
export async function useCounter(): Promise<OutsideCounter> {
  const counter = await startCounter(tempFolder(afterAll))
  afterAll(() => counter.stop())
  return counter
}
