import type { KeptAlive } from '../base/keep-shape.ts'
import type { Commit } from '../graph/commit.ts'
import type { Conversation, Edge, Id, Link, Node, Turn } from '../graph/rows.ts'

/** A row in its newest version, and its number in the file. */
export interface Cell<Row> {
  row: Row
  readonly n: number
}

/** A turn in the cache, together with all rows that belong to it. */
export interface TurnCell extends Cell<Turn> {
  /** By ordinal. */
  readonly nodes: NodeCell[]
  /** By ordinal. */
  readonly links: Cell<Link>[]
  /** The number of the newest row of its span. */
  last: number
}

export interface NodeCell extends Cell<Node> {
  edgesFrom: readonly Edge[]
  edgesTo: readonly Edge[]
}

/** The numbers that an accepted commit got in the file. */
export interface WrittenNumbers {
  /** The numbers of its conversations, turns, nodes and links, in this order. */
  readonly numbers: readonly number[]
  /** By turn: the number of the newest row of its span. */
  readonly ends: ReadonlyMap<Id, number>
  /** Undefined for a commit of no tree. */
  readonly tail: Tail | undefined
}

/** Where the log of a tree ends. */
export interface Tail {
  /** The tree's number in the file: the span of its root conversation. */
  readonly tree: number
  /** The number of its last commit. */
  readonly commit: number
  readonly seq: number
  readonly hash: string
}

/** The cached rows of one tree. */
export class CachedTree {
  readonly conversations = new Map<Id, Cell<Conversation>>()
  readonly turns = new Map<Id, TurnCell>()
  /** By the number of the row. */
  readonly turnsAt = new Map<number, TurnCell>()
  readonly nodes = new Map<Id, NodeCell>()
  readonly links = new Map<Id, Cell<Link>>()
  /** By lane. */
  readonly turnsOf = new Map<Id, LaneList<TurnCell>>()
  tail: Tail | undefined
}

/** Rows as this process last read or wrote them, tree by tree. Its user clears it when others may have written. */
export class RowCache {
  private readonly trees = new Map<Id, CachedTree>()
  private readonly homes = new Map<Id, CachedTree>()
  private readonly ended: Id[] = []
  /** Nodes with a block; undefined while unknown. */
  blocks: Set<Id> | undefined
  /** No uncached row has a greater id; undefined while that is unknown. */
  greatestId: Id | undefined
  /** The newest span; undefined while unknown. */
  lastSpan: number | undefined
  /** The newest change of the feed; undefined while unknown. */
  lastChange: number | undefined
  /** The last commit of a tree and the last of none, each with what checked and numbered it. */
  protected last: KeptAlive
  protected lastBeside: KeptAlive

  /** Forgets rows where there are too many: trees that have ended first, the others only if that is not enough. */
  makeRoom(): void {
    if (this.homes.size <= MAX_ROWS) return
    while (this.homes.size > MAX_ROWS / 2 && this.ended.length > 0) this.forgetEnded()
    if (this.homes.size > MAX_ROWS) this.clear()
  }

  keep({ rootId }: Commit, made: KeptAlive): void {
    if (rootId === null) this.lastBeside = made
    else this.last = made
  }

  clear(): void {
    this.trees.clear()
    this.homes.clear()
    this.ended.length = 0
    this.blocks = undefined
    this.greatestId = undefined
    this.lastSpan = undefined
    this.lastChange = undefined
  }

  /** The rows of the tree that has a row of this id. */
  home(id: Id): CachedTree | undefined {
    return this.homes.get(id)
  }

  tail(rootId: Id): Tail | undefined {
    return this.trees.get(rootId)?.tail
  }

  tree(rootId: Id): CachedTree {
    const known = this.trees.get(rootId)
    if (known !== undefined) return known
    const tree = new CachedTree()
    this.trees.set(rootId, tree)
    this.homes.set(rootId, tree)
    return tree
  }

  /** Adds turns that were read from a lane; `last` is the ordinal of the query. */
  learnTurns(cells: readonly TurnCell[], last: number): void {
    const [cell] = cells
    if (cell === undefined) return
    const { laneId, rootId } = cell.row
    const { turnsOf } = this.tree(rootId)
    const list = turnsOf.get(laneId) ?? new LaneList(false)
    turnsOf.set(laneId, list)
    this.homes.set(laneId, this.tree(rootId))
    list.learn(cells, last)
  }

