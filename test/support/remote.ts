import type { Commit } from '../../src/core/graph/commit.ts'
import type { TreeReader } from '../../src/core/graph/reader.ts'
import type { Id } from '../../src/core/graph/rows.ts'
import type { LocalStore, Store } from '../../src/core/store/store.ts'
import type { Rows } from './stores.ts'

/** The reads of a store that may answer later. */
export const SCANS = [
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
] as const satisfies readonly (keyof LocalStore)[]

const behind = new WeakMap<Store, LocalStore>()

/** A store as one that is far away: everything it says comes later, and it gives one tree at a time. */
export function remoteStore(store: LocalStore): Store {
  const { name, shared, archive, registry } = store
  const far = {
    ...Object.fromEntries(SCANS.map((scan) => [scan, later((...asked: never[]) => (store[scan] as Ask)(...asked))])),
    name,
    shared,
    tree: later((rootId: Id) => oneTree(store, rootId)),
    commit: later((commit: Commit) => store.commit(commit)),
    ...(archive === undefined ? {} : { archive: allLater(archive) }),
    registry: allLater(registry),
    watch: (changed: Parameters<Store['watch']>[0]) => store.watch(changed),
    close: () => store.close(),
  } as unknown as Store
  behind.set(far, store)
  return far
}

/** A store on these rows, far away where they are. */
export function openStore(rows: Rows): Store {
  const store = rows.open()
  return rows.isRemote === true ? remoteStore(store) : store
}

/** The store behind a remote one. */
export function storeBehind(far: Store): LocalStore | undefined {
  return behind.get(far)
}

type Ask = (...asked: never[]) => unknown

function later<Asked extends never[]>(ask: (...asked: Asked) => unknown): (...asked: Asked) => Promise<unknown> {
  return async (...asked) => {
    await new Promise((resolve) => setImmediate(resolve))
    return ask(...asked)
  }
}

function allLater(part: object): object {
  return Object.fromEntries(Object.entries(part).map(([name, ask]) => [name, later(ask)]))
}

/** The rows of one tree and no others. */
function oneTree(store: LocalStore, rootId: Id): TreeReader {
  const own = <Row extends { readonly rootId: Id }>(row: Row | undefined) => (row?.rootId === rootId ? row : undefined)
  const only = <Row extends { readonly rootId: Id }>(rows: readonly Row[]) =>
    rows.filter((row) => row.rootId === rootId)
  return {
    conversation: (id) => own(store.conversation(id)),
    turn: (id) => own(store.turn(id)),
    node: (id) => own(store.node(id)),
    link: (id) => own(store.link(id)),
    body: store.body,
    edgesFrom: (id) => only(store.edgesFrom(id)),
    edgesTo: (id) => only(store.edgesTo(id)),
    nodesOf: (id) => only(store.nodesOf(id)),
    openNodes: (id) => only(store.openNodes(id)),
    openCount: (id) => only(store.openNodes(id)).length,
    nodeByKey: (turnId, kind, key) => own(store.nodeByKey(turnId, kind, key)),
    linksOf: (id) => only(store.linksOf(id)),
    linkAt: (id, ordinal) => own(store.linkAt(id, ordinal)),
    openLinks: (id) => only(store.openLinks(id)),
    turnsOf: (id, range) => only(store.turnsOf(id, range)),
    queuedTurn: (id) => own(store.queuedTurn(id)),
    lastSeq: (id) => (id === rootId ? store.lastSeq(id) : 0),
  }
}
