import type { Store } from '../../src/core/store/store.ts'

const unaudited = new WeakSet<Store>()

/** For a test that plants defects, or a store that is too large to be looked through. */
export function leaveUnaudited(store: Store): void {
  unaudited.add(store)
}

export function isUnaudited(store: Store): boolean {
  return unaudited.has(store)
}
