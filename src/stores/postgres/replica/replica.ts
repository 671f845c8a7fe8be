import { parseOwnJson } from '../../../core/base/json.ts'
import { type Commit, emptyCommit } from '../../../core/graph/commit.ts'
import type { TreeReader } from '../../../core/graph/reader.ts'
import type { Body, Edge, EdgeType, Id, Turn } from '../../../core/graph/rows.ts'
import { edgeType, parseRow, toConversation, toLink, toNode, toTurn } from '../../../core/store/codec/rows.ts'
import { applyCommit } from '../../../core/store/memory/commit.ts'
import { emptyTables, type NodeEntry, type Tables, type TurnEntry } from '../../../core/store/memory/tables.ts'
import { NEWEST, PartialRows, partReader } from './part.ts'
import type { Head, StoredRow, TreePart, WantedRows } from './transport.ts'

/** How much of a large tree is kept. */
export interface ReplicaLimits {
  /** Trees with more rows are not loaded whole. */
  readonly whole: number
  /** So many of the root's newest turns stay here. */
  readonly turns: number
}

export interface ReplicaOptions {
  readonly requireOpen: () => void
  readonly limits: ReplicaLimits
  /** Loads rows of a large tree. */
  readonly find: (replica: Replica, wanted: WantedRows) => Promise<void>
}

/** The rows of one tree in this process: all of them, or the newest of a large one. They are as old as its head. */
export class Replica {
  readonly rootId: Id
  /** For readers and plans that have just compared it with the database. */
  readonly near: TreeReader
  /** For plans that have not: their commits say on which head they were made. */
  readonly unchecked: TreeReader
  head: Head | undefined
  /** True where somebody is said to have written since it was loaded. */
  isHeard = false
  private readonly options: ReplicaOptions
  /** The number of the last commit that this process has heard of; beyond all numbers where it has not looked. */
  private newest = UNKNOWN
  /** Its rows; a tree that was deleted and made again has new ones. Readers of the whole tree keep those that they had. */
  private kept: { tables: Tables }
  private whole: TreeReader
  /** Undefined where the whole tree is here. */
  private part: PartialRows | undefined
  /** With more rows than this, it lets go of old ones. */
  private most: number

  constructor(rootId: Id, options: ReplicaOptions) {
    this.rootId = rootId
    this.options = options
    this.most = options.limits.whole
    this.kept = { tables: emptyTables() }
    this.whole = this.readerOf(this.kept)
    const source = {
      tables: () => {
        options.requireOpen()
        return this.rows
      },
      part: () => this.part,
      find: (wanted: WantedRows) => options.find(this, wanted),
      lastSeq: (id: Id) => this.lastSeq(id),
    }
    this.near = partReader({ ...source, writes: () => CHECKED })
    this.unchecked = partReader({ ...source, writes: () => this.head?.n ?? 0 })
  }

  get limits(): ReplicaLimits {
    return this.options.limits
  }

  /** Its rows. */
  get rows(): Tables {
    return this.kept.tables
  }

  get isWhole(): boolean {
    return this.part === undefined
  }

  /** Reads the whole tree: only where it is whole. */
  get reader(): TreeReader {
    return this.whole
  }

  /** False where a commit is known that it does not have. */
  get isCurrent(): boolean {
    return (this.head?.n ?? 0) >= this.newest
  }

  /** About how many rows it has; an empty one takes room, too. */
  get size(): number {
    return this.rows.nodes.size + this.rows.turns.size + ROOM
  }

  get isTooLarge(): boolean {
    return this.head !== undefined && this.size > this.most
  }

  clear(): void {
    this.kept.tables = Object.assign(emptyTables(), { writes: this.rows.writes + 1 })
    this.part = undefined
    this.head = undefined
    this.newest = UNKNOWN
  }

  /** There is no such tree, as the database says or as is presumed. */
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

