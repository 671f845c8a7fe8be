import { sha256 } from '../../base/hash.ts'
import type { Body, Edge, Id } from '../../graph/rows.ts'
import { type ArchivePart, type Finding, finding, type WholeTree, type WrittenRow } from '../archive.ts'
import { longRow, longText } from '../codec/short-text.ts'
import { unpackTree, verifyTree } from '../codec/tree-text.ts'
import type { ChainRecord, RowLetter } from '../commit-chain.ts'
import { edgesIn } from '../replica/replica.ts'
import type { PgRow, Query } from './driver.ts'
import { idOf, keyOf, laneOf, unescaped } from './escape.ts'
import { columnsOf, type WrittenColumns } from './write.ts'

/** A tree as the tables have it, with the columns by which its rows are found. */
export interface TableTree {
  readonly whole: WholeTree
  /** The hash and the sequence that the next commit goes on from. */
  readonly head: { readonly hash: string; readonly seq: number; readonly n: number }
  /** By letter and id. */
  readonly columns: ReadonlyMap<string, PgRow>
}

const TREE = 'SELECT t, n, seq, hash FROM @.trees WHERE root_id = $1'
const ORDER = `ORDER BY strpos('ctnle', letter::text), id <> $2, n, ordinal, id`
const ROWS = `SELECT letter::text, id, version, span, data, conversation_id, edges, queue, due, mark, wait, state::text, epoch, kind, version
  FROM @.rows WHERE t = $1 ${ORDER}`
const EDGES = `SELECT letter::text, id, version, span, data, conversation_id, edges FROM @.rows
  WHERE t = $1 AND (edges IS NOT NULL OR letter = 'e') ${ORDER}`
const RECORDS = 'SELECT kind, at, seq, events, marks, hash FROM @.commits WHERE t = $1 ORDER BY seq, n'
const BODIES = 'SELECT hash, data FROM @.bodies WHERE t = $1 ORDER BY hash'

/** Reads a whole tree in parts: some records, rows or texts at a time. Must be run at one moment. */
export async function* readParts(query: Query, rootId: Id): AsyncGenerator<ArchivePart> {
  const root = keyOf(rootId)
  const [found] = await query(TREE, [root])
  if (found === undefined) return
  const [t, , , hash] = found
  const nothing = { hash: String(hash), records: [], rows: [], edges: [], bodies: [] }
  const record = (row: PgRow) => recordOf(row, rootId)
  for await (const rows of pages(query, RECORDS, [t])) yield { ...nothing, records: rows.map(record) }
  for await (const rows of pages(query, ROWS, [t, root])) yield { ...nothing, rows: rowsIn(rows, rootId) }
  // Edges come after all rows, and one between two turns is in both.
  const known = new Set<string>()
  for await (const rows of pages(query, EDGES, [t, root])) yield { ...nothing, edges: newEdges(rows, rootId, known) }
  for await (const rows of pages(query, BODIES, [t])) yield { ...nothing, bodies: rows.map(bodyOf) }
}

/** So many rows are read at a time, and so many texts, which may be long. */
const LOTS: ReadonlyMap<string, number> = new Map([
  [RECORDS, 200],
  [ROWS, 1_000],
  [EDGES, 1_000],
  [BODIES, 8],
])

async function* pages(query: Query, text: string, values: readonly unknown[]): AsyncGenerator<readonly PgRow[]> {
  await query(`DECLARE pages NO SCROLL CURSOR FOR ${text}`, values)
  const next = `FETCH ${LOTS.get(text)} FROM pages`
  for (let page = await query(next); page.length > 0; page = await query(next)) yield page
  await query('CLOSE pages')
}

function rowsIn(found: readonly PgRow[], rootId: Id): WrittenRow[] {
  return found.filter(([letter]) => letter !== 'e').map((row) => rowOf(row, rootId))
}

function newEdges(found: readonly PgRow[], rootId: Id, known: Set<string>): Edge[] {
  const edges = new Map<string, Edge>()
  for (const row of found) addEdgesOf(row, rootId, edges)
  const added = [...edges].filter(([name]) => !known.has(name))
  for (const [name] of added) known.add(name)
  return added.map(([, edge]) => edge)
}

/** The columns of `ROWS` before those by which a row is found. */
const FOUND_BY = 7

function rowOf(row: PgRow, rootId: Id): WrittenRow {
  const [letter, key, , span] = row
  const turnId = letter === 'n' || letter === 'l' ? idOf(span) : null
  return { letter: letter as RowLetter, id: idOf(key), turnId, text: longData(row, rootId) }
}

