import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Later } from '../../core/base/maybe.ts'
import { code, flag, type OptionRules, readOptions, text } from '../../core/base/options.ts'
import type { Store } from '../../core/store/store.ts'
import { changeLaws, sharedChangeLaws } from './store-change-laws.ts'
import { commitLaws } from './store-commit-laws.ts'
import { durableLaws, exclusiveLaws, sharedLaws } from './store-durable-laws.ts'
import { ownerLaws } from './store-owner-laws.ts'
import { type Law, readLaws } from './store-read-laws.ts'
import { durableRegistryLaws, registryLaws, sharedRegistryLaws } from './store-registry-laws.ts'
import { durableRemoveLaws, removeLaws, sharedRemoveLaws } from './store-remove-laws.ts'
import { scanLaws } from './store-scan-laws.ts'
import { spentLaws } from './store-spent-laws.ts'
import { turnLaws } from './store-turn-laws.ts'

export interface StoreConformance<Kind extends Store = Store> {
  /** The name shown before every law. */
  readonly name: string
  /** Opens the store in this folder; new and empty the first time. */
  readonly open: (folder: string) => Later<Kind>
  /** Whether rows survive the process. */
  readonly durable: boolean
  /** Whether several processes may open the store at once. Default: as `durable`. */
  readonly shared?: boolean
  /**
   * Makes the store forget everything that is not in the rows, as a new process would. Default: a durable store is closed and
   * opened again, any other is read as it is.
   */
  readonly reopen?: (store: Kind) => Later<void>
  /** The `test` function of any test runner. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
}

const CONFORMANCE: OptionRules<StoreConformance> = {
  name: text,
  open: code,
  durable: flag,
  shared: flag,
  reopen: code,
  test: code,
}

/** Registers one test for each law that every store must keep. */
export function storeConformance<Kind extends Store>(options: StoreConformance<Kind>): void {
  const suite = readOptions('storeConformance()', options, CONFORMANCE) as StoreConformance<Kind>
  const { name, open, durable, shared = durable, test } = suite
  for (const law of [
    ...readLaws,
    ...scanLaws,
    ...ownerLaws,
    ...commitLaws,
    ...removeLaws,
    ...registryLaws,
    ...changeLaws,
    ...spentLaws,
    ...turnLaws,
  ]) {
    test(`${name}: ${law[0]}`, () => withStores(open, (openOne) => checkLaw(law, openOne, suite)))
  }
  if (!durable) return
  const handles = shared
    ? [...sharedLaws, ...sharedRemoveLaws, ...sharedRegistryLaws, ...sharedChangeLaws]
    : exclusiveLaws
  for (const [sentence, check] of [...durableLaws, ...durableRemoveLaws, ...durableRegistryLaws, ...handles]) {
    test(`${name}: ${sentence}`, () => withStores(open, check))
  }
}

async function checkLaw<Kind extends Store>(
  [, check]: Law,
  open: () => Promise<Kind>,
  { durable, reopen }: StoreConformance<Kind>,
): Promise<void> {
  let store = await open()
  await check(store, async () => {
    if (reopen !== undefined) {
      await reopen(store)
    } else if (durable) {
      await store.close()
      store = await open()
    }
    return store
  })
}

/**
 * Provides a function that opens stores in a new folder, then closes them all and removes the folder, whatever happens.
 */
async function withStores<Kind extends Store>(
  open: StoreConformance<Kind>['open'],
  use: (openOne: () => Promise<Kind>) => Promise<void>,
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
