import type { Runtime } from 'legate'
import type { WholeTree, WrittenRow } from '../../src/core/store/archive.ts'
import { marksOf, TreeParser, toLines } from '../../src/core/store/codec/tree-text.ts'
import { chainHash, type RowLetter } from '../../src/core/store/commit-chain.ts'

/** A row of an export that somebody rewrites. `text`: what is written instead of the row. */
export interface ForgedRow {
  letter: RowLetter
  turnId: string | null
  // biome-ignore lint/suspicious/noExplicitAny: rows of hostile files have any form
  row: any
  text?: string
}

/** A tree in the hands of somebody who writes what he likes. */
export interface Forgery {
  readonly rows: ForgedRow[]
  readonly edges: WholeTree['edges'][number][]
  // biome-ignore lint/suspicious/noExplicitAny: see above
  readonly events: any[]
}

/** The lines of an export. */
export async function exported(runtime: Runtime, rootId: string): Promise<string> {
  let text = ''
  for await (const line of runtime.export(rootId)) text += `${line}\n`
  return text
}

/** The lines after a change of anything in them, with hashes that fit. */
export function forged(text: string, change: (tree: Forgery) => void): string {
  const parser = new TreeParser()
  for (const line of text.split('\n')) parser.take(line)
  const tree = parser.tree()
  const forgery: Forgery = {
    rows: tree.rows.map(({ letter, turnId, text: row }) => ({ letter, turnId, row: JSON.parse(row) })),
    edges: [...tree.edges],
    events: tree.records.length === 1 ? JSON.parse(tree.records[0]?.events ?? '[]') : [],
  }
  change(forgery)
  const rows: WrittenRow[] = forgery.rows.map(({ letter, turnId, row, text: written }) => {
    return { letter, turnId, id: String(Object.values(row)[0]), text: written ?? JSON.stringify(row) }
  })
  const turnOf = (id: string) => rows.find((one) => one.letter === 'n' && one.id === id)?.turnId ?? ''
  const record = {
    kind: 'snapshot',
    at: tree.records.at(-1)?.at ?? 0,
    seq: forgery.events.length,
    events: JSON.stringify(forgery.events),
    marks: marksOf(rows, forgery.edges, turnOf),
  }
  const records = [{ ...record, hash: chainHash('', record) }]
  return [...toLines({ ...tree, rows, edges: forgery.edges, records })].join('\n')
}

/** The rows of one letter. */
export function rowsOf({ rows }: Forgery, letter: RowLetter): ForgedRow['row'][] {
  return rows.filter((one) => one.letter === letter).map(({ row }) => row)
}
