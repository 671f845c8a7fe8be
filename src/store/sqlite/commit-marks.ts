import { parseOwnJson } from '../../base/json.ts'
import { countEdges, type EdgeCount, type Mark, readMarks } from '../tree-chain.ts'
import { type Connection, textOf } from './driver.ts'
import type { RowMarks } from './row-marks.ts'
import type { SpanRow } from './span-text.ts'

/** What commits wrote. Those that wrote much are asked again soon: an imported tree has one commit. */
export class CommitMarks {
  private readonly large = new Map<number, Marks>()
  private ahead: ReadonlyMap<number, Marks> = NO_MARKS

  /** Reads at once what is asked for meanwhile. */
  withAhead<T>(db: Connection, rows: readonly SpanRow[], ask: () => T): T {
    this.ahead = this.read(db, rows)
    try {
      return ask()
    } finally {
      this.ahead = NO_MARKS
    }
  }

  /** The first row that is not what its commit wrote. */
  findForged(db: Connection, rows: readonly SpanRow[], marks: RowMarks): SpanRow | undefined {
    const read = this.read(db, rows)
    return rows.find((row) => !isWritten(row, marks, read.get(row.writer) ?? this.known(row.writer)))
  }

  private known(writer: number): Marks | undefined {
    return this.ahead.get(writer) ?? this.large.get(writer)
  }

  /** Those that are not known, by the number of the commit in the log. */
  private read(db: Connection, rows: readonly SpanRow[]): ReadonlyMap<number, Marks> {
    const wanted = new Set<number>()
    for (const { writer } of rows) if (this.known(writer) === undefined) wanted.add(writer)
    if (wanted.size === 0) return NO_MARKS
    const marks = new Map<number, Marks>()
    for (const [writer, text] of readCommits(db, wanted)) {
      const found = new Marks(text)
      marks.set(writer, found)
      if (found.isLarge) this.keep(writer, found)
    }
    return marks
  }

  private keep(writer: number, marks: Marks): void {
    if (this.large.size >= MOST_LARGE) this.large.clear()
    this.large.set(writer, marks)
  }
}

function isWritten(row: SpanRow, marks: RowMarks, written: Marks | undefined): boolean {
  if (written === undefined) return false
  const wanted = marks.of(row)
  if (!written.hasAll(wanted)) return false
  return !('edges' in row.packed) || written.hasNoOthers(wanted, () => marks.ofTurn(wanted))
}

const MOST_LARGE = 4
const NO_MARKS: ReadonlyMap<number, Marks> = new Map<number, Marks>()

type CommitText = readonly [writer: number, marks: string]

/** Commits that lie side by side are read as they lie. */
function readCommits(db: Connection, writers: ReadonlySet<number>): readonly CommitText[] {
  if (writers.size <= FEW) return [...writers].flatMap((n) => db.all(ONE, [n]).map(([marks]) => [n, textOf(marks)]))
  let [low, high] = [Number.MAX_SAFE_INTEGER, 0]
  for (const writer of writers) [low, high] = [Math.min(low, writer), Math.max(high, writer)]
  const isDense = writers.size > SOME && high - low < 2 * writers.size
  const [texts] = (isDense ? db.first(BETWEEN, [low, high]) : db.first(AMONG, [JSON.stringify([...writers])])) ?? []
  return parseOwnJson(`[${textOf(texts)}]`) as readonly CommitText[]
}

const FEW = 4
const SOME = 16
const ONE = 'SELECT CAST(marks AS BLOB) FROM commits WHERE n = ?'
const MARKS = 'SELECT CAST(group_concat(json_array(n, marks)) AS BLOB) FROM commits WHERE n'
const BETWEEN = `${MARKS} BETWEEN ? AND ?`
const AMONG = `${MARKS} IN (SELECT value FROM json_each(?))`

/** What one commit wrote. A mark has a hash: it is found in the text as it is, and in a set where many are looked for. */
class Marks {
  readonly isLarge: boolean
  private readonly text: string
  private asked = 0
  private set: ReadonlySet<string> | undefined
  private counted: EdgeCount | undefined

  constructor(text: string) {
    this.text = text
    this.isLarge = text.length > LARGE
  }

  hasAll(wanted: readonly string[]): boolean {
    this.asked += wanted.length
    if (this.isLarge && this.asked > MANY) this.set ??= new Set((readMarks(this.text) ?? []).map(wholeMark))
    const { set, text } = this
    return wanted.every((mark) => (set === undefined ? text.includes(mark) : set.has(mark)))
  }

  /** These edges, which the commit wrote, are all that it wrote of their turn, and none is there twice. */
  hasNoOthers(edges: readonly string[], turnMark: () => string): boolean {
    if (new Set(edges).size !== edges.length) return false
    this.counted ??= countEdges(this.text)
    const { edgeCount, saysTurns } = this.counted
    return edgeCount === edges.length || !saysTurns || this.hasAll([turnMark()])
  }
}

const LARGE = 4_000
const MANY = 200

function wholeMark({ key, hash }: Mark): string {
  return key === hash ? key : key + hash
}