  addConversation(row: Conversation, n: number): void {
    this.homeOf(row).conversations.set(row.id, { row, n })
  }

  /** Adds a turn; the caller then adds all rows of its span. */
  addTurn(row: Turn, n: number): TurnCell {
    const cell = { row, n, nodes: [], links: [], last: n }
    const tree = this.homeOf(row)
    tree.turns.set(row.id, cell)
    tree.turnsAt.set(n, cell)
    return cell
  }

  addNode(turn: TurnCell, row: Node, n: number): NodeCell {
    const cell = { row, n, edgesFrom: NO_EDGES, edgesTo: NO_EDGES }
    this.homeOf(row).nodes.set(row.id, cell)
    insertByOrdinal(turn.nodes, cell)
    return cell
  }

  addLink(turn: TurnCell, row: Link, n: number): void {
    const cell = { row, n }
    this.homeOf(row).links.set(row.id, cell)
    insertByOrdinal(turn.links, cell)
  }

  /** Adds the rows of an accepted commit. The cache has the rows that it changed: the commit was checked against them. */
  putCommit(commit: Commit, { numbers, ends, tail }: WrittenNumbers): void {
    if (commit.rootId === null || tail === undefined) return
    const tree = this.tree(commit.rootId)
    tree.tail = tail
    let at = 0
    for (const row of commit.conversations) this.putConversation(tree, row, numbers[at++] ?? 0)
    for (const row of commit.turns) this.putTurn(tree, row, numbers[at++] ?? 0)
    for (const row of commit.nodes) this.putNode(tree, row, numbers[at++] ?? 0)
    for (const row of commit.links) this.putLink(tree, row, numbers[at++] ?? 0)
    for (const edge of commit.edges) putEdge(tree.nodes, edge)
    for (const [turnId, last] of ends) setLast(tree.turns.get(turnId), last)
    const hasEnded = commit.turns.some((turn) => turn.state === 'ended' && turn.conversationId === commit.rootId)
    if (hasEnded) this.end(commit.rootId)
  }

  private homeOf({ id, rootId }: { readonly id: Id; readonly rootId: Id }): CachedTree {
    const tree = this.tree(rootId)
    this.homes.set(id, tree)
    return tree
  }

  private putConversation(tree: CachedTree, row: Conversation, n: number): void {
    const known = tree.conversations.get(row.id)
    if (known !== undefined) known.row = row
    else {
      this.addConversation(row, n)
      tree.turnsOf.set(row.id, new LaneList(true))
    }
  }

  private putTurn(tree: CachedTree, row: Turn, n: number): void {
    const known = tree.turns.get(row.id)
    const lane = tree.turnsOf.get(row.laneId)
    if (known === undefined) {
      const cell = this.addTurn(row, n)
      lane?.put(cell)
    } else {
      known.row = row
      if (row.state === 'queued') lane?.queue(row.ordinal)
    }
  }

  private putNode(tree: CachedTree, row: Node, n: number): void {
    const known = tree.nodes.get(row.id)
    const turn = tree.turns.get(row.turnId)
    if (known !== undefined) known.row = row
    else if (turn !== undefined) this.addNode(turn, row, n)
    else this.leaveOut(row.id)
  }

  private putLink(tree: CachedTree, row: Link, n: number): void {
    const known = tree.links.get(row.id)
    const turn = tree.turns.get(row.hostTurnId)
    if (known !== undefined) known.row = row
    else if (turn !== undefined) this.addLink(turn, row, n)
    else this.leaveOut(row.id)
  }

  /** Keeps only the last few trees whose root has no running turn. */
  private end(rootId: Id): void {
    const at = this.ended.indexOf(rootId)
    if (at >= 0) this.ended.splice(at, 1)
    this.ended.push(rootId)
    if (this.ended.length > MAX_ENDED) this.forgetEnded()
  }

  private forgetEnded(): void {
    const oldest = this.ended.shift()
    const tree = oldest === undefined ? undefined : this.trees.get(oldest)
    if (oldest === undefined || tree === undefined) return
    this.trees.delete(oldest)
    for (const rows of [tree.conversations, tree.turns, tree.nodes, tree.links, tree.turnsOf]) {
      for (const id of rows.keys()) {
        if (this.homes.get(id) === tree) this.homes.delete(id)
        this.leaveOut(id)
      }
    }
    if (this.homes.get(oldest) === tree) this.homes.delete(oldest)
  }

