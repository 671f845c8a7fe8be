import { StoreError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import type { Commit } from '../graph/commit.ts'
import type { Body, EngineRow, Id } from '../graph/rows.ts'
import { staleRow } from './conflict.ts'
import type { RowCache, Tail, Written } from './row-cache.ts'
import { checkCommit } from './sqlite-check.ts'
import { type Connection, RESULT, resultCode, type SqlValue } from './sqlite-driver.ts'
import { packEvents } from './sqlite-events.ts'
import { COMMITS_PER_TREE, type SqliteGraph } from './sqlite-graph.ts'
import {
  AT,
  COLUMNS,
  edgeSlots,
  keySlot,
  memberSlot,
  pushConversation,
  pushLink,
  pushNode,
  pushTurn,
} from './sqlite-rows.ts'

/** A commit as it is written, made before the file is locked. */
export interface CommitTexts {
  /** The values of its conversations, turns, nodes and links, one row after the other; numbers are still to be given. */
  readonly values: SqlValue[]
  readonly events: string
  readonly digest: string
}

export function commitTexts(commit: Commit): CommitTexts {
  const values: SqlValue[] = []
  for (const row of commit.conversations) pushConversation(values, row)
  for (const row of commit.turns) pushTurn(values, row)
  for (const row of commit.nodes) pushNode(values, row)
  for (const row of commit.links) pushLink(values, row)
  let written = values.join('\n')
  for (const edge of commit.edges) written += `\n${edge.from} ${edge.to} ${edge.type}`
  for (const { hash } of commit.bodies) written += `\n${hash}`
  return { values, events: packEvents(commit.events), digest: sha256(written) }
}

/** The chain of a tree: the hash of the commit before, the digest of the rows this one wrote, and what it told. */
export function chainHash(before: string, digest: string, events: string): string {
  return sha256(`${before}\n${digest}\n${events}`)
}

export interface Writing {
  readonly db: Connection
  readonly graph: SqliteGraph
  /** Must be as stored until the transaction ends. */
  readonly cache: RowCache
}

/** Checks and writes all of it. The caller's transaction is rolled back if it throws. */
export function writeCommit(writing: Writing, commit: Commit, texts: CommitTexts): Written {
  const { db, graph, cache } = writing
  const before = tailBefore(graph, commit)
  checkCommit(commit, graph.reader, { hasTree: before !== undefined, asks: false })
  const last = lastNumbers(db, cache)
  const numbers = numberRows(cache, last, texts.values)
  putKeys(writing, commit, texts.values)
  const tree = before?.tree ?? (commit.rootId === null ? 0 : addTree(last, texts.values))
  putRows(db, texts.values)
  const tail = commit.rootId === null ? undefined : extendTree(db, { commit, texts, before, tree })
  for (const body of commit.bodies) putBody(db, body)
  for (const row of commit.engines) putEngine(db, row)
  for (const id of commit.dropEngines) db.run('DELETE FROM engines WHERE id = ?', [id])
  if (commit.blocks.length > 0 || commit.dropBlocks.length > 0) writeBlocks(writing, commit)
  return { numbers, tail }
}

/** A tree whose root is new has no log; if it is not new, its key refuses it. */
function tailBefore(graph: SqliteGraph, { rootId, conversations }: Commit): Tail | undefined {
  const isNew = conversations.some(({ id, version }) => id === rootId && version === 1)
  return rootId === null || isNew ? undefined : graph.tail(rootId)
}

const LAST = 'SELECT (SELECT max(n) FROM rows), (SELECT max(n) FROM commits)'

interface LastNumbers {
  row: number
  tree: number
}

function lastNumbers(db: Connection, cache: RowCache): LastNumbers {
  if (cache.last !== undefined) return cache.last
  const [row, commit] = db.first(LAST) ?? []
  cache.last = { row: Number(row ?? 0), tree: Math.floor(Number(commit ?? 0) / COMMITS_PER_TREE) }
  return cache.last
}

/** New rows get the next numbers; the others were just checked, so they are known. */
function numberRows(cache: RowCache, last: LastNumbers, values: SqlValue[]): number[] {
  const numbers: number[] = []
  for (let at = 0; at < values.length; at += AT.width) {
    const isNew = values[at + AT.version] === 1
    const n = isNew ? ++last.row : numberOf(cache, String(values[at + AT.id]), values[at + AT.slot])
    values[at + AT.n] = n
    numbers.push(n)
  }
  return numbers
}

function numberOf(cache: RowCache, id: Id, slot: SqlValue | undefined): number {
  const tree = cache.home(id)
  const cells =
    slot === 'c' ? tree?.conversations : slot === 't' ? tree?.turns : slot === 'n' ? tree?.nodes : tree?.links
  const n = cells?.get(id)?.n
  if (n === undefined) throw new StoreError('store', `The commit has the row ${id} twice.`)
  return n
}

/** Gives a new tree the next number and writes it into the row of its root. */
function addTree(last: LastNumbers, values: SqlValue[]): number {
  last.tree++
  for (let at = 0; at < values.length && values[at + AT.slot] === 'c'; at += AT.width) {
    if (values[at + AT.id] === values[at + AT.home]) values[at + AT.ordinal] = last.tree
  }
  return last.tree
}

const ADD_COMMIT = `INSERT INTO commits (n, root_id, seq, kind, at, events, digest, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

interface Extension {
  readonly commit: Commit
  readonly texts: CommitTexts
  readonly before: Tail | undefined
  readonly tree: number
}

function extendTree(db: Connection, { commit, texts: { events, digest }, before, tree }: Extension): Tail {
  const number = (before?.commit ?? 0) + 1
  if (number >= COMMITS_PER_TREE) throw new StoreError('store', `The tree ${commit.rootId} is full; start another.`)
  const seq = (before?.seq ?? 0) + commit.events.length
  const hash = chainHash(before?.hash ?? '', digest, events)
  const n = tree * COMMITS_PER_TREE + number
  db.run(ADD_COMMIT, [n, commit.rootId, seq, commit.kind, commit.at, events, digest, hash])
  return { tree, commit: number, seq, hash }
}

/** A key that is taken refuses the commit. */
function putKeys({ db, graph }: Writing, commit: Commit, values: readonly SqlValue[]): void {
  try {
    for (const some of portions(newKeys(commit, values), 3)) db.run(ADD_KEYS[some.length / 3] ?? '', some)
  } catch (error) {
    if ((resultCode(error) & 0xff) !== RESULT.constraint) throw error
    checkCommit(commit, graph.reader, { hasTree: true, asks: true })
    throw error
  }
}

function newKeys(commit: Commit, values: readonly SqlValue[]): SqlValue[] {
  const keys: SqlValue[] = []
  for (let at = 0; at < values.length; at += AT.width) {
    if (values[at + AT.version] !== 1) continue
    const [n, id, slot] = [Number(values[at + AT.n]), values[at + AT.id] ?? '', String(values[at + AT.slot])]
    keys.push(id, slot, n)
    const parent = values[at + AT.parent]
    if (typeof parent === 'string') keys.push(parent, memberSlot(slot, Number(values[at + AT.ordinal]), n), n)
  }
  let at = (commit.conversations.length + commit.turns.length) * AT.width
  for (const { version, turnId, kind, idempotencyKey: key } of commit.nodes) {
    if (version === 1 && key !== null) keys.push(turnId, keySlot(kind, key), values[at + AT.n] ?? 0)
    at += AT.width
  }
  for (const edge of commit.edges) {
    const [atFrom, atTo] = edgeSlots(edge)
    keys.push(edge.from, atFrom, 0, edge.to, atTo, 0)
  }
  return keys
}

/** Rows of one statement, at most. */
const AT_ONCE = 32
const counts = Array.from({ length: AT_ONCE + 1 }, (_, count) => count)
const ADD_KEYS: string[] = counts.map((count) => `INSERT INTO keys (id, slot, n) VALUES ${places(count, 3)}`)
const PUT_ROWS: string[] = counts.map(
  (count) => `INSERT INTO rows (${COLUMNS}) VALUES ${places(count, AT.width)}
    ON CONFLICT (n) DO UPDATE SET version = excluded.version, queue = excluded.queue, due = excluded.due,
      mark = excluded.mark, data = excluded.data WHERE version = excluded.version - 1 AND id = excluded.id`,
)

function places(count: number, width: number): string {
  const row = `(${new Array(width).fill('?').join(', ')})`
  return new Array(count).fill(row).join(', ')
}

function portions(values: readonly SqlValue[], width: number): readonly (readonly SqlValue[])[] {
  const most = AT_ONCE * width
  if (values.length <= most) return values.length === 0 ? [] : [values]
  const some: SqlValue[][] = []
  for (let at = 0; at < values.length; at += most) some.push(values.slice(at, at + most))
  return some
}

function putRows(db: Connection, values: readonly SqlValue[]): void {
  for (const some of portions(values, AT.width)) {
    const count = some.length / AT.width
    if (db.run(PUT_ROWS[count] ?? '', some) === count) continue
    throw staleRow('rows', { id: String(some[AT.id]), version: Number(some[AT.version]) })
  }
}

function putBody(db: Connection, { hash, text }: Body): void {
  db.run('INSERT OR IGNORE INTO bodies (hash, text) VALUES (?, ?)', [hash, Buffer.from(text, 'utf8')])
}

const ADD_ENGINE = 'INSERT OR IGNORE INTO engines (version, data, id) VALUES (1, ?, ?)'
const SET_ENGINE = 'UPDATE engines SET data = ?, version = ? WHERE id = ? AND version = ?'

function putEngine(db: Connection, row: EngineRow): void {
  const { id, version } = row
  const data = JSON.stringify(row)
  const changes = version === 1 ? db.run(ADD_ENGINE, [data, id]) : db.run(SET_ENGINE, [data, version, id, version - 1])
  if (changes !== 1) throw staleRow('engines', row)
}

const PUT_BLOCK = 'INSERT OR REPLACE INTO blocks (node_id, root_id, data) VALUES (?, ?, ?)'

/** A block of a claim that was lost, or of a node that has ended, is left out. */
function writeBlocks({ db, graph, cache }: Writing, { blocks, dropBlocks }: Commit): void {
  cache.blocks ??= new Set(db.all('SELECT node_id FROM blocks').map(([id]) => String(id)))
  const known: Set<Id> = cache.blocks
  for (const block of blocks) {
    const node = graph.reader.node(block.nodeId)
    if (node?.state !== 'running' || node.epoch !== block.epoch) continue
    db.run(PUT_BLOCK, [block.nodeId, block.rootId, JSON.stringify(block)])
    known.add(block.nodeId)
  }
  for (const id of dropBlocks) if (known.delete(id)) db.run('DELETE FROM blocks WHERE node_id = ?', [id])
}
