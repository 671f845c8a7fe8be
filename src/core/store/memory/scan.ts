import type { StoredBlock } from '../../graph/commit.ts'
import { codeOf, isOpen, rootState } from '../../graph/kinds.ts'
import type {
  AwaitingQuery,
  ConversationsQuery,
  LocalReader,
  LocalScans,
  RootsQuery,
  RunnableQuery,
  TreeOwner,
} from '../../graph/reader.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { inTurn } from '../in-turn.ts'
import { countUpTo, type NodeEntry, type StoredTree, type Tables, type TurnEntry } from './tables.ts'

/** Where the tables are. They may be replaced by others. */
export interface TableSource {
  readonly tables: Tables
}

/** Reads and scans over rows in memory. `writes` counts writes where nobody else can write. */
export function memoryReader(from: TableSource, writes?: () => number): LocalReader {
  const reader: LocalReader = {
    tree: () => reader,
    rootOf: (id) => rootOf(from.tables, id),
    ownerOf: (id) => ownerOf(from.tables, id),
    conversation: (id) => from.tables.conversations.get(id)?.row,
    turn: (id) => from.tables.turns.get(id)?.row,
    node: (id) => from.tables.nodes.get(id)?.row,
    link: (id) => from.tables.links.get(id)?.row,
    body: (hash) => from.tables.bodies.get(hash)?.text,
    edgesFrom: (nodeId) => from.tables.nodes.get(nodeId)?.edgesOut ?? NO_EDGES,
    edgesTo: (nodeId) => from.tables.nodes.get(nodeId)?.edgesIn ?? NO_EDGES,
    nodesOf: (turnId) => from.tables.turns.get(turnId)?.nodes.map(rowOf<Node>) ?? [],
    openNodes: (turnId) => openNodes(from.tables.turns.get(turnId)),
    openCount: (turnId) => from.tables.turns.get(turnId)?.openNodes ?? 0,
    nodeByKey: (turnId, kind, key) =>
      from.tables.turns.get(turnId)?.nodes.find(({ row }) => row.idempotencyKey === key && row.kind === kind)?.row,
    linksOf: (hostTurnId) => from.tables.turns.get(hostTurnId)?.links.map(rowOf<Link>) ?? [],
    linkAt: (hostTurnId, ordinal) => linkAt(from.tables.turns.get(hostTurnId), ordinal),
    openLinks: (hostTurnId) => openLinks(from.tables.turns.get(hostTurnId)),
    turnsOf: (laneId, range) => turnsOf(from.tables, laneId, range),
    queuedTurn: (laneId) => queuedTurn(from.tables, laneId),
    runnable: (query) => runnable(from.tables, query),
    overdue: (now, limit) => overdue(from.tables, now, limit),
    unstopped: (before, limit) => unstopped(from.tables, before, limit),
    claimedBy: (engineId, limit) => claimedBy(from.tables, engineId, limit),
    awaiting: (query) => awaiting(from.tables, query, isAsked),
    timed: (query) => awaiting(from.tables, query, isTimed),
    claimants: () => claimants(from.tables),
    engines: () => [...from.tables.engines.values()],
    engine: (id) => from.tables.engines.get(id),
    nextDue: (now) => nextDue(from.tables, now),
    // They are in memory already: a page holds none of them twice.
    events: (rootId, after, limit) => {
      const first = Math.max(0, Math.floor(after))
      return from.tables.trees.get(rootId)?.events.slice(first, first + Math.max(0, limit)) ?? []
    },
    lastSeq: (rootId) => from.tables.trees.get(rootId)?.seq ?? 0,
    blocks: (rootId, after) => blocks(from.tables, rootId, after),
    roots: (query) => roots(from.tables, query),
    conversations: (query) => conversations(from.tables, query),
    findIds: (ending, limit) => take(idsEndingSo(from.tables, ending), limit),
    openTurns: (limit, rootId) => take(openTurns(from.tables, rootId), limit),
    openRoots: ({ limit, owner }) => take(openRoots(from.tables, owner), limit),
  }
  return writes === undefined ? reader : Object.assign(reader, { writes })
}

function rootOf({ conversations, turns, nodes }: Tables, id: Id): Id | undefined {
  return (conversations.get(id) ?? turns.get(id) ?? nodes.get(id))?.row.rootId
}

function ownerOf(tables: Tables, id: Id): TreeOwner | undefined {
  const rootId = rootOf(tables, id)
  const root = rootId === undefined ? undefined : tables.conversations.get(rootId)
  return rootId === undefined || root === undefined ? undefined : { rootId, owner: root.row.owner }
}

