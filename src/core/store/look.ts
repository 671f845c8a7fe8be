// Reading a tree of which only a part is in this process.
//
// Owns:      what a read of rows that are elsewhere throws, and the loop that loads them and reads again.
// Called by: the ledger, the engine, and everything that reads few rows of a tree that may be large.
// Must stay true:
//   - A store in this process is read as before: at once, and once.
//   - What reads may run several times, so it does nothing else.

import { Slices } from '../base/clock.ts'
import { after, type Later } from '../base/maybe.ts'
import { ignoreTampered, type StoreReader, type TreeReader } from '../graph/reader.ts'
import type { Id, Node, Turn } from '../graph/rows.ts'
import type { StoreChange } from './store.ts'

/** A read of rows that are not in this process: of a large tree in a store far away, only the newest turns are. */
export class MissingRows extends Error {
  /** Loads them, and with them as many delegations that whoever walks through the tree comes to next. */
  readonly load: (ahead?: number) => Promise<void>

  constructor(load: (ahead?: number) => Promise<void>) {
    super('These rows have to be loaded first.')
    this.load = load
  }
}

type Near = Pick<StoreReader, 'tree' | 'near'>

type Places = Pick<StoreReader, 'rootOf' | 'writtenRoot'>

/** The rows of one tree, as far as they are here: reading others throws `MissingRows`. */
export function nearTree(store: Near, rootId: Id): Later<TreeReader> {
  return store.near === undefined ? store.tree(rootId) : store.near(rootId)
}

/** Reads rows of one tree, and loads no others. `read` may run several times: it does nothing but read. */
export function look<T>(store: Near, rootId: Id, read: (tree: TreeReader) => Later<T>): Later<T> {
  if (store.near === undefined) return after(store.tree(rootId), read)
  return store.near(rootId).then((tree) => untilLoaded(() => read(tree)))
}

/** Reads the tree that has this conversation, turn or node: see `look`. */
export function lookWith<T>(store: Near & Places, id: Id, read: (tree: TreeReader) => Later<T>): Later<T> {
  return after(rootFor(store, id), (rootId = id) => look(store, rootId, read))
}

/** The tree to read for an id, which is asked for only where this process does not know it; undefined where there is none. */
export function rootFor(store: Places, id: Id): Later<Id | undefined> {
  return store.writtenRoot?.(id) ?? store.rootOf(id)
}

/** Like `look`, for one tree among others: where it was changed from outside, `altered` says what to take instead. */
export async function lookUnlessTampered<T, U>(
  store: Near,
  rootId: Id,
  { read, altered }: { readonly read: (tree: TreeReader) => Later<T>; readonly altered: (error: unknown) => U },
): Promise<T | U> {
  try {
    return await look(store, rootId, read)
  } catch (error) {
    ignoreTampered(error)
    return altered(error)
  }
}

/** So many trees are asked for at once. */
const LOT = 64

/**
 * Reads rows of the tree of each of these, and gives them in this order. A store far away is asked for many trees at once. Undefined for
 * a tree that was changed from outside.
 */
export async function lookEach<Item extends { readonly rootId: Id }, T>(
  store: Near,
  items: readonly Item[],
  read: (tree: TreeReader, item: Item) => Later<T>,
): Promise<(T | undefined)[]> {
  const found: (T | undefined)[] = []
  const altered = () => undefined
  const one = (item: Item) => lookUnlessTampered(store, item.rootId, { read: (tree) => read(tree, item), altered })
  for (let from = 0; from < items.length; from += LOT) {
    found.push(...(await Promise.all(items.slice(from, from + LOT).map(one))))
  }
  return found
}

/**
 * Those of these turns that may have ended after other processes have written: by the change that was told, or as the store says. Where
 * it cannot say, all of them.
 */
export function mayHaveEnded(
  store: Pick<StoreReader, 'notOpen'>,
  turnIds: readonly Id[],
  change?: Pick<StoreChange, 'ended'>,
): Later<readonly Id[]> {
  if (change !== undefined) return turnIds.filter((id) => change.ended.includes(id))
  return turnIds.length === 0 ? turnIds : (store.notOpen?.(turnIds) ?? turnIds)
}

