// Loading all rows of a tree, for those who look at the whole of it.
//
// Called by: audits, pictures, and tests after every scenario.
// Must stay true:
//   - The rows are of one moment.
//   - Of a large tree elsewhere some turns are read at a time: the copy in this process stays small, and its event loop goes on.

import { Slices } from '../base/clock.ts'
import type { Later } from '../base/maybe.ts'
import type { EventRow } from '../graph/event.ts'
import {
  addMember,
  CollectedRows,
  collect,
  ignoreTampered,
  lanesBeside,
  pageAfter,
  type StoreReader,
  type TreeParts,
  type TreeReader,
  type TreeRows,
} from '../graph/reader.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import { look } from '../store/look.ts'
import type { Store } from '../store/store.ts'

type LoadedFrom = StoreReader & Pick<Store, 'known'>

/**
 * Loads all trees one by one, those with the newest ids first. One tree is in memory, and the ids of all conversations. Other work
 * gets its turn in between. Skips trees that were changed from outside: the store reports them.
 */
export async function* eachTree(store: LoadedFrom): AsyncGenerator<TreeRows> {
  const slices = new Slices()
  const roots: Id[] = []
  const members = new Map<Id, Id[]>()
  for await (const row of loadConversations(store)) {
    if (row.id === row.rootId) roots.push(row.id)
    else addMember(members, row)
    await slices.next()
  }
  for (let id = roots.pop(); id !== undefined; id = roots.pop()) {
    const tree = await loadWith(store, id, members.get(id) ?? []).catch(ignoreTampered)
    members.delete(id)
    if (tree !== undefined) yield tree
    await slices.next()
  }
}

/** Loads all rows of one tree. */
export async function loadTree(store: LoadedFrom, rootId: Id): Promise<TreeRows> {
  const members: Id[] = []
  for await (const { id } of loadConversations(store, rootId)) members.push(id)
  return loadWith(store, rootId, members)
}

/** Loads so many of the newest turns of a conversation, of its root and of lanes, with all below them; no events. */
export async function loadNewest(store: LoadedFrom, { id, rootId }: Conversation, newest: number): Promise<TreeRows> {
  const { rows } = await loadRows(store, { rootId, members: [id], events: () => [], blocks: [], newest })
  return rows
}

/** Reads again until rows, events and blocks are of one moment, while others commit. */
async function loadWith(store: LoadedFrom, rootId: Id, members: readonly Id[]): Promise<TreeRows> {
  const events = new LoadedEvents(store, rootId)
  for (let seen = -1; ; ) {
    await events.load()
    const parts = { rootId, members, events: () => events.all(), blocks: await store.blocks(rootId, 0) }
    const { rows, seq } = await loadRows(store, parts)
    if (seq === events.last || seq === seen) return rows
    seen = seq
  }
}

interface LoadedRows {
  readonly rows: TreeRows
  /** The number of the last event of their moment. */
  readonly seq: number
}

/** Some turns at a time are not of one moment while others commit: then all are read at once. */
async function loadRows(store: LoadedFrom, parts: TreeParts): Promise<LoadedRows> {
  for (let tries = 0; store.near !== undefined && tries < MOST_TRIES; tries++) {
    const found = await new PartWalk(store, parts).walk()
    if (found !== undefined) return found
  }
  const tree = await store.tree(parts.rootId)
  return { seq: tree.lastSeq(parts.rootId), rows: collect(tree, parts) }
}

const MOST_TRIES = 3

/** So many turns of a lane are read at a time, with all below them. */
const TURNS = 100

/** Collects the rows of a tree elsewhere, some turns at a time. */
class PartWalk {
  private readonly store: LoadedFrom
  private readonly parts: TreeParts
  private readonly rows: CollectedRows
  private readonly bodies: Set<string> = new Set()

  constructor(store: LoadedFrom, parts: TreeParts) {
    this.store = store
    this.parts = parts
    this.rows = new CollectedRows(parts, (hash) => this.bodies.has(hash))
  }

  /** Undefined where others have written meanwhile. */
  async walk(): Promise<LoadedRows | undefined> {
    const before = await this.moment()
    for (const id of [this.parts.rootId, ...this.parts.members]) await this.from(id)
    const { n, seq } = await this.moment()
    return n !== undefined && n === before.n ? { rows: this.rows, seq } : undefined
  }

  /** How many commits the tree has now, and its last event. */
  private async moment() {
    const { store } = this
    const { rootId } = this.parts
    const seq = await look(store, rootId, (tree) => tree.lastSeq(rootId))
    return { n: store.known?.(rootId)?.writes?.(), seq }
  }

