import { shortSha256 } from '../../base/hash.ts'
import type { Id } from '../../graph/rows.ts'
import { CommitMarks } from './commit-marks.ts'
import { type Connection, textOf } from './driver.ts'
import { type NodeNames, namesIn, RowMarks } from './row-marks.ts'
import { SPAN, spanOf } from './rows.ts'
import { readSpanText, rowsIn, type SpanRow, type SpanText, STRETCH } from './span-text.ts'

/** The number of its first row. The row of the turn itself, which most commits write, is in none. */
function stretchOf(n: number): number {
  const place = n % SPAN
  return n - ((place - 1) % STRETCH)
}

/** A row that a commit writes anew may be in a sealed stretch; `last` is the newest of its turn. */
export function mayBeSealed(n: number, last: number): boolean {
  return n % SPAN > 0 && last - n >= STRETCH
}

/** Of rows that are written anew. */
export function unseal(db: Connection, numbers: Iterable<number>): void {
  for (const n of numbers) db.run('DELETE FROM stretches WHERE n = ?', [stretchOf(n)])
}

/** The rows of a span that are in no stretch, or not what it was sealed with. */
export function unsealedRows({ first, stretches }: SpanText, rows: readonly SpanRow[]): readonly SpanRow[] {
  if (stretches === '') return rows
  const isSealed = new Uint8Array(rows.length)
  for (const one of stretches.split(',')) {
    const [n, hash] = one.split(' ')
    const at = Number(n) - first
    const some = rows.slice(at, at + STRETCH)
    if (hashOf(some.map(({ line }) => line).join('\n')) === hash) isSealed.fill(1, at, at + STRETCH)
  }
  return rows.filter((_, at) => isSealed[at] === 0)
}

/** The newest row of a turn, before and after a commit. */
export interface Growth {
  readonly turnId: Id
  readonly before: number
  readonly last: number
}

/** Seals what has become old, when a new stretch begins. What is not as it was written is left to who reads it. */
export function sealStretches(db: Connection, { turnId, before, last }: Growth): void {
  if (stretchOf(before) === stretchOf(last)) return
  const first = spanOf(last) * SPAN
  const [newest] = db.first('SELECT max(n) FROM stretches WHERE n > ? AND n < ?', [first, last]) ?? []
  const record = new CommitMarks()
  const end = stretchOf(before)
  for (let n = typeof newest === 'number' ? newest + STRETCH : first + 1; n < end; n += STRETCH) {
    const text = readStretch(db, n)
    const rows = rowsIn(text)
    const marks = new RowMarks(turnId, namesFrom(db, first, namesIn(rows)))
    if (rows.length !== STRETCH || record.findForged(db, rows, marks) !== undefined) continue
    db.run('REPLACE INTO stretches (n, hash) VALUES (?, ?)', [n, hashOf(text.lines)])
  }
}

/** Sealed stretches of a span whose rows are not those that were sealed: the numbers of their first rows. */
export function brokenStretches(db: Connection, first: number): readonly number[] {
  return db
    .all('SELECT n, CAST(hash AS BLOB) FROM stretches WHERE n >= ? AND n < ?', [first, first + SPAN])
    .filter(([n, hash]) => hashOf(readStretch(db, Number(n)).lines) !== textOf(hash))
    .map(([n]) => Number(n))
}

function readStretch(db: Connection, n: number): SpanText {
  return readSpanText(db, n, n + STRETCH)
}

/** Of a whole span, `known` those of a stretch of it. */
function namesFrom(db: Connection, first: number, known: NodeNames): NodeNames {
  return {
    at: (place) => known.at(place) || readId(db, first + place),
    has: (id) => known.has(id) || spanOf(readPlace(db, id)) === spanOf(first),
  }
}

function readPlace(db: Connection, id: Id): number {
  const [n] = db.first("SELECT n FROM keys WHERE id = ? AND slot = 'n'", [id]) ?? []
  return Number(n ?? 0)
}

function readId(db: Connection, n: number): Id {
  const [id] =
    db.first("SELECT CAST(iif(json_valid(data), data ->> '$.node', '') AS BLOB) FROM rows WHERE n = ?", [n]) ?? []
  return textOf(id)
}

function hashOf(lines: string): string {
  return shortSha256(lines)
}
