import { sha256 } from '../../core/base/hash.ts'
import type { Body, Edge, Id } from '../../core/graph/rows.ts'
import { type ArchivePart, type Finding, finding, type WholeTree, type WrittenRow } from '../../core/store/archive.ts'
import { longRow, longText } from '../../core/store/codec/short-text.ts'
import { markOf, unpackTree, verifyTree } from '../../core/store/codec/tree-text.ts'
import { type ChainRecord, edgeMark, type RowLetter, readMarks } from '../../core/store/commit-chain.ts'
import { columnsOf, edgesByTurn, type WrittenColumns } from './commit-values.ts'
import type { PgRow, Query } from './connection/driver.ts'
import { idOf, keyOf, laneOfKey, unescaped } from './escape.ts'
import { edgesInText } from './replica/replica.ts'
import type { TreePart } from './replica/transport.ts'

/** A tree as the tables have it, with the columns by which its rows are found. */
export interface TableTree {
  readonly whole: WholeTree
  /** The hash and the sequence that the next commit goes on from. */
  readonly head: { readonly tree: number; readonly hash: string; readonly seq: number; readonly n: number }
  /** By letter and id. */
  readonly columns: ReadonlyMap<string, PgRow>
  /** The edges of each turn in each commit, with the columns by which they are found. */
  readonly edgeGroups: readonly string[]
  /** The number of each commit, and the rows that it names. */
  readonly named: readonly PgRow[]
}

const TREE = 'SELECT t, n, seq, hash FROM @.trees WHERE root_id = $1'
const ORDER = `ORDER BY strpos('ctnle', letter::text), id <> $2, n, ordinal, id`
const ROWS = `SELECT letter::text, id, version, span, data, conversation_id, edges, queue, due, mark, wait, state::text, epoch, kind, version, ordinal, key,
  n, seq, edges_n, edges_seq FROM @.rows WHERE t = $1 ${ORDER}`
const EDGES = `SELECT letter::text, id, version, span, data, conversation_id, edges FROM @.rows
  WHERE t = $1 AND (edges IS NOT NULL OR letter = 'e') ${ORDER}`
const RECORDS = 'SELECT kind, at, seq, events, marks, hash FROM @.commits WHERE t = $1 ORDER BY seq, n'
const NAMED = `SELECT n, array_to_string(ids, ' ') FROM @.commits WHERE t = $1 ORDER BY seq, n`
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

/** The columns of `ROWS` before those by which a row is found, and before those by which its edges are. */
const FOUND_BY = 7
const EDGES_BY = 19

/** The columns by which a row is found. The conversation of a node is that of its edges. */
function foundBy(row: PgRow): PgRow {
  const [letter, , , span, , conversation, edges] = row
  const isOfEdges = letter === 'n' && edges !== null
  return [...row.slice(FOUND_BY, EDGES_BY), bytesOf(span), isOfEdges ? null : bytesOf(conversation)]
}

/** Bytes as `keyOf` writes them. */
function bytesOf(value: unknown): string | null {
  return value === null ? null : `\\x${(value as Buffer).toString('hex')}`
}

/** The edges of a turn in a commit, and how they are found; undefined for a row without edges. */
function groupOf(row: PgRow, rootId: Id): string | undefined {
  const [letter, id, , span, , conversation, own] = row
  if (letter !== 'e' && own === null) return undefined
  const edges: EdgesByName = new Map()
  addEdgesOf(row, rootId, edges)
  const [n, seq] = letter === 'e' ? row.slice(EDGES_BY - 2, EDGES_BY) : row.slice(EDGES_BY)
  const isMoved = letter === 'e' && bytesOf(id) !== `${bytesOf(span)}${Buffer.from(` ${n}`).toString('hex')}`
  return groupText([n, seq, bytesOf(span), bytesOf(conversation), ...(isMoved ? ['moved'] : [])], edges.keys())
}

