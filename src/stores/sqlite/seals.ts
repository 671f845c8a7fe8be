import type { WrittenRow } from '../../core/store/archive.ts'
import {
  COLUMNS,
  COMMITS_PER_TREE,
  type EdgeEnds,
  pushEdges,
  SPAN,
  type SqlValue,
  WIDTH,
} from '../../core/store/codec/rows.ts'
import { markOf, sharedKeys } from '../../core/store/codec/tree-text.ts'
import { type ChainRecord, edgeMark, readMarks } from '../../core/store/commit-chain.ts'
import type { Connection } from './driver.ts'
import { edgesIn, type FileSpan, findTrees, readRecords, readSpan, writtenRow } from './tree.ts'

/** The most rows of one statement. */
const AT_ONCE = 32

/** Puts any number of rows; `values` has them one after the other. */
export type RowInserter = (db: Connection, values: readonly SqlValue[]) => void

/** `start` is the statement up to its values, `width` the number of values in a row. */
export function rowInserter(start: string, width: number): RowInserter {
  const row = `(${new Array(width).fill('?').join(', ')})`
  const statements = Array.from(
    { length: AT_ONCE + 1 },
    (_, count) => `${start} VALUES ${new Array(count).fill(row).join(', ')}`,
  )
  return (db, values) => {
    for (const some of portions(values, AT_ONCE * width)) db.run(statements[some.length / width] ?? '', some)
  }
}

function portions(values: readonly SqlValue[], most: number): readonly (readonly SqlValue[])[] {
  if (values.length <= most) return values.length === 0 ? [] : [values]
  const some: SqlValue[][] = []
  for (let at = 0; at < values.length; at += most) some.push(values.slice(at, at + most))
  return some
}

export const putRows: RowInserter = rowInserter(`REPLACE INTO rows (${COLUMNS})`, WIDTH)

const putMany = rowInserter('REPLACE INTO seals (n, writer)', 2)

/** Records that this commit began these spans, named by their first rows. */
export function putSeals(db: Connection, firsts: Iterable<number>, writer: number): void {
  const values: SqlValue[] = []
  for (const n of firsts) values.push(n, writer)
  putMany(db, values)
}

/** For a file in which each row had a seal. */
const MOVE = `
UPDATE rows SET writer = (SELECT writer FROM seals WHERE seals.n = rows.n);
UPDATE rows SET size = (SELECT max(seals.n) FROM seals WHERE seals.n >= rows.n AND seals.n < rows.n + ${SPAN}) - n + 1
  WHERE n % ${SPAN} = 0;
DELETE FROM seals WHERE n % ${SPAN} > 0;
`

/** Sets the writer of each row: from the seals, or from the record in a file that has none. */
export function moveSeals(db: Connection): void {
  if (db.first('SELECT n FROM seals LIMIT 1') === undefined) sealAll(db)
  else db.exec(MOVE)
}

/** A row that differs from the record gets no writer. */
function sealAll(db: Connection): void {
  for (const { spans, tree } of findTrees(db).byRoot.values()) {
    if (tree !== undefined) sealTree(db, tree, spans, readRecords(db, tree))
  }
}

/** `tree` is its number in the log, `spans` the first row of each span. */
export function sealTree(
  db: Connection,
  tree: number,
  spans: readonly number[],
  records: readonly ChainRecord[],
): void {
  const last = new LastWriters(records)
  for (const n of spans) divideEdges(db, readSpan(db, n), last)
  const read = spans.map((n) => readSpan(db, n))
  for (const [n, writer] of writersOf(read, records)) db.run(SET_WRITER, [tree * COMMITS_PER_TREE + writer, n])
  for (const { rows } of read) setSize(db, rows[0]?.n ?? 0, rows.at(-1)?.n ?? 0)
  putSeals(db, spans, tree * COMMITS_PER_TREE + 1)
}

const SET_WRITER = 'UPDATE rows SET writer = ? WHERE n = ?'
const SET_SIZE = 'UPDATE rows SET size = ? WHERE n = ?'

/** Sets the number of rows in the first row of a span. */
export function setSize(db: Connection, first: number, last: number): void {
  db.run(SET_SIZE, [last - first + 1, first])
}

/** By the number of the row: the last commit of its tree that wrote it, according to the record. */
export function writersOf(spans: readonly FileSpan[], records: readonly ChainRecord[]): Map<number, number> {
  const last = new LastWriters(records)
  const shared = sharedKeys(spans.flatMap(sealedRowsIn).map(({ row }) => row))
  const writers = new Map<number, number>()
  for (const span of spans) {
    for (const { n, row } of sealedRowsIn(span)) put(writers, n, last.ofRow(row, shared))
    for (const { n, marks } of edgeRowsIn(span)) put(writers, n, last.ofEdges(marks))
  }
  return writers
}

function put(writers: Map<number, number>, n: number, writer: number | undefined): void {
  if (writer !== undefined) writers.set(n, writer)
}

/** Splits the edges of an imported turn, which are in one row: from then on each row has those of one commit. */
function divideEdges(db: Connection, span: FileSpan, last: LastWriters): void {
  let next = (span.rows.at(-1)?.n ?? 0) + 1
  for (const { n, ends, marks } of edgeRowsIn(span)) {
    const groups = new Map<number | undefined, EdgeEnds[]>()
    ends.forEach((one, at) => {
      const writer = last.ofEdges([marks[at] ?? ''])
      groups.set(writer, [...(groups.get(writer) ?? []), one])
    })
    if (groups.size < 2) continue
    const values: SqlValue[] = []
    for (const group of groups.values()) pushEdges(values, values.length === 0 ? n : next++, group)
    putRows(db, values)
  }
}

/** Knows the last commit that wrote each row. */
class LastWriters {
  private readonly byMark = new Map<string, number>()
  private readonly newest = new Map<string, string>()

  constructor(records: readonly ChainRecord[]) {
    records.forEach(({ marks }, at) => {
      for (const { key, hash } of readMarks(marks) ?? []) {
        this.byMark.set(key + hash, at + 1)
        this.newest.set(key, hash)
      }
    })
  }

  /** Where several ids of the tree have this ending, any version counts. */
  ofRow(row: WrittenRow, shared: ReadonlySet<string>): number | undefined {
    const { key, hash } = markOf(row)
    return this.newest.get(key) === hash || shared.has(key) ? this.byMark.get(key + hash) : undefined
  }

  /** All edges of a row belong to one commit. */
  ofEdges(marks: readonly string[]): number | undefined {
    const writers = new Set(marks.map((mark) => this.byMark.get(mark + mark)))
    return writers.size === 1 ? [...writers][0] : undefined
  }
}

function sealedRowsIn({ rows, turn }: FileSpan): { readonly n: number; readonly row: WrittenRow }[] {
  return rows.flatMap((one) => {
    const row = writtenRow(one, turn?.id ?? null)
    return row === null ? [] : [{ n: one.n, row }]
  })
}

interface EdgeRow {
  readonly n: number
  readonly ends: readonly EdgeEnds[]
  /** One mark per edge. */
  readonly marks: readonly string[]
}

function edgeRowsIn(span: FileSpan): EdgeRow[] {
  const nodes = span.rows.filter(({ packed }) => packed !== null && 'node' in packed)
  return span.rows.flatMap((row) => {
    if (row.packed === null || !('edges' in row.packed) || !Array.isArray(row.packed.edges)) return []
    const marks = edgesIn({ turn: span.turn, rows: [...nodes, row] }).map(edgeMark)
    return [{ n: row.n, ends: row.packed.edges as readonly EdgeEnds[], marks }]
  })
}
