import { StoreError } from '../../core/base/error.ts'
import type { Commit, EngineRow } from '../../core/graph/commit.ts'
import type { TreeReader } from '../../core/graph/reader.ts'
import type { Body, Conversation, Edge, Id, Link, Node, Turn } from '../../core/graph/rows.ts'
import { packEvents } from '../../core/store/codec/event-text.ts'
import {
  COMMITS_PER_TREE,
  ownQueues,
  pushConversation,
  pushEdges,
  pushLink,
  pushNode,
  pushTurn,
  SIZE,
  SPAN,
  type SqlValue,
  spanOf,
  turnSlot,
  WIDTH,
  WRITER,
} from '../../core/store/codec/rows.ts'
import { shortText } from '../../core/store/codec/short-text.ts'
import { chainHash, edgeMark, memberText, rowMark, turnEdgesMarks } from '../../core/store/commit-chain.ts'
import { changeOf, changeTypes } from '../../core/store/feed.ts'
import type { RowCache, Tail, WrittenNumbers } from '../../core/store/row-cache.ts'
import {
  foreignRow,
  knownEdge,
  requireNoTreeRows,
  staleRow,
  takenKey,
  unknownTree,
  wrongEdge,
} from '../../core/store/store.ts'
import { putChange } from './beside/changes.ts'
import { putSpent } from './beside/spent.ts'
import { type Connection, columnText, RESULT, resultCode } from './driver.ts'
import { type Growth, sealStretches, unseal } from './marks.ts'
import { numberRows, type RowNumbers } from './numbers.ts'
import { type OwnedCommit, putOwned } from './owners.ts'
import type { SqliteGraph } from './read.ts'
import { putRows, putSeals, type RowInserter, rowInserter, setSize } from './seals.ts'

/** The texts of a commit, made before the file is locked. */
export interface CommitTexts {
  /** The values of its conversations, turns, nodes and links, row by row; their numbers come later. */
  readonly values: SqlValue[]
  readonly events: string
  /** The events as the file has them. */
  readonly short: string
  readonly marks: string
}

export function commitTexts(commit: Commit): CommitTexts {
  const values: SqlValue[] = []
  for (const row of commit.conversations) pushConversation(values, row)
  for (const row of commit.turns) pushTurn(values, row)
  for (const row of commit.nodes) pushNode(values, row)
  for (const row of commit.links) pushLink(values, row)
  const events = packEvents(commit.events)
  return { values, events, short: shortText(events, NO_IDS), marks: marksOf(commit, values) }
}

/** Texts of commits are read without a look at other rows. */
const NO_IDS: readonly Id[] = []

/** The marks of all rows but bodies, whose hash is their name. */
function marksOf({ conversations, turns, nodes, links, edges }: Commit, values: readonly SqlValue[]): string {
  let marks = ''
  let at = WIDTH - 1
  const text = (): string => {
    const data = String(values[at])
    at += WIDTH
    return data
  }
  for (const { id } of conversations) marks += rowMark('c', id, text())
  for (const { id } of turns) marks += rowMark('t', id, text())
  for (const { id, turnId } of nodes) marks += rowMark('n', id, memberText(turnId, text()))
  for (const { id, hostTurnId } of links) marks += rowMark('l', id, memberText(hostTurnId, text()))
  for (const edge of edges) marks += edgeMark(edge)
  return marks
}

export interface WriteContext {
  readonly db: Connection
  readonly graph: SqliteGraph
  /** Must agree with the file until the transaction ends. */
  readonly cache: RowCache
}

/** Checks and writes the whole commit. If it throws, the caller rolls its transaction back. */
export function writeCommit(context: WriteContext, commit: Commit, texts: CommitTexts): WrittenNumbers {
  const { db, graph, cache } = context
  const before = tailBefore(graph, commit)
  const check = checkCommit(commit, graph.reader, { hasTree: before !== undefined, asks: false })
  const numbered = numberRows(db, cache, commit)
  const { numbers, ends } = numbered
  cache.keep(commit, { check, numbered, commit })
  const tree = before?.tree ?? rootSpan(commit, numbers)
  const tail =
    commit.rootId === null
      ? undefined
      : extendTree(db, { commit, texts: withTurns(texts, commit, numbered), before, tree })
  const writer = tail === undefined ? null : tree * COMMITS_PER_TREE + tail.commit
  const root = rootRow(graph, commit)
  ownQueues(texts.values, root?.owner)
  if (writer !== null && root !== undefined) {
    // These look at rows as they were: from the moment they are written, nothing may be read into the cache. Keys come after
    // them too: a key without its row reads like a lost row, for which the whole file is searched.
    putOwned(db, ownedIn(context, commit, { root, numbers, tree, isNewTree: before === undefined }))
    addChange(context, commit, root, tail?.seq ?? 0)
    putSpent(db, commit.spent)
    putSeals(db, newSpans(commit, numbers), writer)
  }
  putKeys(context, commit, numbers)
  putRows(db, writtenValues(texts.values, { commit, numbered, writer }))
  unseal(db, numbered.aged)
  for (const growth of growthOf(cache, ends)) {
    if (!commit.turns.some(({ id }) => id === growth.turnId)) setSize(db, spanOf(growth.last) * SPAN, growth.last)
    sealStretches(db, growth)
  }
  for (const body of commit.bodies) putBody(db, body)
  putUses(db, tree, commit)
  for (const row of commit.engines) putEngine(db, row)
  for (const id of commit.dropEngines) db.run('DELETE FROM engines WHERE id = ?', [id])
  if (commit.blocks.length > 0 || commit.dropBlocks.length > 0) writeBlocks(context, commit)
  return { numbers, ends, tail }
}