  /** Takes what was written after its head. Gives the ids of open turns that it needs, too. */
  take({ head, rows = [], bodies }: TreePart): readonly Id[] {
    if (this.newest === UNKNOWN) this.newest = head.n
    if (this.has(head)) return []
    const read = unpacked(this.rootId, rows, (id) => this.rows.turns.get(id)?.row)
    this.part?.doubt()
    const open = this.put(read, bodies)
    this.head = head
    return open
  }

  /** Takes rows that were put into tables of their own: a whole tree, or of a large one what was wanted. */
  adopt(tables: Tables, head: Head, wanted?: WantedRows): void {
    if (this.has(head)) return
    tables.writes = this.rows.writes + 1
    this.kept.tables = tables
    this.part = wanted === undefined ? undefined : new PartialRows()
    if (wanted !== undefined) this.part?.learn(wanted, tables)
    this.head = head
    this.newest = head.n
  }

  /** Takes rows that were asked for. False where they are not of the moment of the others. */
  add({ head, rows = [], bodies }: TreePart, wanted: WantedRows): boolean {
    if (this.part === undefined) return true
    if (this.head?.tree !== head.tree || this.head.n !== head.n) return false
    const read = unpacked(this.rootId, rows, (id) => this.rows.turns.get(id)?.row)
    putRows(this.rows, { rootId: this.rootId, rows: read, bodies })
    this.part.learn(wanted, this.rows)
    return true
  }

  /** Takes a commit of this process, where nobody else has written in between. Gives the ids of open turns that it needs, too. */
  takeOwn(commit: Commit, head: Head): readonly Id[] {
    const isNext = this.head === undefined ? head.n === 1 : this.head.tree === head.tree && this.head.n === head.n - 1
    if (!isNext) {
      if (!this.has(head)) this.newest = this.head?.tree === head.tree ? Math.max(this.newest, head.n) : UNKNOWN
      return []
    }
    for (const { id, version } of commit.conversations) if (version === 1) this.part?.begin(id)
    const open = this.put(commit, commit.bodies)
    this.head = head
    if (this.newest === UNKNOWN) this.newest = head.n
    return open
  }

  /** Lets go of all turns but open ones, those that called them, and the root's newest. */
  shrink(): void {
    const { rootId, rows } = this
    const lane = { laneId: rootId, last: NEWEST, limit: this.options.limits.turns }
    const newest = this.part === undefined ? rows.lanes.get(rootId)?.turns.slice(-lane.limit) : this.part.turnsOf(lane)
    const turns = withHosts(rows, [...rows.openTurns, ...(newest ?? [])])
    const tables = Object.assign(emptyTables(), { writes: rows.writes + 1 })
    putRows(tables, { rootId, ...rowsOf(rows, rootId, turns) })
    this.kept = { tables }
    this.whole = this.readerOf(this.kept)
    this.part = new PartialRows()
    if (newest !== undefined) this.part.learn({ ids: [], lanes: [lane], open: true }, tables)
    this.most = Math.max(this.options.limits.whole, this.size * 2)
  }

  /** Puts rows of turns that are here, or that are new. Gives the ids of those that have not ended and are not here. */
  private put(read: Commit, bodies: readonly Body[]): readonly Id[] {
    const { rootId, rows, part } = this
    const isHere = (turn: Turn) =>
      part === undefined || rows.turns.get(turn.id) !== undefined || turn.version === 1 || part.isNext(turn)
    const turns = read.turns.filter(isHere)
    const made = new Set(turns.map(({ id }) => id))
    const isOfHere = (turnId: Id) => part === undefined || made.has(turnId) || rows.turns.get(turnId) !== undefined
    const nodes = read.nodes.filter(({ turnId }) => isOfHere(turnId))
    const links = read.links.filter(({ hostTurnId }) => isOfHere(hostTurnId))
    putRows(rows, { rootId, rows: { ...read, turns, nodes, links }, bodies })
    if (part !== undefined) for (const { id } of turns) part.put(rows.turns.get(id) as TurnEntry)
    return read.turns.filter(({ id, state }) => state !== 'ended' && !made.has(id)).map(({ id }) => id)
  }