const NO_EDGES: readonly Edge[] = []
const NO_LINKS: readonly Link[] = []

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

function openNodes(turn: TurnEntry | undefined): readonly Node[] {
  const open: Node[] = []
  if (turn !== undefined) for (const { row } of turn.nodes) if (isOpen(row.state)) open.push(row)
  return open
}

function openLinks(turn: TurnEntry | undefined): readonly Link[] {
  if (turn === undefined || turn.links.length === 0) return NO_LINKS
  const open: Link[] = []
  for (const { row } of turn.links) if (row.outcome === null) open.push(row)
  return open
}

function linkAt(turn: TurnEntry | undefined, ordinal: number): Link | undefined {
  if (turn === undefined) return undefined
  const link = turn.links[countUpTo(turn.links, ordinal) - 1]?.row
  return link?.ordinal === ordinal ? link : undefined
}

function turnsOf(
  tables: Tables,
  laneId: Id,
  range: { readonly last?: number; readonly limit: number },
): readonly Turn[] {
  const lane = tables.lanes.get(laneId)?.turns
  if (lane === undefined) return []
  const end = range.last === undefined ? lane.length : countUpTo(lane, range.last)
  return lane.slice(Math.max(0, end - Math.max(0, range.limit)), end).map(rowOf<Turn>)
}

/** Queued turns are the last of their lane: the search ends at the first of them. */
function queuedTurn(tables: Tables, laneId: Id): Turn | undefined {
  const lane = tables.lanes.get(laneId)
  if (lane === undefined || lane.queued === 0) return undefined
  let left = lane.queued
  for (let at = lane.turns.length - 1; at >= 0; at--) {
    const row = lane.turns[at]?.row
    if (row?.state === 'queued' && --left === 0) return row
  }
  return undefined
}

function runnable(tables: Tables, { now, limit, kinds, agents, after }: RunnableQuery): readonly Node[] {
  if (tables.ready.size === 0) return []
  const isFit = ({ row, turn }: NodeEntry) =>
    (row.wakeAt === null || row.wakeAt <= now) &&
    kinds.includes(row.kind) &&
    agents.includes(codeOf(turn.conversation.row.agent))
  const found = new Map<string | null, Node[]>()
  for (const entry of tables.ready) {
    if (!isFit(entry)) continue
    const { owner } = entry.turn.conversation.tree
    const own = found.get(owner)
    if (own === undefined) found.set(owner, [entry.row])
    else own.push(entry.row)
  }
  for (const nodes of found.values()) nodes.sort((a, b) => a.createdAt - b.createdAt || a.ordinal - b.ordinal)
  const owners = [...found.keys()].sort((a, b) => (isBefore(a, b) ? -1 : 1))
  const first =
    after === undefined
      ? 0
      : Math.max(
          0,
          owners.findIndex((owner) => isBefore(after, owner)),
        )
  const turns = [...owners.slice(first), ...owners.slice(0, first)]
  return inTurn(
    turns.map((owner) => found.get(owner) ?? []),
    limit,
  )
}

/** Trees without an owner come before all others. */
function isBefore(a: string | null, b: string | null): boolean {
  return b !== null && (a === null || a < b)
}

function overdue(tables: Tables, now: number, limit: number): readonly Turn[] {
  const found: Turn[] = []
  for (const { row } of tables.openTurns) {
    if (row.state === 'running' && row.deadline !== null && row.deadline <= now) found.push(row)
  }
  found.sort((a, b) => (a.deadline ?? 0) - (b.deadline ?? 0))
  return found.slice(0, Math.max(0, limit))
}

function unstopped(tables: Tables, before: number, limit: number): readonly Node[] {
  const found: Node[] = []
  for (const turn of tables.openTurns) {
    if (turn.row.cancel === null || turn.row.cancel.at > before) continue
    for (const node of openNodes(turn)) if (node.state === 'running') found.push(node)
  }
  return found.slice(0, Math.max(0, limit))
}

function claimedBy(tables: Tables, engineId: Id, limit: number): readonly Node[] {
  const found: Node[] = []
  for (const turn of tables.openTurns) {
    for (const node of openNodes(turn)) if (node.engineId === engineId) found.push(node)
  }
  return found.slice(0, Math.max(0, limit))
}

function isAsked({ state }: Node): boolean {
  return state === 'awaiting_approval'
}

function isTimed({ state, wakeAt }: Node): boolean {
  return state === 'waiting' && wakeAt !== null
}

