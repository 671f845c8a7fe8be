import { parseOwnJson } from '../../base/json.ts'
import { type Commit, emptyCommit } from '../../graph/commit.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Body, Edge, EdgeType, Id, Turn } from '../../graph/rows.ts'
import { edgeType, parseRow, toConversation, toLink, toNode, toTurn } from '../codec/rows.ts'
import { applyCommit } from '../memory/commit.ts'
import { memoryReader } from '../memory/scan.ts'
import { emptyTables, type NodeEntry, type Tables } from '../memory/tables.ts'
import type { Head, StoredRow, TreePart } from './transport.ts'

/** The rows of one tree in this process. They are as old as its head. */
export class Replica {
  readonly rootId: Id
  /** Its rows, for readers and plans that have just compared it with the database. */
  readonly reader: TreeReader
  /** For plans that have not: their commits say on which head they were made. */
  readonly unchecked: TreeReader
  head: Head | undefined
  /** The number of the last commit that this process has heard of; beyond all numbers where it has not looked. */
  private newest = UNKNOWN
  /** Its rows; a tree that was deleted and made again has new ones. */
  private tables: Tables = emptyTables()

  constructor(rootId: Id, requireOpen: () => void) {
    this.rootId = rootId
    const rows = () => {
      requireOpen()
      return this.tables
    }
    this.reader = readerOf(this, rows, () => CHECKED)
    this.unchecked = readerOf(this, rows, () => this.head?.n ?? 0)
  }

  /** Its rows, for checks. */
  get rows(): Tables {
    return this.tables
  }

  /** False where a commit is known that it does not have. */
  get isCurrent(): boolean {
    return (this.head?.n ?? 0) >= this.newest
  }

  /** About how many rows it has; an empty one takes room, too. */
  get size(): number {
    return this.tables.nodes.size + this.tables.turns.size + ROOM
  }

  clear(): void {
    this.tables = Object.assign(emptyTables(), { writes: this.tables.writes + 1 })
    this.head = undefined
    this.newest = UNKNOWN
  }

  /** There is no such tree. */
  empty(): void {
    if (this.head !== undefined) this.clear()
    this.newest = 0
  }

  /** Somebody else has written to it. */
  markOld(): void {
    this.newest = (this.head?.n ?? 0) + 1
  }

  /** True where its rows are those of this head, or newer. Trees that are made later have greater numbers. */
  has({ tree, n }: Head): boolean {
    if (this.head === undefined) return false
    return this.head.tree === tree ? this.head.n >= n : this.head.tree > tree
  }

  /** Takes what was written after its head. Rows that it has in a later version stay. */
  take({ head, rows, bodies }: TreePart): void {
    if (this.newest === UNKNOWN) this.newest = head.n
    if (this.has(head)) return
    const read = unpacked(this.rootId, rows, (id) => this.reader.turn(id))
    putRows(this.tables, { rootId: this.rootId, rows: read, bodies })
    this.head = head
  }

  /** Takes a whole tree, which was put into tables of its own. */
  adopt(tables: Tables, head: Head): void {
    if (this.has(head)) return
    tables.writes = this.tables.writes + 1
    this.tables = tables
    this.head = head
    this.newest = head.n
  }

  /** Takes a commit of this process, where nobody else has written in between. */
  takeOwn(commit: Commit, head: Head): void {
    const isNext = this.head === undefined ? head.n === 1 : this.head.tree === head.tree && this.head.n === head.n - 1
    if (isNext) {
      putRows(this.tables, { rootId: this.rootId, rows: commit, bodies: commit.bodies })
      this.head = head
      if (this.newest === UNKNOWN) this.newest = head.n
    } else if (!this.has(head)) this.newest = this.head?.tree === head.tree ? Math.max(this.newest, head.n) : UNKNOWN
  }
}

/** So many rows are read in one turn of the event loop. */
const LOT = 2_000

/** Reads a whole tree, however large it is, and lets other work run meanwhile. */
export async function tablesOf(rootId: Id, { rows, bodies }: TreePart, defer: () => Promise<void>): Promise<Tables> {
  const tables = emptyTables()
  const turn = (id: Id) => tables.turns.get(id)?.row
  for (let at = 0; at < rows.length; at += LOT) {
    if (at > 0) await defer()
    putRows(tables, { rootId, rows: unpacked(rootId, rows.slice(at, at + LOT), turn), bodies: [] })
  }
  putRows(tables, { rootId, rows: emptyCommit('mutate', 0, rootId), bodies })
  return tables
}

