import type { CrashOptions, OutsideCounter } from 'legate/testing'
import { isFull } from '../full.ts'
import { programFile } from '../program.ts'

/** Where the workers of a suite keep their rows, and how much of the suite is done there. */
export interface SuitePlace {
  /** For the names of its figures: empty for SQLite, else ` on ...`. */
  readonly on: string
  readonly counter: OutsideCounter
  readonly store: NonNullable<CrashOptions['store']>
  /** Only some of the cases, where the figures are not the full ones: another store does all of them. */
  readonly isSample: boolean
}

export const isSmall = ({ isSample }: SuitePlace): boolean => isSample && !isFull

/** The options of a case at this place. */
export function caseOptions({ counter, store }: SuitePlace, program: string): CrashOptions {
  // A database elsewhere answers later, and the machine may be busy.
  return { program: programFile(program), counter, store, timeoutMs: store === 'sqlite' ? 30_000 : 120_000 }
}