function groupText(place: readonly unknown[], names: Iterable<string>): string {
  return JSON.stringify([...place, [...names].sort()])
}

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
export async function readTableTree(query: Query, rootId: Id): Promise<TableTree | undefined> {
  const root = keyOf(rootId)
  const [found] = await query(TREE, [root])
  if (found === undefined) return undefined
  const [t, n, seq, hash] = found
  const rows: WrittenRow[] = []
  const edges = new Map<string, Edge>()
  const columns = new Map<string, PgRow>()
  const groups: string[] = []
  for (const row of await query(ROWS, [t, root])) {
    addEdgesOf(row, rootId, edges)
    const group = groupOf(row, rootId)
    if (group !== undefined) groups.push(group)
    if (row[0] === 'e') continue
    const written = rowOf(row, rootId)
    rows.push(written)
    columns.set(`${written.letter}${keyOf(written.id)}`, foundBy(row))
  }
  const records = (await query(RECORDS, [t])).map((row) => recordOf(row, rootId))
  const bodies = (await query(BODIES, [t])).map(bodyOf)
  const whole = { rootId, rows, edges: [...edges.values()], bodies, records }
  const head = { tree: Number(t), n: Number(n), seq: Number(seq), hash: String(hash) }
  return { whole, head, columns, edgeGroups: groups, named: await query(NAMED, [t]) }
}

/** The text of a row, or of edges, whose columns are letter, id, version, span and data. */
export function longData([letter, key, version, span, data]: PgRow, rootId: Id): string {
  const short = String(data)
  if (letter === 'e') return longText(short, [idOf(span), rootId])
  const near = letter === 'c' ? [rootId] : [letter === 't' ? laneOfKey(span) : idOf(span), rootId]
  return longRow(short, { letter: letter as RowLetter, id: idOf(key), version: Number(version), near })
}

type EdgesByName = Map<string, Edge>

function nameOf({ from, to, type }: Edge): string {
  return `${from} ${to} ${type}`
}

function addEdges(edges: EdgesByName, text: string, place: Pick<Edge, 'rootId' | 'conversationId'>): void {
  try {
    for (const edge of edgesInText(text, place)) edges.set(nameOf(edge), edge)
  } catch {
    // The commit names edges that are then missing.
  }
}

/** Everything in which the tables differ from what was committed. */
export function verifyTables(tree: TableTree): Finding[] {
  const { whole, head } = tree
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
  return found.length > 0 ? found : [...wrongColumns(tree), ...wrongGroups(tree), ...wrongNames(tree)]
}

/** Rows that are found otherwise than their text says. */
function wrongColumns({ whole, columns }: TableTree): Finding[] {
  const { rootId } = whole
  const rows = unpackTree(whole)
  const conversations = new Map(rows.conversations.map((row) => [row.id, row]))
  const right = columnsOf(rows, { conversationOf: (id) => conversations.get(id) }, rootId)
  const texts = new Map(whole.rows.map((row) => [row.letter + keyOf(row.id), row]))
  const writers = writersOf(whole.records)
  return right.columns.flatMap((row, at) => {
    const { key = '', hash = '' } = markIn(texts.get(row.l + row.i))
    const writer = writers.get(key + hash) ?? []
    if (JSON.stringify(columns.get(row.l + row.i)) === JSON.stringify(findColumns(row, writer))) return []
    const id = right.written[at]?.id ?? ''
    return [altered(rootId, id, `The row ${id} is found by other columns than its text says.`)]
  })
}

function markIn(row: WrittenRow | undefined): Partial<ReturnType<typeof markOf>> {
  return row === undefined ? {} : markOf(row)
}

/** The number and the sequence of the last commit that wrote a row as it is. */
function writersOf(records: readonly ChainRecord[]): Map<string, readonly number[]> {
  const writers = new Map<string, readonly number[]>()
  for (const [at, { marks, seq }] of records.entries()) {
    for (const { key, hash } of readMarks(marks) ?? []) writers.set(key + hash, [at + 1, seq])
  }
  return writers
}

function findColumns({ q, d, m, w, s, p, k, v, o, y, t, c }: WrittenColumns, [n, seq]: readonly number[]): PgRow {
  return [q, d, m, w, s, p, k, v, o, y, n, seq, t, c].map((value) => value ?? null)
}

