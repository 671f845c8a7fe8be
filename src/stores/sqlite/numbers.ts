import { StoreError } from '../../core/base/error.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { Edge, Id } from '../../core/graph/rows.ts'
import { type EdgeEnds, SPAN, spanOf } from '../../core/store/codec/rows.ts'
import type { Cell, RowCache, WrittenNumbers } from '../../core/store/row-cache.ts'
import type { Connection } from './driver.ts'
import { mayBeSealed } from './marks.ts'

/** By the number of the row that has them: at most one row of edges per turn. */
type NumberedEdges = ReadonlyMap<number, readonly EdgeEnds[]>

export interface RowNumbers extends Pick<WrittenNumbers, 'numbers' | 'ends'> {
  readonly edges: NumberedEdges
  /** Changed rows that are followed by many others of their turn. */
  readonly aged: readonly number[]
  /** The turn of a node that the commit adds, or joins with an edge. */
  turnOf(nodeId: Id): Id
  /** The newest row of a turn that the commit writes or adds to. */
  lastOf(turnId: Id): number
}

/**
 * Numbers all rows of a commit: new ones get the next number of the file or of their turn. The commit must be checked: then the
 * cache has the rows that it changes or names.
 */
export function numberRows(db: Connection, cache: RowCache, commit: Commit): RowNumbers {
  const numbering = new RowNumbering(db, cache)
  for (const row of commit.conversations) numbering.conversation(row)
  for (const row of commit.turns) numbering.turn(row)
  for (const row of commit.nodes) numbering.node(row)
  for (const row of commit.links) numbering.link(row)
  for (const edge of commit.edges) numbering.edge(edge)
  return numbering
}

interface Versioned {
  readonly id: Id
  readonly version: number
}

class RowNumbering implements RowNumbers {
  readonly numbers: number[] = []
  readonly ends = new Map<Id, number>()
  readonly edges = new Map<number, EdgeEnds[]>()
  readonly aged: number[] = []
  private readonly newNodes = new Map<Id, { readonly n: number; readonly turnId: Id }>()
  /** By turn. */
  private readonly edgeRows = new Map<Id, EdgeEnds[]>()
  private readonly db: Connection
  private readonly cache: RowCache

  constructor(db: Connection, cache: RowCache) {
    this.db = db
    this.cache = cache
  }

  conversation(row: Versioned): void {
    this.numbers.push(row.version === 1 ? this.nextSpan() : known(row, this.cache.home(row.id)?.conversations))
  }

  turn(row: Versioned): void {
    const n = row.version === 1 ? this.nextSpan() : known(row, this.cache.home(row.id)?.turns)
    if (row.version === 1) this.ends.set(row.id, n)
    this.numbers.push(n)
  }

  node(row: Versioned & { readonly turnId: Id }): void {
    const { id, version, turnId } = row
    const n = version === 1 ? this.nextOf(turnId) : this.again(turnId, known(row, this.cache.home(id)?.nodes))
    if (version === 1) this.newNodes.set(id, { n, turnId })
    this.numbers.push(n)
  }

  link(row: Versioned & { readonly hostTurnId: Id }): void {
    const { id, version, hostTurnId } = row
    const n = version === 1 ? this.nextOf(hostTurnId) : this.again(hostTurnId, known(row, this.cache.home(id)?.links))
    this.numbers.push(n)
  }

  edge({ from, to, type }: Edge): void {
    const [source, target] = [this.place(from), this.place(to)]
    const letter = type.charAt(0)
    const [fromPlace, toPlace] = [source.n % SPAN, target.n % SPAN]
    if (source.turnId === target.turnId) {
      this.edgesOf(source.turnId).push([fromPlace, toPlace, letter])
      return
    }
    this.edgesOf(source.turnId).push([fromPlace, to, letter])
    this.edgesOf(target.turnId).push([from, toPlace, letter])
  }

  turnOf(nodeId: Id): Id {
    return this.place(nodeId).turnId
  }

  private place(id: Id): { readonly n: number; readonly turnId: Id } {
    const found = this.newNodes.get(id)
    if (found !== undefined) return found
    const cell = this.cache.home(id)?.nodes.get(id)
    if (cell === undefined) throw new StoreError('store', `The node ${id} of an edge is not in the store.`)
    return { n: cell.n, turnId: cell.row.turnId }
  }

  private edgesOf(turnId: Id): EdgeEnds[] {
    const list = this.edgeRows.get(turnId)
    if (list !== undefined) return list
    const fresh: EdgeEnds[] = []
    this.edgeRows.set(turnId, fresh)
    this.edges.set(this.nextOf(turnId), fresh)
    return fresh
  }

  private again(turnId: Id, n: number): number {
    if (mayBeSealed(n, this.lastOf(turnId))) this.aged.push(n)
    return n
  }

  private nextSpan(): number {
    return nextSpan(this.db, this.cache)
  }

  private nextOf(turnId: Id): number {
    const n = this.lastOf(turnId) + 1
    if (n % SPAN === 0) throw new StoreError('store', `The turn ${turnId} is full; start another.`)
    this.ends.set(turnId, n)
    return n
  }

  lastOf(turnId: Id): number {
    return this.ends.get(turnId) ?? this.cache.home(turnId)?.turns.get(turnId)?.last ?? SPAN - 1
  }
}

/** The first number of the next span of the file. */
export function nextSpan(db: Connection, cache: RowCache): number {
  cache.lastSpan ??= spanOf(Number(db.first(LAST_ROW)?.[0] ?? 0))
  return ++cache.lastSpan * SPAN
}

/** The greatest number ever used: the seals of removed spans remain. */
const LAST_ROW = `SELECT max(coalesce((SELECT max(n) FROM rows), 0), coalesce((SELECT max(n) FROM seals), 0),
  coalesce((SELECT max(n) FROM stones), 0))`

function known({ id }: Versioned, cells: ReadonlyMap<Id, Cell<unknown>> | undefined): number {
  const n = cells?.get(id)?.n
  if (n === undefined) throw new StoreError('store', `The commit has the row ${id} twice.`)
  return n
}
