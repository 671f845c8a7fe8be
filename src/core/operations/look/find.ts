import { isLegateError } from '../../base/error.ts'
import { fitting, jsonBytes } from '../../base/page/json-bytes.ts'
import { PageRoom } from '../../base/page/room.ts'
import { othersRan } from '../../conversation/pages.ts'
import type { StoredBlock } from '../../graph/commit.ts'
import type { EventRow } from '../../graph/event.ts'
import { unlessTampered } from '../../graph/reader.ts'
import type { Id } from '../../graph/rows.ts'
import type { Tombstone } from '../../store/archive.ts'
import { look } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'
import type { SeenLists } from './seen-lists.ts'
import { readTreeInShort, type TreeData } from './tree-data.ts'

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
  /** On the last page only, and as many as fit into 8 MB. */
  readonly blocks: readonly StoredBlock[]
  /** The `after` of the next page; null where the record has no more now. */
  readonly next: number | null
}

/** Reads one page of the record of a tree. */
export async function treeEventPage(
  store: Store,
  rootId: Id,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<TreeEvents> {
  const room = new PageRoom()
  const read = await store.events(rootId, after, limit, room)
  const events = fitting(read, new PageRoom())
  const hasMore = room.isFull || events.length < read.length || events.length >= limit
  if (hasMore) return { events, blocks: [], next: events.at(-1)?.seq ?? null }
  return { events, blocks: fitting(await store.blocks(rootId, 0), new PageRoom()), next: null }
}

const MOST_FOUND = 100

/** Finds ids by their ending in the whole store. */
export async function findIds(store: Store, ending: string): Promise<FoundIds> {
  const found = await store.findIds(ending, MOST_FOUND)
  return { found, deleted: found.length > 0 ? null : await findDeleted(store, ending) }
}

const MOST_LOOKED_AT = 200

/** Finds ids by their ending in the newest trees of a list. */
export async function findIn(list: (query: TreesQuery) => Promise<TreesPage>, ending: string): Promise<FoundIds> {
  const found: FoundIds['found'][number][] = []
  for (let [looked, before]: [number, Id | null] = [0, null]; looked < MOST_LOOKED_AT; ) {
    const page: TreesPage = await list({ limit: MOST_LOOKED_AT - looked, ...(before === null ? {} : { before }) })
    found.push(...idsIn(page.trees, ending))
    if (page.next === null || found.length >= MOST_FOUND) break
    looked += page.trees.length
    before = page.next
  }
  return { found: found.slice(0, MOST_FOUND), deleted: null }
}

function idsIn(trees: readonly TreeData[], ending: string): FoundIds['found'][number][] {
  const ids = (type: FoundIds['found'][number]['type'], rows: readonly { readonly id: Id }[]) =>
    rows.flatMap(({ id }) => (id.endsWith(ending) ? [{ id, type }] : []))
  return trees.flatMap(({ conversations, turns, nodes }) => [
    ...ids('conversation', conversations),
    ...ids('turn', turns),
    ...ids('node', nodes),
  ])
}

async function findDeleted(store: Store, ending: string): Promise<FoundIds['deleted']> {
  for (const tombstone of [...((await store.archive?.tombstones()) ?? [])].reverse()) {
    const ids = tombstone.conversations.flatMap(({ id, runs }) => [id, ...runs])
    const id = ids.findLast((one) => one.endsWith(ending))
    if (id !== undefined) return { id, tombstone }
  }
  return null
}

/** Trees with their open nodes. */
export interface TreesPage {
  readonly trees: readonly TreeData[]
  /** The `before` of the next page; null where there is none. */
  readonly next: Id | null
}

/** Lists trees with their open nodes, until the page is full. Trees that were changed from outside are left out. */
export async function listTrees(store: Store, query: TreesQuery, seen: SeenLists): Promise<TreesPage> {
  const room = new PageRoom()
  const trees: TreeData[] = []
  const roots = await listedRoots(store, query, seen)
  for (const { id } of roots) {
    const data = await unlessAltered(readTreeInShort(store, id))
    if (data === undefined) continue
    if (!room.take(jsonBytes(data, room.left))) break
    trees.push(data)
    // Reads as many long texts of a tree as fit into a page: other readers come in between.
    await othersRan()
  }
  const hasMore = room.isFull || roots.length >= query.limit
  return { trees, next: hasMore ? (trees.at(-1)?.rootId ?? null) : null }
}

async function unlessAltered<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (!isLegateError(error, 'tampered')) throw error
    return undefined
  }
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
    ? openRootsSeen(store, query, seen)
    : seen.listed(query, (owned) => newestRoots(store, owned), newestFirst)
}

/** The open ones by their ids, the newest first: whoever reads on asks for those before one. */
function openRootsSeen(store: Store, { isOpen: _, ...query }: TreesQuery, seen: SeenLists): Promise<ListedRoot[]> {
  return seen.filtered(
    query,
    (owned) => openRoots(store, owned),
    (a, b) => (a.id < b.id ? 1 : -1),
  )
}

const MOST_OPEN = 10_000

async function newestRoots(store: Store, { limit, owner, before }: TreesQuery): Promise<ListedRoot[]> {
  const of = { ...(owner === undefined ? {} : { owner }), ...(before === undefined ? {} : { before }) }
  const roots = await store.roots({ limit, ...of })
  return roots.map(({ id, agent, createdAt }) => ({ id, agent: agent.name, createdAt }))
}

/** A store gives the open ones in its own order: those of a page are known when all are. */
async function openRoots(store: Store, { limit, owner, before }: TreesQuery): Promise<ListedRoot[]> {
  const turns = await store.openRoots({ limit: MOST_OPEN, ...(owner === undefined ? {} : { owner }) })
  const roots = new Map(turns.map(({ rootId, createdAt }) => [rootId, createdAt]))
  const wanted = [...roots.keys()].filter((id) => before === undefined || id < before).sort()
  return Promise.all(
    wanted
      .slice(-limit)
      .reverse()
      .map(async (id) => {
        const root = await look(store, id, (tree) => unlessTampered(() => tree.conversation(id)))
        return { id, agent: root?.agent.name ?? '', createdAt: roots.get(id) ?? 0 }
      }),
  )
}