/** Edges that are not where their commit put them. One between two turns is in both. */
function wrongGroups({ whole, edgeGroups }: TableTree): Finding[] {
  const { rootId, records, edges } = whole
  const { nodes, turns } = unpackTree(whole)
  const turnOf = new Map(nodes.map(({ id, turnId }) => [id, turnId]))
  const homes = new Map(turns.map(({ id, conversationId }) => [id, conversationId]))
  const right = new Set<string>()
  for (const { n, seq, edges: written } of edgesByCommit(records, edges)) {
    for (const [turnId, own] of edgesByTurn(written, (id) => turnOf.get(id) ?? '')) {
      right.add(groupText([n, seq, keyOf(turnId), keyOf(homes.get(turnId) ?? '')], own.map(nameOf)))
    }
  }
  const there = new Set(edgeGroups)
  if (there.size === right.size && edgeGroups.length === right.size && [...there].every((one) => right.has(one)))
    return []
  return [altered(rootId, rootId, `Edges of the tree ${rootId} are found by other columns than their commits say.`)]
}

/** The edges of each commit that wrote some. */
export function edgesByCommit(records: readonly ChainRecord[], edges: readonly Edge[]): WrittenEdges[] {
  const byMark = new Map(edges.map((edge) => [edgeMark(edge), edge]))
  return records.flatMap(({ marks, seq }, at) => {
    const written = new Set((readMarks(marks) ?? []).flatMap(({ hash }) => byMark.get(hash) ?? []))
    return written.size === 0 ? [] : [{ n: at + 1, seq, edges: [...written] }]
  })
}

interface WrittenEdges {
  readonly n: number
  readonly seq: number
  readonly edges: readonly Edge[]
}

/** Commits with another number, or that name other rows than they wrote. One that names none leaves them to be looked for. */
function wrongNames({ whole, named }: TableTree): Finding[] {
  const { rootId, records, rows } = whole
  const keys = new Map(
    rows.map((row) => [`\\x${Buffer.from(row.letter).toString('hex')}${keyOf(row.id).slice(2)}`, row]),
  )
  return named.flatMap(([n, ids], at) => {
    const marks = (readMarks(records[at]?.marks ?? '') ?? []).filter((mark) => 'ctnl'.includes(mark.key[0] ?? ''))
    const names =
      ids === null
        ? []
        : String(ids)
            .split(' ')
            .filter((name) => name !== '' && !name.startsWith(EDGES_NAME))
    const found = names.map((name) => markIn(keys.get(name)).key ?? '')
    const isRight = ids === null || String(found.sort()) === String(marks.map(({ key }) => key).sort())
    if (n === at + 1 && isRight) return []
    return [
      altered(rootId, `${rootId} ${at + 1}`, `Commit ${at + 1} of the tree ${rootId} names other rows than it wrote.`),
    ]
  })
}

/** How the names of edges begin: with their letter. */
const EDGES_NAME = '\\x65'

function altered(rootId: Id, id: string, message: string): Finding {
  return finding('altered_index', { subject: 'store', id, rootId, conversationId: null }, message)
}

/** True where all rows of a part are in a tree, as they are there. */
export function isIn({ whole, head }: TableTree, part: TreePart): boolean {
  if (head.tree !== part.head.tree || head.n !== part.head.n) return false
  const texts = new Set([...whole.rows, ...whole.bodies].map(({ text }) => text))
  const edges = new Set(whole.edges.map(edgeMark))
  const rows = part.rows ?? []
  return (
    part.bodies.every(({ text }) => texts.has(text)) &&
    rows.every(({ letter, text }) =>
      letter === 'e' ? marksInText(text).every((one) => edges.has(one)) : texts.has(text),
    )
  )
}

/** The marks of edges; that of nothing where the text has none. */
export function marksInText(text: string): string[] {
  try {
    return edgesInText(text, { rootId: '', conversationId: '' }).map(edgeMark)
  } catch {
    return ['']
  }
}
