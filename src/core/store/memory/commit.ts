import { added } from '../../base/collections.ts'
import type { Commit, LiveBlock } from '../../graph/commit.ts'
import type { EventRow } from '../../graph/event.ts'
import { isOpen } from '../../graph/kinds.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../../graph/rows.ts'
import { foreignRow, knownEdge, requireNoTreeRows, staleRow, takenKey, unknownTree, wrongEdge } from '../store.ts'
import {
  ConversationEntry,
  inserted,
  LaneEntry,
  LinkEntry,
  NodeEntry,
  own,
  StoredTree,
  type Tables,
  TurnEntry,
} from './tables.ts'

/** Applies the whole commit, or throws ConflictError and leaves the tables as they were. */
export function applyCommit(tables: Tables, commit: Commit): StoredTree | undefined {
  // A plan on exactly these rows cannot contradict them.
  if (commit.plannedOn !== tables.writes) checkCommit(tables, commit)
  tables.writes++
  for (const row of commit.conversations) putConversation(tables, row)
  for (const row of commit.turns) putTurn(tables, row)
  for (const row of commit.nodes) putNode(tables, row)
  for (const row of commit.links) putLink(tables, row)
  for (const edge of commit.edges) putEdge(tables, edge)
  for (const engine of commit.engines) tables.engines.set(engine.id, engine)
  const tree = commit.rootId === null ? undefined : tables.trees.get(commit.rootId)
  if (tree !== undefined) extend(tables, tree, commit)
  putUntracked(tables, commit)
  return tree
}

/** Throws ConflictError when `applyCommit` would. */
export function checkCommit(tables: Tables, commit: Commit): void {
  new Check(tables, commit).all()
}

/** Checks every reason to refuse a commit, before the first change. */
class Check {
  private readonly tables: Tables
  private readonly commit: Commit
  private newNodes: Map<Id, Node> | null = null
  private newTurns: Map<Id, Turn> | null = null

  constructor(tables: Tables, commit: Commit) {
    this.tables = tables
    this.commit = commit
  }

  all(): void {
    const { tables, commit } = this
    if (commit.rootId === null) requireNoTreeRows(commit)
    else if (
      tables.trees.get(commit.rootId) === undefined &&
      !commit.conversations.some(({ id }) => id === commit.rootId)
    ) {
      throw unknownTree(commit.rootId, commit)
    }
    for (const row of commit.conversations) this.conversation(row)
    for (const row of commit.turns) this.turn(row)
    for (const row of commit.nodes) this.node(row)
    for (const row of commit.links) this.link(row)
    for (const row of commit.engines) expectVersion('engines', row, tables.engines.get(row.id))
    for (let at = 0; at < commit.edges.length; at++) this.edge(commit.edges[at] as Edge, at)
  }

  private conversation(row: Conversation): void {
    const known = this.tables.conversations.get(row.id)?.row
    if (row.rootId !== this.commit.rootId) throw foreignRow('conversations', row.id)
    expectVersion('conversations', row, known)
    if (known !== undefined && known.rootId !== row.rootId) throw foreignRow('conversations', row.id)
  }

  private turn(row: Turn): void {
    const known = this.tables.turns.get(row.id)?.row
    if (row.rootId !== this.commit.rootId) throw foreignRow('turns', row.id)
    expectVersion('turns', row, known)
    const home = known ?? this.conversationOf(row.conversationId)
    const homeId = known === undefined ? home?.id : known.conversationId
    if (home === undefined || home.rootId !== row.rootId || homeId !== row.conversationId) {
      throw foreignRow('turns', row.id)
    }
  }

  private node(row: Node): void {
    const known = this.tables.nodes.get(row.id)?.row
    if (row.rootId !== this.commit.rootId) throw foreignRow('nodes', row.id)
    expectVersion('nodes', row, known)
    if (known !== undefined) {
      if (known.turnId !== row.turnId) throw foreignRow('nodes', row.id)
      return
    }
    const turn = this.turnOf(row.turnId)
    if (turn === undefined || turn.rootId !== row.rootId || turn.conversationId !== row.conversationId) {
      throw foreignRow('nodes', row.id)
    }
    if (row.idempotencyKey !== null) this.key(row)
  }

