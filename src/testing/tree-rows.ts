import type { LiveBlock } from '../graph/commit.ts'
import type { EventRow } from '../graph/event.ts'
import type { Scanner } from '../graph/reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../graph/rows.ts'

/** All rows of one tree, found by walking from its root conversation: what is not reached is not here. */
export interface TreeRows {
  readonly rootId: Id
  readonly conversations: ReadonlyMap<Id, Conversation>
  readonly turns: ReadonlyMap<Id, Turn>
  readonly nodes: ReadonlyMap<Id, Node>
  readonly links: ReadonlyMap<Id, Link>
  /** By the node they lead to. */
  readonly edgesTo: ReadonlyMap<Id, readonly Edge[]>
  readonly events: readonly EventRow[]
  readonly blocks: readonly LiveBlock[]
}

const MANY = 1_000_000
const PAGE = 1_000

/** All trees of a store. */
export function readTrees(store: Scanner): TreeRows[] {
  return store.roots({ limit: MANY }).map((root) => readTree(store, root))
}

function readTree(store: Scanner, root: Conversation): TreeRows {
  const tree = {
    rootId: root.id,
    conversations: new Map<Id, Conversation>(),
    turns: new Map<Id, Turn>(),
    nodes: new Map<Id, Node>(),
    links: new Map<Id, Link>(),
    edgesTo: new Map<Id, readonly Edge[]>(),
    events: readEvents(store, root.id),
    blocks: store.blocks(root.id, 0),
  }
  const open: Id[] = [root.id]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const conversation = store.conversation(id)
    if (conversation === undefined || tree.conversations.has(id)) continue
    tree.conversations.set(id, conversation)
    for (const turn of store.turnsOf(id, { limit: MANY })) {
      tree.turns.set(turn.id, turn)
      for (const node of store.nodesOf(turn.id)) {
        tree.nodes.set(node.id, node)
        tree.edgesTo.set(node.id, store.edgesTo(node.id))
      }
      for (const link of store.linksOf(turn.id)) {
        tree.links.set(link.id, link)
        open.push(link.childConversationId)
      }
    }
  }
  return tree
}

function readEvents(store: Scanner, rootId: Id): EventRow[] {
  const events: EventRow[] = []
  for (;;) {
    const page = store.events(rootId, events.at(-1)?.seq ?? 0, PAGE)
    events.push(...page)
    if (page.length < PAGE) return events
  }
}