/** False where there is no such tree. */
export function isThere(store: Near, rootId: Id): Later<boolean> {
  return look(store, rootId, (tree) => tree.conversation(rootId) !== undefined)
}

/** Nodes by their ids; undefined for one that does not exist. */
export function lookAtNodes(store: Near, rootId: Id, ids: readonly Id[]): Later<ReadonlyMap<Id, Node | undefined>> {
  return look(store, rootId, (tree) => new Map(ids.map((id) => [id, tree.node(id)])))
}

/** The rows of one tree, with those that `read` reads: for code that reads just these, at once. */
export function treeLoaded(store: Near, rootId: Id, read: (tree: TreeReader) => unknown): Later<TreeReader> {
  if (store.near === undefined) return store.tree(rootId)
  return look(store, rootId, (tree) => {
    read(tree)
    return tree
  })
}

/** Reads at once where the rows are here, else when they are loaded. */
export function onceLoaded<T>(read: () => T): Later<T> {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof MissingRows)) throw error
    return error.load().then(() => untilLoaded(read))
  }
}

/** Reads again as often as rows have to be loaded. */
export async function untilLoaded<T>(read: () => Later<T>): Promise<T> {
  for (let ahead = 0; ; ahead = Math.min(MOST_AHEAD, 2 * ahead + 1)) {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof MissingRows)) throw error
      await error.load(ahead)
    }
  }
}

/** Whoever lacks rows again and again walks through the tree: each time more is loaded, up to so many runs. */
const MOST_AHEAD = 255

/**
 * Lists the open runs that work for no other open run, of all trees or of these: first the runs of user conversations, then
 * background runs whose host has ended.
 */
export async function openTopRuns(store: StoreReader, trees?: ReadonlySet<Id>): Promise<Turn[]> {
  return takeTopRuns(store, (turn) => turn, trees)
}

/** Like `openTopRuns`, and gives what `take` makes of each run while its rows are at hand. Other work gets its turn meanwhile. */
export async function takeTopRuns<T>(
  store: StoreReader,
  take: (turn: Turn) => Later<T>,
  trees?: ReadonlySet<Id>,
): Promise<T[]> {
  const slices = new Slices()
  const [first, rest]: [T[], T[]] = [[], []]
  for await (const { roots, others } of openPages(store)) {
    for (const turn of roots) if (trees?.has(turn.rootId) !== false) first.push(await take(turn))
    for (const turn of others) {
      if (trees?.has(turn.rootId) === false) continue
      const read = (tree: TreeReader) => worksAlone(tree, turn)
      if (await lookUnlessTampered(store, turn.rootId, { read, altered: () => false })) rest.push(await take(turn))
    }
    await slices.next()
  }
  return first.concat(rest)
}

/** Open runs of user conversations, and all others. */
interface OpenPage {
  readonly roots: readonly Turn[]
  readonly others: readonly Turn[]
}

/** A store that reads by pages has the conversation of each run at hand; another is asked which runs are of user conversations. */
async function* openPages(store: StoreReader): AsyncGenerator<OpenPage> {
  if (store.openPages === undefined) {
    const roots = await store.openRoots({ limit: MANY })
    const known = new Set(roots.map(({ id }) => id))
    yield { roots, others: (await store.openTurns(MANY)).filter(({ id }) => !known.has(id)) }
    return
  }
  for (const page of store.openPages()) {
    const types = new Map<Id, string | undefined>()
    for (const { id, rootId, conversationId } of page) {
      const read = (tree: TreeReader) => tree.conversation(conversationId)?.type
      types.set(id, await lookUnlessTampered(store, rootId, { read, altered: () => undefined }))
    }
    const isRoot = ({ id }: Turn) => types.get(id) === 'user'
    yield { roots: page.filter(isRoot), others: page.filter((turn) => !isRoot(turn)) }
  }
}

function worksAlone(tree: TreeReader, { id }: Turn): boolean {
  const host = tree.turn(tree.link(id)?.hostTurnId ?? '')
  return host === undefined || host.state === 'ended'
}

const MANY = Number.MAX_SAFE_INTEGER