  private key(row: Node): void {
    const isTaken = (other: Node) =>
      other !== row &&
      other.turnId === row.turnId &&
      other.kind === row.kind &&
      other.idempotencyKey === row.idempotencyKey
    const stored = this.tables.turns.get(row.turnId)?.nodes ?? []
    if (stored.some((entry) => isTaken(entry.row)) || this.commit.nodes.some(isTaken)) throw takenKey(row)
  }

  private link(row: Link): void {
    const known = this.tables.links.get(row.id)?.row
    if (row.rootId !== this.commit.rootId) throw foreignRow('links', row.id)
    expectVersion('links', row, known)
    const host = known === undefined ? this.turnOf(row.hostTurnId)?.id : known.hostTurnId
    if (host !== row.hostTurnId) throw foreignRow('links', row.id)
  }

  private edge(edge: Edge, at: number): void {
    const from = this.tables.nodes.get(edge.from)
    const to = this.tables.nodes.get(edge.to)
    const source = from?.row ?? this.newNode(edge.from)
    const target = to?.row ?? this.newNode(edge.to)
    if (source === undefined || target === undefined || source === target) throw wrongEdge(edge)
    if (!isOf(edge, source) || !isOf(edge, target)) throw wrongEdge(edge)
    if (from?.edgesOut?.some((other) => isSame(other, edge))) throw knownEdge(edge)
    const previous = this.commit.edges[at - 1]
    if (previous !== undefined && isSame(previous, edge)) throw knownEdge(edge)
  }

  private conversationOf(id: Id): Conversation | undefined {
    return this.tables.conversations.get(id)?.row ?? this.commit.conversations.find((row) => row.id === id)
  }

  private turnOf(id: Id): Turn | undefined {
    return this.tables.turns.get(id)?.row ?? this.newTurn(id)
  }

  private newTurn(id: Id): Turn | undefined {
    const { turns } = this.commit
    if (turns.length <= FEW) return turns.find((row) => row.id === id)
    this.newTurns ??= new Map(turns.map((row) => [row.id, row]))
    return this.newTurns.get(id)
  }

  private newNode(id: Id): Node | undefined {
    const { nodes } = this.commit
    if (nodes.length <= FEW) {
      for (const row of nodes) if (row.id === id) return row
      return undefined
    }
    this.newNodes ??= new Map(nodes.map((row) => [row.id, row]))
    return this.newNodes.get(id)
  }
}

/** Up to this many rows are searched, not indexed. */
const FEW = 16

function isSame(a: Edge, b: Edge): boolean {
  return a.to === b.to && a.from === b.from && a.type === b.type
}

function isOf(edge: Edge, node: Node): boolean {
  return node.conversationId === edge.conversationId && node.rootId === edge.rootId
}

function putConversation(tables: Tables, row: Conversation): void {
  const known = row.version === 1 ? undefined : tables.conversations.get(row.id)
  if (known !== undefined) {
    known.row = row
    return
  }
  const tree = tables.trees.get(row.rootId) ?? newTree(tables, row.rootId)
  if (row.owner !== null && row.id === row.rootId) own(tables, tree, row.owner)
  const entry = new ConversationEntry(row, tree)
  tree.conversations = added(tree.conversations, entry)
  tables.conversations.add(row.id, entry)
}

function newTree(tables: Tables, rootId: Id): StoredTree {
  const tree = new StoredTree(rootId, ++tables.treeCount)
  tables.trees.add(rootId, tree)
  return tree
}

function putTurn(tables: Tables, row: Turn): void {
  const known = row.version === 1 ? undefined : tables.turns.get(row.id)
  if (known !== undefined) {
    if (known.row.state !== 'ended' && row.state === 'ended') closeTurn(tables, known)
    if (known.row.state === 'ended' && row.state !== 'ended') openTurn(tables, known)
    countQueued(tables, row, known.row)
    known.row = row
    return
  }
  const conversation = tables.conversations.get(row.conversationId) as ConversationEntry
  const entry = new TurnEntry(row, conversation)
  conversation.turns = added(conversation.turns, entry)
  tables.turns.add(row.id, entry)
  const lane = tables.lanes.get(row.laneId)
  if (lane === undefined) tables.lanes.add(row.laneId, new LaneEntry(row.laneId, entry))
  else lane.turns = inserted(lane.turns, entry)
  countQueued(tables, row, null)
  if (row.state !== 'ended') openTurn(tables, entry)
}