function rootRow(graph: SqliteGraph, { rootId, conversations }: Commit): Conversation | undefined {
  if (rootId === null) return undefined
  return conversations.find(({ id }) => id === rootId) ?? graph.reader.conversation(rootId)
}

/** Adds the commit to the feed where it makes a change. */
function addChange(
  { db, cache }: WriteContext,
  commit: Commit,
  root: Conversation,
  /** The sequence after it. */
  seq: number,
): void {
  const types = changeTypes(commit)
  if (types.length > 0) cache.lastChange = putChange(db, changeOf(root, commit, { seq, types }), cache.lastChange)
}

function ownedIn(
  { graph: { reader }, cache }: WriteContext,
  commit: Commit,
  { root, numbers, tree, isNewTree }: Pick<OwnedCommit, 'root' | 'numbers' | 'tree' | 'isNewTree'>,
): OwnedCommit {
  return {
    commit,
    root,
    numbers,
    tree,
    isNewTree,
    conversation: reader.conversation,
    turnBefore: (id) => cache.home(id)?.turns.get(id)?.row,
    newestBefore: () => reader.turnsOf(root.id, { limit: 1 })[0],
  }
}

/** The turns of the edges' nodes are known only now. */
function withTurns(texts: CommitTexts, { edges }: Commit, numbered: RowNumbers): CommitTexts {
  if (edges.length < 2) return texts
  return { ...texts, marks: texts.marks + turnEdgesMarks(edges, (id) => numbered.turnOf(id)) }
}

/** The growth of turns that existed before. */
function growthOf(cache: RowCache, ends: WrittenNumbers['ends']): Growth[] {
  const grown: Growth[] = []
  for (const [turnId, last] of ends) {
    const before = cache.home(turnId)?.turns.get(turnId)?.last
    if (before !== undefined) grown.push({ turnId, before, last })
  }
  return grown
}

/** A tree whose root is new has no log; if it is not new, its key refuses it. */
function tailBefore(graph: SqliteGraph, { rootId, conversations }: Commit): Tail | undefined {
  const isNew = conversations.some(({ id, version }) => id === rootId && version === 1)
  return rootId === null || isNew ? undefined : graph.tail(rootId)
}

interface Place {
  readonly commit: Commit
  readonly numbered: RowNumbers
  readonly writer: number | null
}

/** A refused commit may use the same texts again, so only numbers, writer and sizes change. */
function writtenValues(values: SqlValue[], { commit, numbered, writer }: Place): SqlValue[] {
  const { numbers, edges } = numbered
  for (let at = 0; at < numbers.length; at++) {
    values[at * WIDTH] = numbers[at] ?? 0
    values[at * WIDTH + WRITER] = writer
  }
  let at = 0
  for (; at < commit.conversations.length; at++) values[at * WIDTH + SIZE] = 1
  for (const { id } of commit.turns) {
    values[at * WIDTH + SIZE] = numbered.lastOf(id) - (numbers[at] ?? 0) + 1
    at++
  }
  if (edges.size === 0) return values
  const all = values.slice()
  for (const [n, list] of edges) {
    pushEdges(all, n, list)
    all[all.length - WIDTH + WRITER] = writer
  }
  return all
}

function newSpans({ conversations, turns }: Commit, numbers: readonly number[]): number[] {
  return numbers.filter((_, at) => (conversations[at] ?? turns[at - conversations.length])?.version === 1)
}

/** The number of a tree is the span of its root. */
function rootSpan({ rootId, conversations }: Commit, numbers: readonly number[]): number {
  return spanOf(numbers[conversations.findIndex(({ id }) => id === rootId)] ?? 0)
}

