import type { Commit } from '../graph/commit.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../graph/rows.ts'

/** The row as it is now. */
export interface Cell<Row> {
  row: Row
}

/** Where the log of a tree ends. */
export interface Tail {
  /** The tree's number in the file. */
  readonly tree: number
  /** The number of its last commit. */
  readonly commit: number
  readonly seq: number
  readonly hash: string
}

/** Known rows of one tree. A list is there only if it is complete. */
export class TreeRows {
  readonly conversations = new Map<Id, Conversation>()
  readonly turns = new Map<Id, Cell<Turn>>()
  readonly nodes = new Map<Id, Cell<Node>>()
  readonly links = new Map<Id, Cell<Link>>()
  /** By lane. */
  readonly turnsOf = new Map<Id, Cell<Turn>[]>()
  /** By turn. */
  readonly nodesOf = new Map<Id, Cell<Node>[]>()
  /** By host turn. */
  readonly linksOf = new Map<Id, Cell<Link>[]>()
  readonly edgesFrom = new Map<Id, Edge[]>()
  readonly edgesTo = new Map<Id, Edge[]>()
  tail: Tail | undefined
}

/** Rows as this process last read or wrote them, tree by tree. Whoever uses it clears it when others may have written. */
export class RowCache {
  private readonly trees = new Map<Id, TreeRows>()
  private readonly homes = new Map<Id, TreeRows>()
  private readonly ended: Id[] = []
  /** Nodes with a block; undefined while unknown. */
  blocks: Set<Id> | undefined
  /** The number of the newest tree; undefined while unknown. */
  lastTree: number | undefined

  clear(): void {
    this.trees.clear()
    this.homes.clear()
    this.ended.length = 0
    this.blocks = undefined
    this.lastTree = undefined
  }

  /** The rows of the tree that has a row of this id. */
  home(id: Id): TreeRows | undefined {
    return this.homes.get(id)
  }

  tree(rootId: Id): TreeRows {
    const known = this.trees.get(rootId)
    if (known !== undefined) return known
    const tree = new TreeRows()
    this.trees.set(rootId, tree)
    this.homes.set(rootId, tree)
    return tree
  }

  putConversation(row: Conversation): void {
    const tree = this.tree(row.rootId)
    tree.conversations.set(row.id, row)
    this.homes.set(row.id, tree)
  }

  putTurn(row: Turn): Cell<Turn> {
    const tree = this.tree(row.rootId)
    this.homes.set(row.id, tree)
    return putCell(tree.turns, row)
  }

  putNode(row: Node): Cell<Node> {
    const tree = this.tree(row.rootId)
    this.homes.set(row.id, tree)
    return putCell(tree.nodes, row)
  }

  putLink(row: Link): Cell<Link> {
    const tree = this.tree(row.rootId)
    this.homes.set(row.id, tree)
    return putCell(tree.links, row)
  }

  /** Takes what an accepted commit wrote. */
  putCommit(commit: Commit, tail: Tail | undefined): void {
    this.makeRoom()
    for (const row of commit.conversations) this.putNewConversation(row)
    for (const row of commit.turns) this.putNewTurn(row)
    for (const row of commit.nodes) this.putNewNode(row)
    for (const row of commit.links) this.putNewLink(row)
    for (const edge of commit.edges) this.putEdge(edge)
    if (commit.rootId === null || tail === undefined) return
    this.tree(commit.rootId).tail = tail
    const hasEnded = commit.turns.some((turn) => turn.state === 'ended' && turn.conversationId === commit.rootId)
    if (hasEnded) this.end(commit.rootId)
  }

  private putNewConversation(row: Conversation): void {
    this.putConversation(row)
    if (row.version === 1) this.tree(row.rootId).turnsOf.set(row.id, [])
  }

  private putNewTurn(row: Turn): void {
    const tree = this.tree(row.rootId)
    const cell = this.putTurn(row)
    if (row.version !== 1) return
    insertByOrdinal(tree.turnsOf.get(row.laneId), cell)
    tree.nodesOf.set(row.id, [])
    tree.linksOf.set(row.id, [])
  }

  private putNewNode(row: Node): void {
    const tree = this.tree(row.rootId)
    const cell = this.putNode(row)
    if (row.version !== 1) return
    insertByOrdinal(tree.nodesOf.get(row.turnId), cell)
    tree.edgesFrom.set(row.id, [])
    tree.edgesTo.set(row.id, [])
  }

  private putNewLink(row: Link): void {
    const cell = this.putLink(row)
    if (row.version === 1) insertByOrdinal(this.tree(row.rootId).linksOf.get(row.hostTurnId), cell)
  }

  private putEdge(edge: Edge): void {
    const { edgesFrom, edgesTo } = this.tree(edge.rootId)
    edgesFrom.get(edge.from)?.push(edge)
    edgesTo.get(edge.to)?.push(edge)
  }

  /** Of trees whose root has no running turn only the last few are kept. */
  private end(rootId: Id): void {
    const at = this.ended.indexOf(rootId)
    if (at >= 0) this.ended.splice(at, 1)
    this.ended.push(rootId)
    const oldest = this.ended.length > MAX_ENDED ? this.ended.shift() : undefined
    const tree = oldest === undefined ? undefined : this.trees.get(oldest)
    if (oldest === undefined || tree === undefined) return
    this.trees.delete(oldest)
    for (const rows of [tree.conversations, tree.turns, tree.nodes, tree.links]) {
      for (const id of rows.keys()) if (this.homes.get(id) === tree) this.homes.delete(id)
    }
    if (this.homes.get(oldest) === tree) this.homes.delete(oldest)
  }

  /** A full cache starts anew: what is in use comes back at the price of one read. */
  makeRoom(): void {
    if (this.homes.size > MAX_ROWS) this.clear()
  }
}

const MAX_ENDED = 16
const MAX_ROWS = 20_000

function putCell<Row extends { readonly id: Id }>(cells: Map<Id, Cell<Row>>, row: Row): Cell<Row> {
  const known = cells.get(row.id)
  if (known !== undefined) {
    known.row = row
    return known
  }
  const cell = { row }
  cells.set(row.id, cell)
  return cell
}

function insertByOrdinal<Row extends { readonly ordinal: number }>(cells: Cell<Row>[] | undefined, cell: Cell<Row>) {
  if (cells === undefined) return
  let at = cells.length
  while (at > 0 && (cells[at - 1]?.row.ordinal ?? 0) > cell.row.ordinal) at--
  cells.splice(at, 0, cell)
}