function countQueued(tables: Tables, { laneId, state }: Turn, before: Turn | null): void {
  const isQueued = state === 'queued'
  if (isQueued === (before?.state === 'queued')) return
  const lane = tables.lanes.get(laneId)
  if (lane !== undefined) lane.queued += isQueued ? 1 : -1
}

function openTurn(tables: Tables, entry: TurnEntry): void {
  entry.conversation.tree.openTurns++
  tables.openTurns.add(entry)
}

function closeTurn(tables: Tables, entry: TurnEntry): void {
  entry.conversation.tree.openTurns--
  tables.openTurns.delete(entry)
}

function putNode(tables: Tables, row: Node): void {
  let entry = row.version === 1 ? undefined : tables.nodes.get(row.id)
  if (entry === undefined) {
    const turn = tables.turns.get(row.turnId) as TurnEntry
    entry = new NodeEntry(row, turn)
    turn.nodes = inserted(turn.nodes, entry)
    tables.nodes.add(row.id, entry)
  } else {
    if (isOpen(entry.row.state)) entry.turn.openNodes--
    entry.row = row
  }
  if (isOpen(row.state)) entry.turn.openNodes++
  if (row.state === 'pending' && row.blockers === 0) tables.ready.add(entry)
  else tables.ready.delete(entry)
}

function putLink(tables: Tables, row: Link): void {
  const known = row.version === 1 ? undefined : tables.links.get(row.id)
  if (known !== undefined) {
    known.row = row
    return
  }
  const turn = tables.turns.get(row.hostTurnId) as TurnEntry
  const entry = new LinkEntry(row)
  turn.links = inserted(turn.links, entry)
  tables.links.add(row.id, entry)
}

function putEdge(tables: Tables, edge: Edge): void {
  const from = tables.nodes.get(edge.from) as NodeEntry
  if (from.edgesOut === null) from.edgesOut = [edge]
  else from.edgesOut.push(edge)
  const to = tables.nodes.get(edge.to)
  if (to === undefined) return
  if (to.edgesIn === null) to.edgesIn = [edge]
  else to.edgesIn.push(edge)
}

function extend(tables: Tables, tree: StoredTree, commit: Commit): void {
  for (const event of commit.events) {
    ;(event as { seq: number } & EventRow).seq = ++tree.seq
    tree.events.push(event)
  }
  for (const { hash, text } of commit.bodies) {
    if (!tables.bodies.has(hash)) tables.bodies.set(hash, { text, trees: 0 })
    holdBody(tables, tree, hash)
  }
  for (const { output } of commit.nodes) if (output.bodyRef !== undefined) holdBody(tables, tree, output.bodyRef)
}

/** Keeps a body as long as a tree that brought it or names it. */
function holdBody(tables: Tables, tree: StoredTree, hash: string): void {
  const body = tables.bodies.get(hash)
  if (body === undefined || tree.bodies?.has(hash)) return
  tree.bodies ??= new Set()
  tree.bodies.add(hash)
  body.trees++
}

function addBlock(tables: Tables, block: LiveBlock): void {
  const stored = { ...block, n: ++tables.lastBlock }
  const known = tables.blocks.get(block.nodeId)
  if (known === undefined) tables.blocks.set(block.nodeId, [stored])
  else known.push(stored)
}

/** Puts rows without a version. Skips blocks of a lost claim, or of a node that has ended. */
function putUntracked(tables: Tables, commit: Commit): void {
  for (const id of commit.dropEngines) tables.engines.delete(id)
  for (const block of commit.blocks) {
    const node = tables.nodes.get(block.nodeId)?.row
    if (node?.state === 'running' && node.epoch === block.epoch) addBlock(tables, block)
  }
  if (tables.blocks.size > 0) for (const id of commit.dropBlocks) tables.blocks.delete(id)
}

function expectVersion(
  table: string,
  row: { readonly id: Id; readonly version: number },
  known: { readonly version: number } | undefined,
): void {
  if ((known === undefined ? 0 : known.version) !== row.version - 1) throw staleRow(table, row)
}
