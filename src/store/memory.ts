import { StoreError } from '../base/error.ts'
import type { LiveBlock } from '../graph/commit.ts'
import type { RunnableQuery } from '../graph/reader.ts'
import type { Conversation, Id, Link, Node, Turn } from '../graph/rows.ts'
import { isOpen } from '../graph/states.ts'
import { applyCommit, keyOf } from './memory-commit.ts'
import { reloadTables } from './memory-reload.ts'
import {
  countUpTo,
  emptyTables,
  forgetTree,
  type LinkEntry,
  type NodeEntry,
  openOf,
  type Tables,
  type TurnEntry,
} from './memory-rows.ts'
import type { Store } from './store.ts'

export interface MemoryStoreOptions {
  /** How many trees without an open turn are kept; beyond it the one that ended first is forgotten. */
  readonly keep?: number
}

/** Rows live as long as the process, ended trees until `keep` others have ended after them. */
export function memoryStore({ keep = 1000 }: MemoryStoreOptions = {}): Store {
  let current: Tables | undefined = emptyTables()
  const tables = (): Tables => {
    if (current === undefined) throw closedError()
    return current
  }
  return {
    name: 'memory',
    shared: false,
    commit: (commit) => {
      const open = tables()
      const tree = applyCommit(open, commit)
      if (tree === undefined) return
      if (tree.openTurns > 0) open.ended.delete(tree)
      else open.ended.add(tree)
      if (open.ended.size > keep) forgetOldest(open, keep)
    },
    conversation: (id) => tables().conversations.get(id)?.row,
    turn: (id) => tables().turns.get(id)?.row,
    node: (id) => tables().nodes.get(id)?.row,
    link: (id) => tables().links.get(id)?.row,
    body: (hash) => tables().bodies.get(hash)?.text,
    edgesFrom: (nodeId) => tables().nodes.get(nodeId)?.out.slice() ?? [],
    edgesTo: (nodeId) => tables().nodes.get(nodeId)?.in.slice() ?? [],
    nodesOf: (turnId) =>
      tables()
        .turns.get(turnId)
        ?.nodes.entries.map(rowOf<Node>) ?? [],
    openNodes: (turnId) => openNodes(tables().turns.get(turnId)),
    nodeByKey: (turnId, kind, key) => tables().turns.get(turnId)?.keys?.get(keyOf(kind, key))?.row,
    linksOf: (hostTurnId) =>
      tables()
        .turns.get(hostTurnId)
        ?.links.entries.map(rowOf<Link>) ?? [],
    linkAt: (hostTurnId, ordinal) => linkAt(tables().turns.get(hostTurnId), ordinal),
    openLinks: (hostTurnId) => openLinks(tables().turns.get(hostTurnId)),
    turnsOf: (laneId, range) => turnsOf(tables(), laneId, range),
    queuedTurn: (laneId) => queuedTurn(tables(), laneId),
    runnable: (query) => runnable(tables(), query),
    overdue: (now, limit) => overdue(tables(), now, limit),
    unstopped: (before, limit) => unstopped(tables(), before, limit),
    claimedBy: (engineId, limit) => take(tables().claims.get(engineId)?.values() ?? [], limit).map(rowOf<Node>),
    engines: () => Array.from(tables().engines.values(), (entry) => entry.row),
    engine: (id) => tables().engines.get(id)?.row,
    nextDue: (now) => nextDue(tables(), now),
    events: (rootId, after, limit) => {
      const first = Math.max(0, Math.floor(after))
      return (
        tables()
          .trees.get(rootId)
          ?.events.slice(first, first + Math.max(0, limit)) ?? []
      )
    },
    lastSeq: (rootId) => tables().trees.get(rootId)?.seq ?? 0,
    blocks: (rootId) => blocks(tables(), rootId),
    roots: (query) => roots(tables(), query),
    findIds: (ending, limit) => findIds(tables(), ending, limit),
    openRoots: (limit) => take(tables().openRoots.values(), limit).map(rowOf<Turn>),
    watch: () => {
      tables()
      return () => undefined
    },
    reopen: () => {
      current = reloadTables(tables())
    },
    close: async () => {
      current = undefined
    },
  }
}

function closedError(): StoreError {
  return new StoreError('store_closed', 'The memory store was closed; its rows are gone. Open a new one.')
}

function forgetOldest(tables: Tables, keep: number): void {
  while (tables.ended.size > keep) {
    const oldest = tables.ended.oldest()
    if (oldest === undefined) return
    forgetTree(tables, oldest)
  }
}

function rowOf<Row>(entry: { readonly row: Row }): Row {
  return entry.row
}

function take<Item>(items: Iterable<Item>, limit: number): Item[] {
  const taken: Item[] = []
  for (const item of items) {
    if (taken.length >= limit) break
    taken.push(item)
  }
  return taken
}

function isOpenNode(entry: NodeEntry): boolean {
  return isOpen(entry.row.state)
}

