import type { LocalStore } from '../../src/store/store.ts'

const unaudited = new WeakSet<LocalStore>()

/** For a test that plants defects, or a store that is too large to be looked through. */
export function leaveUnaudited(store: LocalStore): void {
  unaudited.add(store)
}

export function isUnaudited(store: LocalStore): boolean {
  return unaudited.has(store)
}