  private lastSeq(id: Id): number {
    this.options.requireOpen()
    return id === this.rootId ? (this.head?.seq ?? 0) : 0
  }

  private readerOf(kept: { readonly tables: Tables }): TreeReader {
    const tables = () => {
      this.options.requireOpen()
      return kept.tables
    }
    const lastSeq = (id: Id) => this.lastSeq(id)
    const find = () => Promise.resolve()
    return partReader({ tables, part: () => undefined, find, writes: () => CHECKED, lastSeq })
  }
}

/** Turns and those that called them, up to the root. */
function withHosts({ links, turns }: Tables, of: Iterable<TurnEntry>): Set<TurnEntry> {
  const found = new Set<TurnEntry>()
  for (const turn of of) {
    for (let at: TurnEntry | undefined = turn; at !== undefined && !found.has(at); ) {
      found.add(at)
      at = turns.get(links.get(at.id)?.row.hostTurnId ?? '')
    }
  }
  return found
}

function rowsOf(tables: Tables, rootId: Id, turns: ReadonlySet<TurnEntry>): Pick<ReadRows, 'rows' | 'bodies'> {
  const conversations = new Set([...turns].map(({ conversation }) => conversation.row))
  const root = tables.conversations.get(rootId)
  if (root !== undefined) conversations.add(root.row)
  const nodes = [...turns].flatMap((turn) => turn.nodes)
  const rows = {
    ...emptyCommit('mutate', 0, rootId),
    conversations: [...conversations],
    turns: [...turns].map(({ row }) => row),
    nodes: nodes.map(({ row }) => row),
    links: [...turns].flatMap((turn) => turn.links.map(({ row }) => row)),
    edges: nodes.flatMap(({ edgesIn, edgesOut }) => [...(edgesIn ?? []), ...(edgesOut ?? [])]),
  }
  const bodies = bodiesNamed(rows.nodes).flatMap((hash) => {
    const text = tables.bodies.get(hash)?.text
    return text === undefined ? [] : [{ hash, text }]
  })
  return { rows, bodies }
}

/** The hashes of the long texts that nodes name. */
function bodiesNamed(nodes: Commit['nodes']): string[] {
  return nodes.flatMap(({ output: { bodyRef } }) => bodyRef ?? [])
}

/** The hashes of long texts that rows name and that are not here. */
export function bodiesLacking(tables: Tables, rootId: Id, rows: readonly StoredRow[]): string[] {
  const named = rows.filter(({ letter, text }) => letter === 'n' && text.includes('bodyRef'))
  if (named.length === 0) return []
  const { nodes } = unpacked(
    rootId,
    [...rows.filter(({ letter }) => letter === 't'), ...named],
    (id) => tables.turns.get(id)?.row,
  )
  return [...new Set(bodiesNamed(nodes))].filter((hash) => !tables.bodies.has(hash))
}

/** So many rows are read in one turn of the event loop. */
const LOT = 2_000

/** Reads a whole tree, however large it is, and lets other work run meanwhile. */
export async function tablesOf(
  rootId: Id,
  { rows = [], bodies }: TreePart,
  defer: () => Promise<void>,
): Promise<Tables> {
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

function isNewIn<Row extends Versioned>(known: {
  get(id: Id): { readonly row: Row } | undefined
}): (row: Row) => boolean {
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
      found.edges.push(...edgesInText(text, { rootId, conversationId: conversationId ?? '' }))
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
export function edgesInText(text: string, place: Pick<Edge, 'rootId' | 'conversationId'>): Edge[] {
  const list = parseOwnJson(text) as readonly (readonly [Id, Id, string])[]
  return list.map(([from, to, letter]) => ({ ...place, from, to, type: edgeType(letter) as EdgeType }))
}