function awaiting(
  tables: Tables,
  { limit, owner, after = { wakeAt: -1, id: '' } }: AwaitingQuery,
  isWanted: (node: Node) => boolean,
): readonly Node[] {
  const found: Node[] = []
  for (const turn of tables.openTurns) {
    if (!isOwnedBy(turn.conversation.tree, owner)) continue
    for (const node of openNodes(turn)) {
      if (isWanted(node) && inOrder(after, { wakeAt: node.wakeAt ?? 0, id: node.id })) found.push(node)
    }
  }
  found.sort((a, b) => (inOrder({ wakeAt: a.wakeAt ?? 0, id: a.id }, { wakeAt: b.wakeAt ?? 0, id: b.id }) ? -1 : 1))
  return found.slice(0, Math.max(0, limit))
}

type ScanPlace = NonNullable<AwaitingQuery['after']>

function inOrder(a: ScanPlace, b: ScanPlace): boolean {
  return a.wakeAt === b.wakeAt ? a.id < b.id : a.wakeAt < b.wakeAt
}

function claimants(tables: Tables): readonly Id[] {
  const found = new Set<Id>()
  for (const turn of tables.openTurns) {
    for (const { engineId } of openNodes(turn)) if (engineId !== null) found.add(engineId)
  }
  return [...found]
}

function nextDue(tables: Tables, now: number): number | undefined {
  let next = Number.POSITIVE_INFINITY
  for (const turn of tables.openTurns) {
    const { state, deadline } = turn.row
    if (state === 'running' && deadline !== null && deadline > now) next = Math.min(next, deadline)
    for (const { row } of turn.nodes) {
      if (isTimed(row) && row.wakeAt !== null && row.wakeAt > now) next = Math.min(next, row.wakeAt)
    }
  }
  for (const { row } of tables.ready) if (row.wakeAt !== null && row.wakeAt > now) next = Math.min(next, row.wakeAt)
  return next === Number.POSITIVE_INFINITY ? undefined : next
}

function blocks(tables: Tables, rootId: Id, after: number): readonly StoredBlock[] {
  const all = [...tables.blocks.values()].flat()
  return all.filter((block) => block.rootId === rootId && block.n > after).sort((a, b) => a.n - b.n)
}

function roots(tables: Tables, { limit, before, owner, agent, state }: RootsQuery): readonly Conversation[] {
  const start = before === undefined ? Number.POSITIVE_INFINITY : tables.trees.get(before)?.number
  if (start === undefined) return []
  const trees = owner === undefined ? tables.trees.values() : [...(tables.owned.get(owner) ?? [])]
  const earlier = trees.filter(({ number }) => number < start).sort((a, b) => b.number - a.number)
  const found: Conversation[] = []
  for (const { id } of earlier) {
    if (found.length >= limit) break
    const row = tables.conversations.get(id)?.row
    if (row === undefined || (agent !== undefined && row.agent.name !== agent)) continue
    if (state === undefined || rootState(tables.lanes.get(id)?.turns.at(-1)?.row) === state) found.push(row)
  }
  return found
}

function conversations(tables: Tables, { rootId, after = '', limit }: ConversationsQuery): readonly Conversation[] {
  const entries = rootId === undefined ? tables.conversations.values() : (tables.trees.get(rootId)?.conversations ?? [])
  const found: Conversation[] = []
  for (const { row } of entries) if (row.id > after) found.push(row)
  return found.sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, Math.max(0, limit))
}

type FoundId = ReturnType<LocalScans['findIds']>[number]

function* idsEndingSo(tables: Tables, ending: string): Generator<FoundId> {
  if (ending === '') return
  for (const { id } of tables.conversations.values()) if (id.endsWith(ending)) yield { id, type: 'conversation' }
  for (const { id } of tables.turns.values()) if (id.endsWith(ending)) yield { id, type: 'turn' }
  for (const { id } of tables.nodes.values()) if (id.endsWith(ending)) yield { id, type: 'node' }
}

function* openTurns(tables: Tables, rootId: Id | undefined): Generator<Turn> {
  for (const { row } of tables.openTurns) if (rootId === undefined || row.rootId === rootId) yield row
}

function* openRoots(tables: Tables, owner: string | undefined): Generator<Turn> {
  for (const { row, conversation } of tables.openTurns) {
    if (conversation.row.type === 'user' && isOwnedBy(conversation.tree, owner)) yield row
  }
}

function isOwnedBy({ owner }: StoredTree, wanted: string | undefined): boolean {
  return wanted === undefined || owner === wanted
}