interface ReadRows {
  readonly rootId: Id
  readonly rows: Commit
  readonly bodies: readonly Body[]
}

function putRows(tables: Tables, { rootId, rows, bodies }: ReadRows): void {
  const { conversations, turns, nodes, links } = tables
  applyCommit(tables, {
    ...emptyCommit('mutate', 0, rootId),
    conversations: rows.conversations.filter(isNewIn(conversations)),
    turns: rows.turns.filter(isNewIn(turns)),
    nodes: rows.nodes.filter(isNewIn(nodes)),
    links: rows.links.filter(isNewIn(links)),
    bodies,
    // The database has checked them.
    plannedOn: tables.writes,
  })
  for (const edge of rows.edges) putEdge(tables, edge)
}

interface Versioned {
  readonly id: Id
  readonly version: number
}

interface KnownRows<Row extends Versioned> {
  get(id: Id): { readonly row: Row } | undefined
}

function isNewIn<Row extends Versioned>(known: KnownRows<Row>): (row: Row) => boolean {
  return (row) => (known.get(row.id)?.row.version ?? 0) < row.version
}

function putEdge({ nodes }: Tables, edge: Edge): void {
  const from = nodes.get(edge.from)
  const to = nodes.get(edge.to)
  if (from !== undefined) from.edgesOut = withEdge(from.edgesOut, edge)
  if (to !== undefined) to.edgesIn = withEdge(to.edgesIn, edge)
}

function withEdge(known: NodeEntry['edgesOut'], edge: Edge): Edge[] {
  if (known === null) return [edge]
  if (!known.some(({ from, to, type }) => from === edge.from && to === edge.to && type === edge.type)) known.push(edge)
  return known
}

const UNKNOWN = Number.POSITIVE_INFINITY
const ROOM = 16

/** The head of a plan on checked rows. */
export const CHECKED = -1

function readerOf(replica: Replica, tables: () => Tables, writes: () => number): TreeReader {
  const { rootId } = replica
  const all = memoryReader(tables)
  return {
    writes,
    conversation: all.conversation,
    turn: all.turn,
    node: all.node,
    link: all.link,
    body: all.body,
    edgesFrom: all.edgesFrom,
    edgesTo: all.edgesTo,
    nodesOf: all.nodesOf,
    openNodes: all.openNodes,
    nodeByKey: all.nodeByKey,
    linksOf: all.linksOf,
    linkAt: all.linkAt,
    openLinks: all.openLinks,
    turnsOf: all.turnsOf,
    queuedTurn: all.queuedTurn,
    lastSeq: (id) => {
      tables()
      return id === rootId ? (replica.head?.seq ?? 0) : 0
    },
  }
}

/** Reads stored rows. A node tells its turn only by its place, so turns that were there before are looked up. */
function unpacked(rootId: Id, rows: readonly StoredRow[], turnThere: (id: Id) => Turn | undefined): Commit {
  const found = {
    ...emptyCommit('mutate', 0, rootId),
    conversations: [] as Commit['conversations'][number][],
    turns: [] as Turn[],
    nodes: [] as Commit['nodes'][number][],
    links: [] as Commit['links'][number][],
    edges: [] as Edge[],
  }
  const turns = new Map<Id, Turn>()
  const turnOf = (id: Id | null): Turn | undefined => turns.get(id ?? '') ?? turnThere(id ?? '')
  for (const { letter, turnId, conversationId, text } of rows) {
    if (letter === 'e') {
      found.edges.push(...edgesIn(text, { rootId, conversationId: conversationId ?? '' }))
      continue
    }
    const packed = parseRow(text)
    const turn = turnOf(turnId)
    if ('conversation' in packed) found.conversations.push(toConversation(packed))
    else if ('turn' in packed) turns.set(packed.turn, toTurn(packed))
    else if ('node' in packed && turn !== undefined) found.nodes.push(toNode(packed, turn))
    else if ('link' in packed && turn !== undefined) found.links.push(toLink(packed, turn))
  }
  found.turns.push(...turns.values())
  return found
}

/** The edges of one turn in one commit: `[from, to, first letter of the type]` each. */
export function edgesIn(text: string, place: Pick<Edge, 'rootId' | 'conversationId'>): Edge[] {
  const list = parseOwnJson(text) as readonly (readonly [Id, Id, string])[]
  return list.map(([from, to, letter]) => ({ ...place, from, to, type: edgeType(letter) as EdgeType }))
}
