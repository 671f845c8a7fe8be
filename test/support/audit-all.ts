import fc from 'fast-check'
import { eachTree } from '../../src/core/audit/load-tree.ts'
import { StoreError } from '../../src/core/base/error.ts'
import { readTrees, type StoreReader } from '../../src/core/graph/reader.ts'
import { Runtime } from '../../src/core/runtime/runtime.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { brokenGraph } from '../../src/testing/crash/aftermath.ts'
import { localStore } from './rows.ts'
import { isUnaudited } from './unaudited.ts'

// The same cases at each run of `npm test`; new ones in full, where a failure prints its seed.
if (process.env['LEGATE_FULL'] !== '1') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 17 })

/** Every graph that a test has made is audited when the runtime that made it is closed: nothing may be wrong with it. */
const close = Runtime.prototype.close

// This file runs before each file of tests, and a worker runs many of them.
if (close.name !== 'closeAudited') {
  Runtime.prototype.close = async function closeAudited(this: Runtime): Promise<void> {
    const store = localStore(this)
    const wrong = isUnaudited(store) ? [] : store.known === undefined ? findingsIn(store) : await findingsFar(store)
    await close.call(this)
    if (wrong.length > 0) throw new Error(`The audit has found:\n${wrong.slice(0, 20).join('\n')}`)
  }
}

function findingsIn(store: LocalStore): string[] {
  const wrong: string[] = []
  try {
    for (const tree of readTrees(store)) wrong.push(...brokenGraph(tree))
  } catch (error) {
    // Closed before, or broken on purpose.
    if (!StoreError.isInstance(error)) throw error
  }
  return wrong
}

/** The same for a store that answers later. */
async function findingsFar(store: StoreReader): Promise<string[]> {
  const wrong: string[] = []
  try {
    for await (const tree of eachTree(store)) wrong.push(...brokenGraph(tree))
  } catch (error) {
    if (!StoreError.isInstance(error)) throw error
  }
  return wrong
}
