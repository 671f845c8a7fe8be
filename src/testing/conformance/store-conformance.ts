import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../store/store.ts'
import { commitLaws } from './store-commit-laws.ts'
import { durableLaws, exclusiveLaws, sharedLaws } from './store-durable-laws.ts'
import { readLaws } from './store-read-laws.ts'
import { durableRemoveLaws, removeLaws, sharedRemoveLaws } from './store-remove-laws.ts'
import { scanLaws } from './store-scan-laws.ts'

export interface StoreConformance {
  /** Shown before every sentence. */
  readonly name: string
  /** Opens the store that lives in this folder, a new and empty one the first time. */
  readonly open: (folder: string) => Store | Promise<Store>
  /** Do rows survive the process? */
  readonly durable: boolean
  /** May several processes open them at once? Default: as `durable`. */
  readonly shared?: boolean
  /** The `test` of any runner. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
}

/** What every store must fulfil, one test a sentence. */
export function storeConformance({ name, open, durable, shared = durable, test }: StoreConformance): void {
  for (const [sentence, check] of [...readLaws, ...scanLaws, ...commitLaws, ...removeLaws]) {
    test(`${name}: ${sentence}`, () => withStores(open, async (openOne) => check(await openOne())))
  }
  if (!durable) return
  const handles = shared ? [...sharedLaws, ...sharedRemoveLaws] : exclusiveLaws
  for (const [sentence, check] of [...durableLaws, ...durableRemoveLaws, ...handles]) {
    test(`${name}: ${sentence}`, () => withStores(open, check))
  }
}

/** Gives a way to open stores in a new folder; closes them all and removes the folder, whatever happens. */
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
