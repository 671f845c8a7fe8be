import type { Commit } from '../graph/commit.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../graph/rows.ts'

/** A row as it is now, and its number in the file. */
export interface Cell<Row> {
  row: Row
  readonly n: number
}

/** What an accepted commit added to the file. */
export interface Written {
  /** Of its conversations, turns, nodes and links, in this order. */
  readonly numbers: readonly number[]
  /** Undefined for a commit of no tree. */
  readonly tail: Tail | undefined
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
  readonly conversations = new Map<Id, Cell<Conversation>>()
  readonly turns = new Map<Id, Cell<Turn>>()
  readonly nodes = new Map<Id, Cell<Node>>()
  readonly links = new Map<Id, Cell<Link>>()
  /** By lane. */
  readonly turnsOf = new Map<Id, Cell<Turn>[]>()
  /** By turn. */
  readonly nodesOf = new Map<Id, Cell<Node>[]>()
  /** By host turn. */
  readonly linksOf = new Map<Id, Cell<Link>[]>()
  readonly edgesFrom = new Map<Id, readonly Edge[]>()
  readonly edgesTo = new Map<Id, readonly Edge[]>()
  tail: Tail | undefined
}

/** Rows as this process last read or wrote them, tree by tree. Whoever uses it clears it when others may have written. */
export class RowCache {
  private readonly trees = new Map<Id, TreeRows>()
  private readonly homes = new Map<Id, TreeRows>()
  private readonly ended: Id[] = []
  /** Nodes with a block; undefined while unknown. */
  blocks: Set<Id> | undefined
  /** The numbers of the newest row and tree; undefined while unknown. */
  last: { row: number; tree: number } | undefined

  clear(): void {
    this.trees.clear()
    this.homes.clear()
    this.ended.length = 0
    this.blocks = undefined
    this.last = undefined
  }

  /** The rows of the tree that has a row of this id. */
  home(id: Id): TreeRows | undefined {
    return this.homes.get(id)
  }

  tail(rootId: Id): Tail | undefined {
    return this.trees.get(rootId)?.tail
  }

  tree(rootId: Id): TreeRows {
    const known = this.trees.get(rootId)
    if (known !== undefined) return known
    const tree = new TreeRows()
    this.trees.set(rootId, tree)
    this.homes.set(rootId, tree)
    return tree
  }

  putConversation(row: Conversation, n: number): Cell<Conversation> {
    const tree = this.homeOf(row)
    return putCell(tree.conversations, row, n)
  }

  putTurn(row: Turn, n: number): Cell<Turn> {
    return putCell(this.homeOf(row).turns, row, n)
  }

  putNode(row: Node, n: number): Cell<Node> {
    return putCell(this.homeOf(row).nodes, row, n)
  }

  putLink(row: Link, n: number): Cell<Link> {
    return putCell(this.homeOf(row).links, row, n)
  }

  /** Takes what an accepted commit wrote. */
  putCommit(commit: Commit, { numbers, tail }: Written): void {
    if (this.homes.size > MAX_ROWS) this.clear()
    let at = 0
    for (const row of commit.conversations) this.putNewConversation(row, numbers[at++] ?? 0)
    for (const row of commit.turns) this.putNewTurn(row, numbers[at++] ?? 0)
    for (const row of commit.nodes) this.putNewNode(row, numbers[at++] ?? 0)
    for (const row of commit.links) this.putNewLink(row, numbers[at++] ?? 0)
    for (const edge of commit.edges) this.putEdge(edge)
    if (commit.rootId === null || tail === undefined) return
    this.tree(commit.rootId).tail = tail
    const hasEnded = commit.turns.some((turn) => turn.state === 'ended' && turn.conversationId === commit.rootId)
    if (hasEnded) this.end(commit.rootId)
  }

  private homeOf({ id, rootId }: { readonly id: Id; readonly rootId: Id }): TreeRows {
    const tree = this.tree(rootId)
    this.homes.set(id, tree)
    return tree
  }

  private putNewConversation(row: Conversation, n: number): void {
    this.putConversation(row, n)
    if (row.version === 1) this.tree(row.rootId).turnsOf.set(row.id, [])
  }

  private putNewTurn(row: Turn, n: number): void {
    const cell = this.putTurn(row, n)
    if (row.version !== 1) return
    const tree = this.tree(row.rootId)
    insertByOrdinal(tree.turnsOf.get(row.laneId), cell)
    tree.nodesOf.set(row.id, [])
    tree.linksOf.set(row.id, [])
  }

  private putNewNode(row: Node, n: number): void {
    const cell = this.putNode(row, n)
    if (row.version !== 1) return
    const tree = this.tree(row.rootId)
    insertByOrdinal(tree.nodesOf.get(row.turnId), cell)
    tree.edgesFrom.set(row.id, [])
    tree.edgesTo.set(row.id, [])
  }

  private putNewLink(row: Link, n: number): void {
    const cell = this.putLink(row, n)
    if (row.version === 1) insertByOrdinal(this.tree(row.rootId).linksOf.get(row.hostTurnId), cell)
  }

  private putEdge(edge: Edge): void {
    const { edgesFrom, edgesTo } = this.tree(edge.rootId)
    const [from, to] = [edgesFrom.get(edge.from), edgesTo.get(edge.to)]
    if (from !== undefined) edgesFrom.set(edge.from, [...from, edge])
    if (to !== undefined) edgesTo.set(edge.to, [...to, edge])
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
}

const MAX_ENDED = 16
/** A full cache starts anew: what is in use comes back at the price of one read. */
const MAX_ROWS = 20_000

function putCell<Row extends { readonly id: Id }>(cells: Map<Id, Cell<Row>>, row: Row, n: number): Cell<Row> {
  const known = cells.get(row.id)
  if (known !== undefined) {
    known.row = row
    return known
  }
  const cell = { row, n }
  cells.set(row.id, cell)
  return cell
}

function insertByOrdinal<Row extends { readonly ordinal: number }>(cells: Cell<Row>[] | undefined, cell: Cell<Row>) {
  if (cells === undefined) return
  let at = cells.length
  while (at > 0 && (cells[at - 1]?.row.ordinal ?? 0) > cell.row.ordinal) at--
  cells.splice(at, 0, cell)
}
