import { StoreError } from '../../src/base/error.ts'
import { eachTree } from '../../src/graph/audit/tree-rows.ts'
import { Runtime } from '../../src/runtime.ts'
import type { Store } from '../../src/store/store.ts'
import { brokenGraph } from '../../src/testing/graph-laws.ts'

/** Every graph that a test has made is audited when the runtime that made it is closed: nothing may be wrong with it. */
const close = Runtime.prototype.close

Runtime.prototype.close = async function closeAudited(this: Runtime): Promise<void> {
  const wrong = isExempt(this.store) ? [] : findingsIn(this.store)
  await close.call(this)
  if (wrong.length > 0) throw new Error(`The audit has found:\n${wrong.slice(0, 20).join('\n')}`)
}

const exempt = new Set<Store>()

/** For a test that plants defects, or a store that is too large to be looked through. */
export function leaveUnaudited(store: Store): void {
  exempt.add(store)
}

function isExempt(store: Store): boolean {
  return exempt.has(store)
}

function findingsIn(store: Store): string[] {
  const wrong: string[] = []
  try {
    for (const tree of eachTree(store)) wrong.push(...brokenGraph(tree))
  } catch (error) {
    // Closed before, or broken on purpose.
    if (!StoreError.isInstance(error)) throw error
  }
  return wrong
}
