import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { code, flag, type OptionRules, readOptions, text } from '../../base/options.ts'
import type { Store } from '../../store/store.ts'
import { commitLaws } from './store-commit-laws.ts'
import { durableLaws, exclusiveLaws, sharedLaws } from './store-durable-laws.ts'
import { readLaws } from './store-read-laws.ts'
import { durableRemoveLaws, removeLaws, sharedRemoveLaws } from './store-remove-laws.ts'
import { scanLaws } from './store-scan-laws.ts'

export interface StoreConformance {
  /** The name shown before every law. */
  readonly name: string
  /** Opens the store in this folder; new and empty the first time. */
  readonly open: (folder: string) => Store | Promise<Store>
  /** Whether rows survive the process. */
  readonly durable: boolean
  /** Whether several processes may open the store at once. Default: as `durable`. */
  readonly shared?: boolean
  /** The `test` function of any test runner. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
}

const CONFORMANCE: OptionRules<StoreConformance> = { name: text, open: code, durable: flag, shared: flag, test: code }

/** Registers one test for each law that every store must keep. */
export function storeConformance(options: StoreConformance): void {
  const { name, open, durable, shared = durable, test } = readOptions('storeConformance()', options, CONFORMANCE)
  for (const [sentence, check] of [...readLaws, ...scanLaws, ...commitLaws, ...removeLaws]) {
    test(`${name}: ${sentence}`, () => withStores(open, async (openOne) => check(await openOne())))
  }
  if (!durable) return
  const handles = shared ? [...sharedLaws, ...sharedRemoveLaws] : exclusiveLaws
  for (const [sentence, check] of [...durableLaws, ...durableRemoveLaws, ...handles]) {
    test(`${name}: ${sentence}`, () => withStores(open, check))
  }
}

/**
 * Provides a function that opens stores in a new folder, then closes them all and removes the folder, whatever happens.
 */
async function withStores(
  open: StoreConformance['open'],
  use: (openOne: () => Promise<Store>) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'legate-store-'))
  const opened: Store[] = []
  try {
    await use(async () => {
      const store = await open(folder)
      opened.push(store)
      return store
    })
  } finally {
    for (const store of opened) await store.close()
    await rm(folder, { recursive: true, force: true })
  }
}
