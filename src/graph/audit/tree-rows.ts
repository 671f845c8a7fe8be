import { isLegateError } from '../../base/error.ts'
import type { StoredBlock } from '../commit.ts'
import type { EventRow } from '../event.ts'
import type { Scanner } from '../reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../rows.ts'

/** All rows of one tree: those that a walk from its root reaches, and those that only say that they are of it. */
export interface TreeRows {
  readonly rootId: Id
  readonly conversations: ReadonlyMap<Id, Conversation>
  readonly turns: ReadonlyMap<Id, Turn>
  readonly nodes: ReadonlyMap<Id, Node>
  readonly links: ReadonlyMap<Id, Link>
  /** By the node they lead to. */
  readonly edgesTo: ReadonlyMap<Id, readonly Edge[]>
  /** By conversation, in order. */
  readonly turnsOf: ReadonlyMap<Id, readonly Turn[]>
  /** By turn, in order. */
  readonly nodesOf: ReadonlyMap<Id, readonly Node[]>
  /** By the turn of the host, in order. */
  readonly linksOf: ReadonlyMap<Id, readonly Link[]>
  /** Read when they are first asked for. */
  readonly events: readonly EventRow[]
  readonly blocks: readonly StoredBlock[]
}

const MANY = Number.MAX_SAFE_INTEGER
const PAGE = 1_000

/** All trees of a store, the newest first. */
export function readTrees(store: Scanner): TreeRows[] {
  return [...eachTree(store)]
}

/** The same one by one: no more than one need be held. Those that were changed from outside are left out: the store tells. */
export function* eachTree(store: Scanner): Generator<TreeRows> {
  const members = new Map<Id, Id[]>()
  for (const { id, rootId } of allConversations(store)) {
    const known = members.get(rootId)
    if (known === undefined) members.set(rootId, [id])
    else known.push(id)
  }
  for (const { id } of store.roots({ limit: MANY })) {
    const tree = readUntouched(store, id, members.get(id) ?? [])
    if (tree !== undefined) yield tree
  }
}

function readUntouched(store: Scanner, rootId: Id, members: readonly Id[]): TreeRows | undefined {
  try {
    return read(store, rootId, members)
  } catch (error) {
    if (isLegateError(error, 'tampered')) return undefined
    throw error
  }
}

export function readTree(store: Scanner, rootId: Id): TreeRows {
  const members: Id[] = []
  for (const { id } of allConversations(store, rootId)) members.push(id)
  return read(store, rootId, members)
}

/** Conversations of a tree, or of all of them, by id. */
function* allConversations(store: Scanner, rootId?: Id): Generator<Conversation> {
  for (let after = ''; ; ) {
    const page = store.conversations({ after, limit: PAGE, ...(rootId === undefined ? {} : { rootId }) })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    after = last.id
  }
}

/** Those that are reached from the root come first, hosts before their children. */
function read(store: Scanner, rootId: Id, members: readonly Id[]): TreeRows {
  const tree = new Rows(store, rootId)
  tree.walk(rootId)
  for (const id of members) tree.walk(id)
  return tree
}

class Rows implements TreeRows {
  readonly rootId: Id
  readonly conversations = new Map<Id, Conversation>()
  readonly turns = new Map<Id, Turn>()
  readonly nodes = new Map<Id, Node>()
  readonly links = new Map<Id, Link>()
  readonly edgesTo = new Map<Id, readonly Edge[]>()
  readonly turnsOf = new Map<Id, readonly Turn[]>()
  readonly nodesOf = new Map<Id, readonly Node[]>()
  readonly linksOf = new Map<Id, readonly Link[]>()
  readonly blocks: readonly StoredBlock[]
  private readonly store: Scanner
  private known: readonly EventRow[] | undefined

  constructor(store: Scanner, rootId: Id) {
    this.store = store
    this.rootId = rootId
    this.blocks = store.blocks(rootId, 0)
  }

  get events(): readonly EventRow[] {
    this.known ??= readEvents(this.store, this.rootId)
    return this.known
  }

  walk(first: Id): void {
    const open: Id[] = [first]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const conversation = this.store.conversation(id)
      if (conversation === undefined || this.conversations.has(id)) continue
      this.conversations.set(id, conversation)
      const turns = this.store.turnsOf(id, { limit: MANY })
      this.turnsOf.set(id, turns)
      for (const turn of turns) open.push(...this.addTurn(turn))
    }
  }

  /** Gives the conversations it delegated to. */
  private addTurn(turn: Turn): Id[] {
    this.turns.set(turn.id, turn)
    const nodes = this.store.nodesOf(turn.id)
    const links = this.store.linksOf(turn.id)
    this.nodesOf.set(turn.id, nodes)
    this.linksOf.set(turn.id, links)
    for (const node of nodes) {
      this.nodes.set(node.id, node)
      this.edgesTo.set(node.id, this.store.edgesTo(node.id))
    }
    for (const link of links) this.links.set(link.id, link)
    return links.map(({ childConversationId }) => childConversationId)
  }
}

function readEvents(store: Scanner, rootId: Id): EventRow[] {
  const events: EventRow[] = []
  for (;;) {
    const page = store.events(rootId, events.at(-1)?.seq ?? 0, PAGE)
    for (const event of page) events.push(event)
    if (page.length < PAGE) return events
  }
}