function openNodes(turn: TurnEntry | undefined): readonly Node[] {
  return turn === undefined ? [] : openOf(turn.nodes, isOpenNode).map(rowOf<Node>)
}

function isOpenLink(entry: LinkEntry): boolean {
  return entry.row.outcome === null
}

function openLinks(turn: TurnEntry | undefined): readonly Link[] {
  return turn === undefined ? [] : openOf(turn.links, isOpenLink).map(rowOf<Link>)
}

function linkAt(turn: TurnEntry | undefined, ordinal: number): Link | undefined {
  if (turn === undefined) return undefined
  const index = countUpTo(turn.links, ordinal) - 1
  const link = turn.links.entries[index]?.row
  return link?.ordinal === ordinal ? link : undefined
}

function turnsOf(
  tables: Tables,
  laneId: Id,
  range: { readonly last?: number; readonly limit: number },
): readonly Turn[] {
  const lane = tables.lanes.get(laneId)
  if (lane === undefined) return []
  const end = range.last === undefined ? lane.entries.length : countUpTo(lane, range.last)
  return lane.entries.slice(Math.max(0, end - Math.max(0, range.limit)), end).map(rowOf<Turn>)
}

function isOpenTurn(entry: TurnEntry): boolean {
  return entry.row.state !== 'ended'
}

function queuedTurn(tables: Tables, laneId: Id): Turn | undefined {
  const lane = tables.lanes.get(laneId)
  if (lane === undefined) return undefined
  return openOf(lane, isOpenTurn).find((entry) => entry.row.state === 'queued')?.row
}

function runnable(tables: Tables, { now, limit, kinds, agents }: RunnableQuery): readonly Node[] {
  if (tables.ready.size === 0) return []
  const found: NodeEntry[] = []
  for (const entry of tables.ready.values()) {
    const { row, turn } = entry
    if (row.wakeAt !== null && row.wakeAt > now) continue
    if (!kinds.includes(row.kind) || !agents.includes(turn.conversation.row.agent.name)) continue
    found.push(entry)
  }
  found.sort((a, b) => a.row.createdAt - b.row.createdAt || a.number - b.number)
  return found.slice(0, Math.max(0, limit)).map(rowOf<Node>)
}

function overdue(tables: Tables, now: number, limit: number): readonly Turn[] {
  const found: Turn[] = []
  for (const { row } of tables.timed.values()) if (row.deadline !== null && row.deadline <= now) found.push(row)
  found.sort((a, b) => (a.deadline ?? 0) - (b.deadline ?? 0))
  return found.slice(0, Math.max(0, limit))
}

function unstopped(tables: Tables, before: number, limit: number): readonly Node[] {
  const found: Node[] = []
  for (const turn of tables.stopping.values()) {
    if (turn.row.cancel === null || turn.row.cancel.at > before) continue
    for (const node of openNodes(turn)) {
      if (found.length >= limit) return found
      if (node.state === 'running') found.push(node)
    }
  }
  return found
}

function nextDue(tables: Tables, now: number): number | undefined {
  let next = Number.POSITIVE_INFINITY
  for (const { row } of tables.timed.values()) {
    if (row.deadline !== null && row.deadline > now && row.deadline < next) next = row.deadline
  }
  for (const { row } of tables.sleeping.values()) {
    if (row.wakeAt !== null && row.wakeAt > now && row.wakeAt < next) next = row.wakeAt
  }
  return next === Number.POSITIVE_INFINITY ? undefined : next
}

function blocks(tables: Tables, rootId: Id): readonly LiveBlock[] {
  const found: LiveBlock[] = []
  for (const block of tables.blocks.values()) if (block.rootId === rootId) found.push(block)
  return found
}

function roots(tables: Tables, query: { readonly limit: number; readonly before?: Id }): readonly Conversation[] {
  const trees = [...tables.trees.values()].sort((a, b) => b.number - a.number)
  const start = query.before === undefined ? 0 : trees.findIndex(({ rootId }) => rootId === query.before) + 1
  if (query.before !== undefined && start === 0) return []
  const found = trees.slice(start, start + Math.max(0, query.limit))
  return found.flatMap(({ rootId }) => tables.conversations.get(rootId)?.row ?? [])
}

type FoundId = ReturnType<Store['findIds']>[number]

function findIds(tables: Tables, ending: string, limit: number): readonly FoundId[] {
  return take(idsEndingSo(tables, ending), limit)
}

function* idsEndingSo(tables: Tables, ending: string): Generator<FoundId> {
  if (ending === '') return
  for (const { row } of tables.conversations.values())
    if (row.id.endsWith(ending)) yield { id: row.id, type: 'conversation' }
  for (const { row } of tables.turns.values()) if (row.id.endsWith(ending)) yield { id: row.id, type: 'turn' }
  for (const { row } of tables.nodes.values()) if (row.id.endsWith(ending)) yield { id: row.id, type: 'node' }
}
