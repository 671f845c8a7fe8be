import { StoreError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import type { Commit } from '../graph/commit.ts'
import type { Body, EngineRow, Id } from '../graph/rows.ts'
import { staleRow } from './conflict.ts'
import type { RowCache, Tail } from './row-cache.ts'
import { checkCommit } from './sqlite-check.ts'
import type { Connection, SqlValue } from './sqlite-driver.ts'
import { packEvents } from './sqlite-events.ts'
import { COMMITS_PER_TREE, type SqliteGraph } from './sqlite-graph.ts'
import {
  COLUMNS,
  conversationColumns,
  edgeColumns,
  linkColumns,
  nodeColumns,
  TREE_NUMBER,
  turnColumns,
} from './sqlite-rows.ts'

/** A commit as it is written, made before the file is locked. */
export interface CommitTexts {
  /** The columns of every row. */
  readonly rows: readonly SqlValue[][]
  readonly events: string
  readonly digest: string
}

export function commitTexts(commit: Commit): CommitTexts {
  const rows: SqlValue[][] = []
  for (const row of commit.conversations) rows.push(conversationColumns(row))
  for (const row of commit.turns) rows.push(turnColumns(row))
  for (const row of commit.nodes) rows.push(nodeColumns(row))
  for (const row of commit.links) rows.push(linkColumns(row))
  for (const edge of commit.edges) rows.push(...edgeColumns(edge))
  const hashes = commit.bodies.map(({ hash }) => hash)
  return { rows, events: packEvents(commit.events), digest: sha256([...rows, hashes].join('\n')) }
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

/** Checks and writes all rows. Where the tree's log ends now. The caller's transaction is rolled back if it throws. */
export function writeCommit(writing: Writing, commit: Commit, texts: CommitTexts): Tail | undefined {
  const { db, graph } = writing
  const before = commit.rootId === null ? undefined : graph.tail(commit.rootId)
  checkCommit(commit, graph.reader, before !== undefined)
  const tail = commit.rootId === null ? undefined : extendTree(writing, { commit, texts, before })
  if (texts.rows.length > 0) putRows(db, texts.rows)
  for (const body of commit.bodies) putBody(db, body)
  for (const row of commit.engines) putEngine(db, row)
  for (const id of commit.dropEngines) db.run('DELETE FROM engines WHERE id = ?', [id])
  if (commit.blocks.length > 0 || commit.dropBlocks.length > 0) writeBlocks(writing, commit)
  return tail
}

const ADD_COMMIT = `INSERT INTO commits (n, root_id, seq, kind, at, events, digest, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

interface Extension {
  readonly commit: Commit
  readonly texts: CommitTexts
  readonly before: Tail | undefined
}

function extendTree({ db, cache }: Writing, { commit, texts, before }: Extension): Tail {
  const { events, digest, rows } = texts
  const tree = before?.tree ?? addTree(db, cache, rows)
  const number = (before?.commit ?? 0) + 1
  if (number >= COMMITS_PER_TREE) throw new StoreError('store', `The tree ${commit.rootId} is too long; start another.`)
  const seq = (before?.seq ?? 0) + commit.events.length
  const hash = chainHash(before?.hash ?? '', digest, events)
  const n = tree * COMMITS_PER_TREE + number
  db.run(ADD_COMMIT, [n, commit.rootId, seq, commit.kind, commit.at, events, digest, hash])
  return { tree, commit: number, seq, hash }
}

const LAST_TREE = `SELECT max(ordinal) FROM rows WHERE parent = '' AND slot = 'c'`

/** Gives a new tree the next number and writes it into the row of its root. */
function addTree(db: Connection, cache: RowCache, rows: readonly SqlValue[][]): number {
  cache.lastTree ??= Number(db.first(LAST_TREE)?.[0] ?? 0)
  cache.lastTree++
  for (const row of rows) if (row[1] === 'c' && row[0] === row[3]) row[TREE_NUMBER] = cache.lastTree
  return cache.lastTree
}

const ROW = '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
const AT_ONCE = 32
const PUTS: string[] = Array.from({ length: AT_ONCE + 1 }, (_, count) => putSql(count))

function putSql(count: number): string {
  return `INSERT INTO rows (${COLUMNS}) VALUES ${new Array(count).fill(ROW).join(', ')}
    ON CONFLICT (id, slot) DO UPDATE SET version = excluded.version, queue = excluded.queue, due = excluded.due,
      mark = excluded.mark, data = excluded.data WHERE version = excluded.version - 1`
}

function putRows(db: Connection, rows: readonly SqlValue[][]): void {
  for (let at = 0; at < rows.length; at += AT_ONCE) {
    const some = rows.length <= AT_ONCE ? rows : rows.slice(at, at + AT_ONCE)
    if (db.run(PUTS[some.length] ?? '', some.flat()) === some.length) continue
    const [id, , version] = some[0] ?? []
    throw staleRow('rows', { id: String(id), version: Number(version) })
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
