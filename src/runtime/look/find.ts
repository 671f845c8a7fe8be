import { isLegateError } from '../../base/error.ts'
import type { StoredBlock } from '../../graph/commit.ts'
import type { EventRow } from '../../graph/event.ts'
import { unlessTampered } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import type { Tombstone } from '../../store/archive.ts'
import { look } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'
import type { SeenLists } from './seen-lists.ts'
import { readTreeData, type TreeData } from './tree-data.ts'

/** The ids that have a certain ending. */
export interface FoundIds {
  readonly found: readonly { readonly id: Id; readonly type: 'conversation' | 'turn' | 'node' }[]
  /** The newest deleted tree that had such an id, and the id; null where something was found, or there is none. */
  readonly deleted: { readonly id: Id; readonly tombstone: Tombstone } | null
}

/** Which trees to list. */
export interface TreesQuery {
  /** The most trees. */
  readonly limit: number
  /** Only those of this owner. */
  readonly owner?: string
  /** Only those made before this one. */
  readonly before?: Id
  /** Only those with an open run, in the root or in a lane. */
  readonly isOpen?: boolean
}

/** Recorded events of a tree, and the blocks of its running nodes. */
export interface TreeEvents {
  readonly events: readonly EventRow[]
  readonly blocks: readonly StoredBlock[]
}

const MOST_FOUND = 100

/** Finds ids by their ending in the whole store. */
export async function findIds(store: Store, ending: string): Promise<FoundIds> {
  const found = await store.findIds(ending, MOST_FOUND)
  return { found, deleted: found.length > 0 ? null : await findDeleted(store, ending) }
}

/** Finds ids by their ending in some trees. */
export function findIn(trees: readonly TreeData[], ending: string): FoundIds {
  const ids = (type: FoundIds['found'][number]['type'], rows: readonly { readonly id: Id }[]) =>
    rows.flatMap(({ id }) => (id.endsWith(ending) ? [{ id, type }] : []))
  const found = trees.flatMap(({ conversations, turns, nodes }) => [
    ...ids('conversation', conversations),
    ...ids('turn', turns),
    ...ids('node', nodes),
  ])
  return { found: found.slice(0, MOST_FOUND), deleted: null }
}

async function findDeleted(store: Store, ending: string): Promise<FoundIds['deleted']> {
  for (const tombstone of [...((await store.archive?.tombstones()) ?? [])].reverse()) {
    const ids = tombstone.conversations.flatMap(({ id, runs }) => [id, ...runs])
    const id = ids.findLast((one) => one.endsWith(ending))
    if (id !== undefined) return { id, tombstone }
  }
  return null
}

/** Lists trees with their open nodes. Trees that were changed from outside are left out. */
export async function listTrees(store: Store, query: TreesQuery, seen: SeenLists): Promise<readonly TreeData[]> {
  const trees: TreeData[] = []
  for (const { id } of await listedRoots(store, query, seen)) {
    try {
      trees.push(await readTreeData(store, id, 'open'))
    } catch (error) {
      if (!isLegateError(error, 'tampered')) throw error
    }
  }
  return trees
}

/** A root as lists read it. */
interface ListedRoot {
  readonly id: Id
  readonly agent: string
  readonly createdAt: number
}

function listedRoots(store: Store, query: TreesQuery, seen: SeenLists): Promise<readonly ListedRoot[]> {
  const newestFirst = (a: ListedRoot, b: ListedRoot) => b.createdAt - a.createdAt
  return query.isOpen === true
    ? seen.filtered(query, (owned) => openRoots(store, owned), newestFirst)
    : seen.listed(query, (owned) => newestRoots(store, owned), newestFirst)
}

async function newestRoots(store: Store, { limit, owner, before }: TreesQuery): Promise<ListedRoot[]> {
  const of = { ...(owner === undefined ? {} : { owner }), ...(before === undefined ? {} : { before }) }
  const roots = await store.roots({ limit, ...of })
  return roots.map(({ id, agent, createdAt }) => ({ id, agent: agent.name, createdAt }))
}

async function openRoots(store: Store, { limit, owner }: TreesQuery): Promise<ListedRoot[]> {
  const turns = await store.openRoots({ limit, ...(owner === undefined ? {} : { owner }) })
  const roots = new Map(turns.map(({ rootId, createdAt }) => [rootId, createdAt]))
  return Promise.all(
    [...roots].map(async ([id, createdAt]) => {
      const root = await look(store, id, (tree) => unlessTampered(() => tree.conversation(id)))
      return { id, agent: root?.agent.name ?? '', createdAt }
    }),
  )
}
