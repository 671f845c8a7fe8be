import type { LocalStore, Store } from '../../src/core/store/store.ts'
import type { Rows } from './stores.ts'
/** The reads of a store that may answer later. */
export declare const SCANS: readonly [
  'runnable',
  'overdue',
  'unstopped',
  'awaiting',
  'timed',
  'claimedBy',
  'claimants',
  'engines',
  'engine',
  'nextDue',
  'events',
  'blocks',
  'roots',
  'conversations',
  'findIds',
  'openTurns',
  'openRoots',
  'rootOf',
  'ownerOf',
  'changes',
  'usage',
]
/** A store as one that is far away: everything it says comes later, and it gives one tree at a time. */
export declare function remoteStore(store: LocalStore): Store
/** A store on these rows, far away where they are. */
export declare function openStore(rows: Rows): Store
/** The store behind a remote one. */
export declare function storeBehind(far: Store): LocalStore | undefined