/** Edges are a row of their own, or lie in the row of a node. */
function addEdgesOf(
  [letter, key, version, span, data, conversation, own]: PgRow,
  rootId: Id,
  edges: EdgesByName,
): void {
  const text = letter === 'e' ? data : own
  if (text === null) return
  const place = { rootId, conversationId: idOf(conversation) }
  addEdges(edges, longData(['e', key, version, span, text], rootId), place)
}

function recordOf([kind, at, seq, events, marks, hash]: PgRow, rootId: Id): ChainRecord {
  return {
    kind: String(kind),
    at: Number(at),
    seq: Number(seq),
    events: longText(String(events), [rootId]),
    marks: String(marks),
    hash: String(hash),
  }
}

function bodyOf([hash, data]: PgRow): Body {
  return { hash: unescaped(String(hash)), text: (data as Buffer).toString('utf8') }
}

/** All reads of a transaction see the same rows. */
export const AT_ONE_MOMENT = 'REPEATABLE READ READ ONLY'

/** Reads a whole tree. Undefined where there is none. Must be run at one moment. */
export async function readTree(query: Query, rootId: Id): Promise<TableTree | undefined> {
  const root = keyOf(rootId)
  const [found] = await query(TREE, [root])
  if (found === undefined) return undefined
  const [t, n, seq, hash] = found
  const rows: WrittenRow[] = []
  const edges = new Map<string, Edge>()
  const columns = new Map<string, PgRow>()
  for (const row of await query(ROWS, [t, root])) {
    addEdgesOf(row, rootId, edges)
    if (row[0] === 'e') continue
    const written = rowOf(row, rootId)
    rows.push(written)
    columns.set(`${written.letter}${keyOf(written.id)}`, row.slice(FOUND_BY))
  }
  const records = (await query(RECORDS, [t])).map((row) => recordOf(row, rootId))
  const bodies = (await query(BODIES, [t])).map(bodyOf)
  const whole = { rootId, rows, edges: [...edges.values()], bodies, records }
  return { whole, head: { n: Number(n), seq: Number(seq), hash: String(hash) }, columns }
}

/** The text of a row, or of edges, whose columns are letter, id, version, span and data. */
export function longData([letter, key, version, span, data]: PgRow, rootId: Id): string {
  const short = String(data)
  if (letter === 'e') return longText(short, [idOf(span), rootId])
  const near = letter === 'c' ? [rootId] : [letter === 't' ? laneOf(span) : idOf(span), rootId]
  return longRow(short, { letter: letter as RowLetter, id: idOf(key), version: Number(version), near })
}

type EdgesByName = Map<string, Edge>

function addEdges(edges: EdgesByName, text: string, place: Pick<Edge, 'rootId' | 'conversationId'>): void {
  try {
    for (const edge of edgesIn(text, place)) edges.set(`${edge.from} ${edge.to} ${edge.type}`, edge)
  } catch {
    // The commit names edges that are then missing.
  }
}

/** Everything in which the tables differ from what was committed. */
export function verifyTables({ whole, head, columns }: TableTree): Finding[] {
  const { rootId, records, bodies } = whole
  const found = [...verifyTree(whole)]
  const last = records.at(-1)
  if (last?.hash !== head.hash || last.seq !== head.seq || records.length !== head.n) {
    const message = `The tree ${rootId} does not end in its last commit.`
    found.push(finding('broken_chain', { subject: 'commit', id: rootId, rootId, conversationId: null }, message))
  }
  for (const { hash, text } of bodies) {
    if (sha256(text) === hash) continue
    const message = `The text ${hash} is not what was written: it has another hash.`
    found.push(finding('altered_body', { subject: 'body', id: hash, rootId, conversationId: null }, message))
  }
  return found.length > 0 ? found : wrongColumns(whole, columns)
}

/** Rows that are found otherwise than their text says. */
function wrongColumns(whole: WholeTree, columns: TableTree['columns']): Finding[] {
  const { rootId } = whole
  const rows = unpackTree(whole)
  const conversations = new Map(rows.conversations.map((row) => [row.id, row]))
  const right = columnsOf(rows, { conversationOf: (id) => conversations.get(id) }, rootId)
  return right.columns.flatMap((row, at) => {
    if (JSON.stringify(columns.get(row.l + row.i)) === JSON.stringify(findColumns(row))) return []
    const id = right.written[at]?.id ?? ''
    const message = `The row ${id} is found by other columns than its text says.`
    return [finding('altered_index', { subject: 'store', id, rootId, conversationId: null }, message)]
  })
}

function findColumns({ q, d, m, w, s, p, k, v }: WrittenColumns): PgRow {
  return [q ?? null, d ?? null, m ?? null, w ?? null, s ?? null, p ?? null, k ?? null, v]
}