  private async from(first: Id): Promise<void> {
    const { rows, store } = this
    const { rootId } = this.parts
    const open: Id[] = [first]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const laneId = id
      if (rows.conversations.has(laneId)) continue
      const { row, newest } = await look(store, rootId, (tree) => ({
        row: tree.conversation(laneId),
        newest: tree.turnsOf(laneId, { limit: 1 })[0]?.ordinal ?? -1,
      }))
      if (row === undefined) continue
      if (this.parts.newest !== undefined) open.push(...lanesBeside(row))
      open.push(...(await this.lane(row, newest)))
    }
  }

  /** Gives the conversations below it that are too long to be read with it. */
  private async lane(row: Conversation, newest: number): Promise<readonly Id[]> {
    const { rows, store } = this
    const turns: Turn[] = []
    const left: Id[] = []
    rows.conversations.set(row.id, row)
    rows.turnsOf.set(row.id, turns)
    const { newest: most = Number.POSITIVE_INFINITY } = this.parts
    for (let first = Math.max(0, newest + 1 - most); first <= newest; first += TURNS) {
      const range = { last: first + TURNS - 1, limit: TURNS }
      const below = await look(store, this.parts.rootId, (tree) => this.page(tree, row, range))
      turns.push(...below.turns.filter(({ ordinal }) => ordinal >= first))
      left.push(...below.left)
      for (const [id, lane] of below.lanes) if (!rows.conversations.has(id)) this.addLane(id, lane)
    }
    return left
  }

  private addLane(id: Id, { row, turns }: Lane): void {
    this.rows.conversations.set(id, row)
    this.rows.turnsOf.set(id, turns)
  }

  private page(tree: TreeReader, row: Conversation, range: { readonly last: number; readonly limit: number }): Page {
    const page: Page = { turns: tree.turnsOf(row.id, range), lanes: new Map(), left: [] }
    for (const turn of page.turns) this.below(tree, turn, page)
    return page
  }

  private below(tree: TreeReader, turn: Turn, page: Page): void {
    // Whoever walks loads the runs that come next with the first that is not here.
    for (const { id } of tree.linksOf(turn.id)) tree.turn(id)
    for (const { output } of tree.nodesOf(turn.id)) {
      if (output.bodyRef !== undefined && tree.body(output.bodyRef) !== undefined) this.bodies.add(output.bodyRef)
    }
    for (const id of this.rows.addTurn(tree, turn)) {
      const row = tree.conversation(id)
      if (row === undefined || page.lanes.has(id) || this.rows.conversations.has(id)) continue
      const turns = tree.turnsOf(id, { limit: TURNS })
      if (turns.length === TURNS) page.left.push(id)
      else {
        page.lanes.set(id, { row, turns })
        for (const one of turns) this.below(tree, one, page)
      }
    }
  }
}

interface Lane {
  readonly row: Conversation
  readonly turns: readonly Turn[]
}

/** Some turns, and the conversations below them: those that were read with them, and those that are left. */
interface Page {
  readonly turns: readonly Turn[]
  readonly lanes: Map<Id, Lane>
  readonly left: Id[]
}

/** The events of a tree. A failure to read them concerns only those who want them. */
class LoadedEvents {
  private readonly store: StoreReader
  private readonly rootId: Id
  private readonly loaded: EventRow[] = []
  private failure: { readonly error: unknown } | undefined

  constructor(store: StoreReader, rootId: Id) {
    this.store = store
    this.rootId = rootId
  }

  /** The number of the last event. */
  get last(): number {
    return this.loaded.at(-1)?.seq ?? 0
  }

  /** Loads the events that came since the last time. */
  async load(): Promise<void> {
    this.failure = undefined
    try {
      for (let page = await this.page(); page.length > 0; page = await this.page()) {
        for (const event of page) this.loaded.push(event)
      }
    } catch (error) {
      this.failure = { error }
    }
  }

  all(): readonly EventRow[] {
    if (this.failure !== undefined) throw this.failure.error
    return this.loaded
  }

  private page(): Later<readonly EventRow[]> {
    return this.store.events(this.rootId, this.last, EVENTS)
  }
}

const EVENTS = 1_000

async function* loadConversations(store: StoreReader, rootId?: Id): AsyncGenerator<Conversation> {
  for (let page = await store.conversations(pageAfter('', rootId)); page.length > 0; ) {
    yield* page
    page = await store.conversations(pageAfter(page.at(-1)?.id ?? '', rootId))
  }
}