const ADD_COMMIT = `INSERT INTO commits (n, root_id, seq, kind, at, events, marks, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

interface Extension {
  readonly commit: Commit
  readonly texts: CommitTexts
  readonly before: Tail | undefined
  readonly tree: number
}

function extendTree(db: Connection, { commit, texts: { events, short, marks }, before, tree }: Extension): Tail {
  const number = (before?.commit ?? 0) + 1
  if (number >= COMMITS_PER_TREE) throw new StoreError('store', `The tree ${commit.rootId} is full; start another.`)
  const seq = (before?.seq ?? 0) + commit.events.length
  const { kind, at } = commit
  const hash = chainHash(before?.hash ?? '', { kind, at, seq, events, marks })
  const n = tree * COMMITS_PER_TREE + number
  db.run(ADD_COMMIT, [n, number === 1 ? commit.rootId : null, seq, kind, at, short, marks, hash])
  return { tree, commit: number, seq, hash }
}

/** A key that is taken refuses the commit. */
function putKeys({ db, graph }: WriteContext, commit: Commit, numbers: readonly number[]): void {
  try {
    addKeys(db, newKeys(commit, numbers))
  } catch (error) {
    if ((resultCode(error) & 0xff) !== RESULT.constraint) throw error
    checkCommit(commit, graph.reader, { hasTree: true, asks: true })
    throw error
  }
}

export function newKeys({ conversations, turns, nodes, links }: Commit, numbers: readonly number[]): SqlValue[] {
  const keys: SqlValue[] = []
  let at = 0
  const put = ({ id, version }: { readonly id: Id; readonly version: number }, slot: string): void => {
    if (version === 1) keys.push(id, slot, numbers[at] ?? 0)
    at++
  }
  for (const row of conversations) put(row, 'c')
  for (const row of turns) {
    const n = numbers[at] ?? 0
    if (row.version === 1) keys.push(row.laneId, turnSlot(row.ordinal, n), n)
    put(row, 't')
  }
  for (const row of nodes) put(row, 'n')
  for (const row of links) put(row, 'l')
  return keys
}

export const addKeys: RowInserter = rowInserter('INSERT INTO keys (id, slot, n)', 3)

export function putBody(db: Connection, { hash, text }: Body): void {
  db.run('INSERT OR IGNORE INTO bodies (hash, text) VALUES (?, ?)', [hash, Buffer.from(text, 'utf8')])
}

/** Keeps a body as long as a tree that brought it or names it. */
export function putUses(db: Connection, tree: number, { nodes, bodies }: Pick<Commit, 'nodes' | 'bodies'>): void {
  const add = (hash: string) => db.run('INSERT OR IGNORE INTO uses (tree, hash) VALUES (?, ?)', [tree, hash])
  for (const { hash } of bodies) add(hash)
  for (const { output } of nodes) if (output.bodyRef !== undefined) add(output.bodyRef)
}

const ADD_ENGINE = 'INSERT OR IGNORE INTO engines (version, data, id) VALUES (1, ?, ?)'
const SET_ENGINE = 'UPDATE engines SET data = ?, version = ? WHERE id = ? AND version = ?'

function putEngine(db: Connection, row: EngineRow): void {
  const { id, version } = row
  const data = JSON.stringify(row)
  const changes = version === 1 ? db.run(ADD_ENGINE, [data, id]) : db.run(SET_ENGINE, [data, version, id, version - 1])
  if (changes !== 1) throw staleRow('engines', row)
}

const ADD_BLOCK = 'INSERT INTO blocks (node_id, root_id, data) VALUES (?, ?, ?)'

/** Skips blocks of a lost claim, or of a node that has ended. */
function writeBlocks({ db, graph, cache }: WriteContext, { blocks, dropBlocks }: Commit): void {
  cache.blocks ??= new Set(db.all('SELECT DISTINCT CAST(node_id AS BLOB) FROM blocks').map(([id]) => columnText(id)))
  const known: Set<Id> = cache.blocks
  for (const block of blocks) {
    const node = graph.reader.node(block.nodeId)
    if (node?.state !== 'running' || node.epoch !== block.epoch) continue
    db.run(ADD_BLOCK, [block.nodeId, block.rootId, JSON.stringify(block)])
    known.add(block.nodeId)
  }
  for (const id of dropBlocks) if (known.delete(id)) db.run('DELETE FROM blocks WHERE node_id = ?', [id])
}

/**
 * Throws ConflictError unless all rows may be put. `stored` must agree with the file until the commit is written. The write
 * itself refuses a new row whose id is taken; `asks` makes this function check that too. Gives the object it worked with.
 */
function checkCommit(
  commit: Commit,
  stored: TreeReader,
  { hasTree, asks }: { hasTree: boolean; asks: boolean },
): unknown {
  if (commit.rootId === null) return requireNoTreeRows(commit)
  if (!hasTree && !commit.conversations.some(({ id }) => id === commit.rootId)) throw unknownTree(commit.rootId, commit)
  const check = new Check(commit.rootId, stored, asks)
  for (const row of commit.conversations) check.conversation(row)
  for (const row of commit.turns) check.turn(row)
  for (const row of commit.nodes) check.node(row)
  for (const row of commit.links) check.link(row)
  for (const edge of commit.edges) check.edge(edge)
  return check
}

/** Checked rows count as stored for those that come after them. */
class Check {
  private readonly rootId: Id
  private readonly stored: TreeReader
  private readonly asks: boolean
  private readonly conversations = new Map<Id, Conversation>()
  private readonly turns = new Map<Id, Turn>()
  private readonly nodes = new Map<Id, Node>()
  private readonly links = new Map<Id, Link>()
  private readonly names = new Set<string>()

  constructor(rootId: Id, stored: TreeReader, asks: boolean) {
    this.rootId = rootId
    this.stored = stored
    this.asks = asks
  }

  conversation(row: Conversation): void {
    const before = this.conversations.get(row.id) ?? (this.mayBe(row) ? this.stored.conversation(row.id) : undefined)
    expectVersion('conversations', row, before)
    if (row.rootId !== this.rootId || (before ?? row).rootId !== this.rootId) throw foreignRow('conversations', row.id)
    this.conversations.set(row.id, row)
  }

  turn(row: Turn): void {
    const before = this.turns.get(row.id) ?? (this.mayBe(row) ? this.stored.turn(row.id) : undefined)
    expectVersion('turns', row, before)
    const home = this.conversations.get(row.conversationId) ?? this.stored.conversation(row.conversationId)
    const isOurs = row.rootId === this.rootId && home?.rootId === this.rootId
    if (!isOurs || !isSamePlace(row, before ?? row)) throw foreignRow('turns', row.id)
    this.turns.set(row.id, row)
  }

  node(row: Node): void {
    const before = this.nodes.get(row.id) ?? (this.mayBe(row) ? this.stored.node(row.id) : undefined)
    expectVersion('nodes', row, before)
    const turn = this.turns.get(row.turnId) ?? this.stored.turn(row.turnId)
    const isOurs = row.rootId === this.rootId && turn?.rootId === this.rootId
    const isThere = turn?.conversationId === row.conversationId && row.turnId === (before ?? row).turnId
    if (!isOurs || !isThere) throw foreignRow('nodes', row.id)
    if (before === undefined && row.idempotencyKey !== null) this.key(row, row.idempotencyKey)
    this.nodes.set(row.id, row)
  }

  link(row: Link): void {
    const before = this.links.get(row.id) ?? (this.mayBe(row) ? this.stored.link(row.id) : undefined)
    expectVersion('links', row, before)
    const host = this.turns.get(row.hostTurnId) ?? this.stored.turn(row.hostTurnId)
    const isOurs = row.rootId === this.rootId && host?.rootId === this.rootId
    const isThere = host?.conversationId === row.hostConversationId && row.hostTurnId === (before ?? row).hostTurnId
    if (!isOurs || !isThere) throw foreignRow('links', row.id)
    this.links.set(row.id, row)
  }

  edge(edge: Edge): void {
    const [from, to] = [this.nodes.get(edge.from), this.nodes.get(edge.to)]
    const ends = [from ?? this.stored.node(edge.from), to ?? this.stored.node(edge.to)]
    const isInside = ends.every((node) => node?.conversationId === edge.conversationId && node.rootId === edge.rootId)
    if (!isInside || edge.rootId !== this.rootId || edge.from === edge.to) throw wrongEdge(edge)
    const isKnown = from?.version !== 1 && this.stored.edgesFrom(edge.from).some((other) => isSameEdge(other, edge))
    if (isKnown || !this.isFirst(`${edge.type} ${edge.from} ${edge.to}`)) throw knownEdge(edge)
  }

  private key(row: Node, key: string): void {
    const isNewTurn = this.turns.get(row.turnId)?.version === 1
    const isTaken = !isNewTurn && this.stored.nodeByKey(row.turnId, row.kind, key) !== undefined
    if (isTaken || !this.isFirst(`key ${row.turnId} ${row.kind}\n${key}`)) throw takenKey(row)
  }

  /** True where the file must be asked whether the row exists. */
  private mayBe({ version }: { readonly version: number }): boolean {
    return version !== 1 || this.asks
  }

  private isFirst(name: string): boolean {
    if (this.names.has(name)) return false
    this.names.add(name)
    return true
  }
}

function expectVersion(
  table: string,
  row: { readonly id: Id; readonly version: number },
  before: { readonly version: number } | undefined,
): void {
  if (row.version < 1 || row.version - 1 !== (before?.version ?? 0)) throw staleRow(table, row)
}

function isSamePlace(row: Turn, before: Turn): boolean {
  return row.conversationId === before.conversationId && row.laneId === before.laneId && row.ordinal === before.ordinal
}

function isSameEdge(a: Edge, b: Edge): boolean {
  return a.to === b.to && a.type === b.type
}
