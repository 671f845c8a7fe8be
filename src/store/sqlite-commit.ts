import type { ConflictError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import type { Commit, LiveBlock } from '../graph/commit.ts'
import type { Body, Conversation, Edge, EngineRow, Id, Link, Node, Turn } from '../graph/rows.ts'
import { isOpen } from '../graph/states.ts'
import { foreignRow, knownEdge, requireNoTreeRows, staleRow, takenKey, unknownTree, wrongEdge } from './conflict.ts'
import { type Connection, RESULT, resultCode, type SqlRow } from './sqlite-driver.ts'

/** A commit's rows as JSON, written before the file is locked. Events are without their sequence: the log has it. */
export interface CommitTexts {
  readonly conversations: readonly string[]
  readonly turns: readonly string[]
  readonly nodes: readonly string[]
  readonly links: readonly string[]
  readonly engines: readonly string[]
  readonly blocks: readonly string[]
  readonly events: string
  readonly digest: string
}

export function commitTexts(commit: Commit): CommitTexts {
  const conversations = commit.conversations.map(toText)
  const turns = commit.turns.map(toText)
  const nodes = commit.nodes.map(toText)
  const links = commit.links.map(toText)
  const rows = [conversations, turns, nodes, commit.edges.map(toText), links, commit.bodies.map(({ hash }) => hash)]
  return {
    conversations,
    turns,
    nodes,
    links,
    engines: commit.engines.map(toText),
    blocks: commit.blocks.map(toText),
    events: JSON.stringify(commit.events),
    digest: sha256(rows.flat().join('\n')),
  }
}

/** The chain of a tree: the hash of the commit before, the digest of the rows this one wrote, and what it told. */
export function chainHash(before: string, digest: string, events: string): string {
  return sha256(`${before}\n${digest}\n${events}`)
}

/** Writes all rows and returns the tree's sequence before them. The caller's transaction is rolled back if it throws. */
export function writeCommit(db: Connection, commit: Commit, texts: CommitTexts): number {
  if (commit.rootId === null) requireNoTreeRows(commit)
  const seq = commit.rootId === null ? 0 : writeTree(db, commit, texts)
  commit.engines.forEach((row, index) => {
    putEngine(db, row, texts.engines[index] ?? '')
  })
  for (const id of commit.dropEngines) db.run('DELETE FROM engines WHERE id = ?', [id])
  commit.blocks.forEach((block, index) => {
    putBlock(db, block, texts.blocks[index] ?? '')
  })
  for (const id of commit.dropBlocks) db.run('DELETE FROM blocks WHERE node_id = ?', [id])
  return seq
}

function writeTree(db: Connection, commit: Commit, texts: CommitTexts): number {
  const seq = extendTree(db, commit, texts)
  for (const row of commit.conversations) if (row.rootId !== commit.rootId) throw foreignRow('conversations', row.id)
  commit.conversations.forEach((row, index) => {
    putConversation(db, row, texts.conversations[index] ?? '')
  })
  requireSameTree(db, commit)
  commit.turns.forEach((row, index) => {
    putTurn(db, row, texts.turns[index] ?? '')
  })
  commit.nodes.forEach((row, index) => {
    putNode(db, row, texts.nodes[index] ?? '')
  })
  commit.links.forEach((row, index) => {
    putLink(db, row, texts.links[index] ?? '')
  })
  for (const body of commit.bodies) putBody(db, body)
  for (const edge of commit.edges) putEdge(db, edge)
  return seq
}

const LAST_COMMIT = 'SELECT seq, hash FROM commits WHERE root_id = ? ORDER BY seq DESC, n DESC LIMIT 1'
const ADD_COMMIT = 'INSERT INTO commits (root_id, seq, kind, at, events, digest, hash) VALUES (?, ?, ?, ?, ?, ?, ?)'

function extendTree(db: Connection, commit: Commit, { events, digest }: CommitTexts): number {
  const rootId = commit.rootId ?? ''
  const last = db.first(LAST_COMMIT, [rootId])
  if (last === undefined && !commit.conversations.some((row) => row.id === rootId)) throw unknownTree(rootId)
  const seq = Number(last?.[0] ?? 0)
  const hash = chainHash(String(last?.[1] ?? ''), digest, events)
  db.run(ADD_COMMIT, [rootId, seq + commit.events.length, commit.kind, commit.at, events, digest, hash])
  return seq
}

/** Every row is of the commit's tree, and so is every conversation it names. */
function requireSameTree(db: Connection, commit: Commit): void {
  const known = new Set<Id>(commit.conversations.map((row) => row.id))
  const isOurs = (rootId: Id, conversationId: Id): boolean => {
    if (rootId !== commit.rootId) return false
    if (known.has(conversationId)) return true
    known.add(conversationId)
    return db.first('SELECT root_id FROM conversations WHERE id = ?', [conversationId])?.[0] === rootId
  }
  for (const row of commit.turns) if (!isOurs(row.rootId, row.conversationId)) throw foreignRow('turns', row.id)
  for (const row of commit.nodes) if (!isOurs(row.rootId, row.conversationId)) throw foreignRow('nodes', row.id)
  for (const row of commit.links) if (!isOurs(row.rootId, row.hostConversationId)) throw foreignRow('links', row.id)
  for (const edge of commit.edges) if (!isOurs(edge.rootId, edge.conversationId)) throw wrongEdge(edge)
}

const ADD_CONVERSATION = `INSERT OR IGNORE INTO conversations (version, data, agent, id, root_id, type)
  VALUES (1, ?, ?, ?, ?, ?)`
const SET_CONVERSATION = `UPDATE conversations SET data = ?, agent = ?, version = ?
  WHERE id = ? AND version = ? AND root_id = ?`

function putConversation(db: Connection, row: Conversation, data: string): void {
  const { id, version, rootId, agent, type } = row
  if (version === 1)
    return put(db, ADD_CONVERSATION, { values: [data, agent.name, id, rootId, type], table: 'conversations', row })
  const values = [data, agent.name, version, id, version - 1, rootId]
  put(db, SET_CONVERSATION, { values, table: 'conversations', row })
}

const ADD_TURN = `INSERT OR IGNORE INTO turns
    (version, data, queued, due, stop_at, open_root, id, conversation_id, lane_id, ordinal)
  SELECT 1, ?1, ?2, ?3, ?4, (SELECT ?5 FROM conversations WHERE id = ?7 AND type = 'user'), ?6, ?7, ?8, ?9
  WHERE NOT EXISTS (SELECT 1 FROM turns WHERE id = ?6)`
const SET_TURN = `UPDATE turns SET data = ?1, queued = ?2, due = ?3, stop_at = ?4,
    open_root = (SELECT ?5 FROM conversations WHERE id = ?7 AND type = 'user'), version = ?8
  WHERE id = ?6 AND conversation_id = ?7 AND version = ?8 - 1`

function putTurn(db: Connection, row: Turn, data: string): void {
  const { id, version, state, conversationId } = row
  const isOpenTurn = state !== 'ended'
  const values = [
    data,
    state === 'queued' ? 1 : null,
    state === 'running' ? row.deadline : null,
    isOpenTurn ? (row.cancel?.at ?? null) : null,
    isOpenTurn ? 1 : null,
    id,
    conversationId,
  ]
  if (version === 1) return put(db, ADD_TURN, { values: [...values, row.laneId, row.ordinal], table: 'turns', row })
  put(db, SET_TURN, { values: [...values, version], table: 'turns', row })
}

const ADD_NODE = `INSERT OR IGNORE INTO nodes
    (version, data, is_open, ready, wake_at, engine_id, epoch, id, turn_id, conversation_id, ordinal, kind, key)
  SELECT 1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?7)`
const SET_NODE = `UPDATE nodes SET data = ?1, is_open = ?2, ready = ?3, wake_at = ?4, engine_id = ?5, epoch = ?6, version = ?9
  WHERE id = ?7 AND +turn_id = ?8 AND version = ?9 - 1`

function putNode(db: Connection, row: Node, data: string): void {
  const { id, version, state } = row
  const isPending = state === 'pending'
  const values = [
    data,
    isOpen(state) ? 1 : 0,
    isPending && row.blockers === 0 ? row.createdAt : null,
    isPending ? row.wakeAt : null,
    isOpen(state) ? row.engineId : null,
    state === 'running' ? row.epoch : null,
    id,
    row.turnId,
  ]
  if (version !== 1) return put(db, SET_NODE, { values: [...values, version], table: 'nodes', row })
  const key = row.idempotencyKey === null ? null : keyOf(row.kind, row.idempotencyKey)
  const all = [...values, row.conversationId, row.ordinal, row.kind, key]
  put(db, ADD_NODE, { values: all, table: 'nodes', row, refusal: () => addedNodeRefusal(db, row) })
}

export function keyOf(kind: string, key: string): string {
  return `${kind}\n${key}`
}

function addedNodeRefusal(db: Connection, row: Node): ConflictError {
  const isThere = db.first('SELECT 1 FROM nodes WHERE id = ?', [row.id]) !== undefined
  return isThere ? staleRow('nodes', row) : takenKey(row)
}

const ADD_LINK = `INSERT OR IGNORE INTO links
    (version, data, is_open, id, host_turn_id, host_conversation_id, ordinal) VALUES (1, ?, ?, ?, ?, ?, ?)`
const SET_LINK = `UPDATE links SET data = ?1, is_open = ?2, version = ?5
  WHERE id = ?3 AND +host_turn_id = ?4 AND version = ?5 - 1`

function putLink(db: Connection, row: Link, data: string): void {
  const { id, version, hostTurnId } = row
  const values = [data, row.outcome === null ? 1 : 0, id, hostTurnId]
  if (version !== 1) return put(db, SET_LINK, { values: [...values, version], table: 'links', row })
  put(db, ADD_LINK, { values: [...values, row.hostConversationId, row.ordinal], table: 'links', row })
}

const ADD_EDGE = 'INSERT OR IGNORE INTO edges (from_id, to_id, type, conversation_id, root_id) VALUES (?, ?, ?, ?, ?)'

function putEdge(db: Connection, edge: Edge): void {
  if (edge.from === edge.to) throw wrongEdge(edge)
  const values = [edge.from, edge.to, edge.type, edge.conversationId, edge.rootId]
  if (changes(db, [ADD_EDGE, values], () => wrongEdge(edge)) !== 1) throw knownEdge(edge)
}

function putBody(db: Connection, { hash, text }: Body): void {
  db.run('INSERT OR IGNORE INTO bodies (hash, text) VALUES (?, ?)', [hash, Buffer.from(text, 'utf8')])
}

const ADD_ENGINE = 'INSERT OR IGNORE INTO engines (version, data, id) VALUES (1, ?, ?)'
const SET_ENGINE = 'UPDATE engines SET data = ?, version = ? WHERE id = ? AND version = ?'

function putEngine(db: Connection, row: EngineRow, data: string): void {
  const { id, version } = row
  if (version === 1) return put(db, ADD_ENGINE, { values: [data, id], table: 'engines', row })
  put(db, SET_ENGINE, { values: [data, version, id, version - 1], table: 'engines', row })
}

/** A block of a claim that was lost, or of a node that has ended, is left out. */
const PUT_BLOCK = `INSERT OR REPLACE INTO blocks (node_id, root_id, data)
  SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND epoch = ?4)`

function putBlock(db: Connection, block: LiveBlock, data: string): void {
  db.run(PUT_BLOCK, [block.nodeId, block.rootId, data, block.epoch])
}

interface Put {
  readonly values: SqlRow
  readonly table: string
  readonly row: { readonly id: Id; readonly version: number }
  /** Why nothing was written; a stale row unless said. */
  readonly refusal?: () => ConflictError
}

function put(db: Connection, sql: string, { values, table, row, refusal }: Put): void {
  if (changes(db, [sql, values], () => foreignRow(table, row.id)) === 1) return
  throw refusal === undefined ? staleRow(table, row) : refusal()
}

/** What SQLite's own constraints refuse is told as a conflict. */
function changes(db: Connection, [sql, values]: [string, SqlRow], refusal: () => ConflictError): number {
  try {
    return db.run(sql, values)
  } catch (error) {
    if ((resultCode(error) & 0xff) === RESULT.constraint) throw refusal()
    throw error
  }
}

function toText(row: object): string {
  return JSON.stringify(row)
}