  private leaveOut(id: Id): void {
    if (this.greatestId !== undefined && id > this.greatestId) this.greatestId = id
  }
}

const MAX_ENDED = 16
/** Rows in use that were forgotten come back with one read. */
const MAX_ROWS = 20_000
const NO_EDGES: readonly Edge[] = []

/** Copies the lists: readers may hold the old ones. */
function putEdge(nodes: ReadonlyMap<Id, NodeCell>, edge: Edge): void {
  const [from, to] = [nodes.get(edge.from), nodes.get(edge.to)]
  if (from !== undefined) from.edgesFrom = [...from.edgesFrom, edge]
  if (to !== undefined) to.edgesTo = [...to.edgesTo, edge]
}

function setLast(turn: TurnCell | undefined, last: number): void {
  if (turn !== undefined) turn.last = last
}

function insertByOrdinal<C extends Cell<{ readonly ordinal: number }>>(cells: C[], cell: C): void {
  let at = cells.length
  while (at > 0 && (cells[at - 1]?.row.ordinal ?? 0) > cell.row.ordinal) at--
  // Rows come in order, except in hand-made commits, and `splice` would create a list of removed items.
  if (at === cells.length) cells.push(cell)
  else cells.splice(at, 0, cell)
}

interface TurnOfLane {
  readonly row: { readonly ordinal: number; readonly state: string }
}

/** The known turns of a lane. Ordinals of a lane have no gaps: consecutive turns are complete. */
export class LaneList<C extends TurnOfLane> {
  /** By ordinal. */
  private readonly cells: C[] = []
  /** True where all turns are here: this process made the lane. */
  readonly isWhole: boolean
  private hasNewest: boolean
  /** No turn before this place is queued. */
  private begun = 0

  constructor(isWhole: boolean) {
    this.isWhole = isWhole
    this.hasNewest = isWhole
  }

  /** Adds a turn that was made or read. */
  put(cell: C): void {
    const { ordinal } = cell.row
    const end = this.end(ordinal)
    for (let at = end - 1; this.cells[at]?.row.ordinal === ordinal; at--) if (this.cells[at] === cell) return
    this.cells.splice(end, 0, cell)
    this.queue(ordinal)
  }

  /** Takes note that the turn of this ordinal may be queued. */
  queue(ordinal: number): void {
    if (this.begun > 0) this.begun = Math.min(this.begun, this.end(ordinal - 1))
  }

  /** Adds turns that were read. `last` is the ordinal of the query: more than there are if the newest was wanted. */
  learn(cells: readonly C[], last: number): void {
    for (const cell of cells) this.put(cell)
    if (last === Number.MAX_SAFE_INTEGER) this.hasNewest = true
  }

  /** The newest turns up to an ordinal, oldest first; undefined when they are not all known. */
  upTo(last: number, limit: number): C[] | undefined {
    const end = this.end(last)
    const first = Math.max(0, end - limit)
    return this.isWhole || this.isKnown({ first, end, last, limit }) ? this.cells.slice(first, end) : undefined
  }

  /** The next queued turn, in a complete list. Turns begin in order: those that have begun are passed once. */
  queued(): C | undefined {
    while (this.begun < this.cells.length && this.cells[this.begun]?.row.state !== 'queued') this.begun++
    return this.cells[this.begun]
  }

  private isKnown({ first, end, last, limit }: { first: number; end: number; last: number; limit: number }): boolean {
    const [oldest, newest] = [this.cells[first]?.row.ordinal, this.cells[end - 1]?.row.ordinal]
    if (oldest === undefined || newest === undefined || newest - oldest !== end - first - 1) return false
    const isTop = newest === last || (this.hasNewest && end === this.cells.length)
    return isTop && (end - first === limit || oldest === 0)
  }

  /** Counts the turns up to an ordinal. */
  private end(last: number): number {
    let [low, high] = [0, this.cells.length]
    if ((this.cells[high - 1]?.row.ordinal ?? -1) <= last) return high
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.cells[middle]?.row.ordinal ?? 0) <= last) low = middle + 1
      else high = middle
    }
    return low
  }
}
