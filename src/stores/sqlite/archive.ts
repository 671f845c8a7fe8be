import { ConflictError, StoreError } from '../../core/base/error.ts'
import type { Commit } from '../../core/graph/commit.ts'
import type { Id } from '../../core/graph/rows.ts'
import type { Archive, Removal, Tombstone, WholeTree, WrittenRow } from '../../core/store/archive.ts'
import { asNew } from '../../core/store/archive.ts'
import {
  COMMITS_PER_TREE,
  ownQueues,
  pushConversation,
  pushEdges,
  pushLink,
  pushNode,
  pushTurn,
  SPAN,
  type SqlValue,
  spanOf,
  WIDTH,
} from '../../core/store/codec/rows.ts'
import { shortText } from '../../core/store/codec/short-text.ts'
import { unpackTree } from '../../core/store/codec/tree-text.ts'
import { liftedBy, tombstoneOf, wentOn } from '../../core/store/not-found.ts'
import type { RowCache } from '../../core/store/row-cache.ts'
import { forgetChanges } from './beside/changes.ts'
import { forgetRegistered } from './beside/registry.ts'
import { forgetSpent } from './beside/spent.ts'
import { dropStone, findStone, forgetStones, putStone, readStones, toStone } from './beside/stones.ts'
import { addKeys, newKeys, putBody, putUses } from './commit.ts'
import { atOneMoment, type Connection } from './driver.ts'
import { nextSpan, numberRows } from './numbers.ts'
import { putOwned } from './owners.ts'
import { bury, dropTree, headOfTree, readConversation, removeTree, spansWithin } from './remove.ts'
import { putRows, sealTree } from './seals.ts'
import { bodiesOf, edgesIn, findTrees, readRecords, readSpan, treeByLog, writtenRow } from './tree.ts'
import { verifyInSlices, verifySqlite } from './verify.ts'

export interface ArchiveContext {
  readonly read: <T>(query: (db: Connection) => T) => T
  /** Runs a change in one transaction, with a cache that agrees with the file until its end. */
  readonly write: (change: (db: Connection, cache: RowCache) => void) => void | Promise<void>
  /** Runs a long query at one moment of the file, on a connection of its own: meanwhile others read and write. */
  readonly readApart: <T>(query: (db: Connection) => Promise<T>) => Promise<T>
  readonly compact: () => void
}

export function sqliteArchive({ read, write, readApart, compact }: ArchiveContext): Archive {
  return {
    read: (rootId) => read((db) => atOneMoment(db, () => readWhole(db, rootId))),
    verify: (rootId) =>
      rootId === undefined ? readApart(verifyInSlices) : read((db) => atOneMoment(db, () => verifySqlite(db, rootId))),
    head: (rootId) => read((db) => headOfTree(db, rootId)),
    restore: (tree, instead) =>
      write((db, cache) => {
        if (instead !== undefined) makeRoom(db, cache, { rootId: tree.rootId, hash: instead })
        restore(db, cache, tree)
      }),
    bury: (stone) => write((db, cache) => putStone(db, nextSpan(db, cache), stone)),
    remove: (rootId, removal) => {
      if (removal.dryRun === true) return read((db) => atOneMoment(db, () => removeTree(db, rootId, removal)))
      return remove(write, rootId, removal)
    },
    tombstones: () => read((db) => readStones(db).flatMap(({ data }) => toStone(data) ?? [])),
    tombstone: (id) => read((db) => findStone(db, id)),
    forgetOwner: (owner, keptDay) => write((db) => forgetOwner(db, owner, keptDay)),
    compact,
  }
}

function forgetOwner(db: Connection, owner: string, keptDay?: string): void {
  forgetChanges(db, owner)
  forgetSpent(db, owner, keptDay)
  forgetRegistered(db, owner)
  forgetStones(db, owner)
}

function remove(write: ArchiveContext['write'], rootId: Id, removal: Removal): ReturnType<Archive['remove']> {
  let stone: Tombstone | undefined
  const written = write((db) => {
    stone = removal.evenTampered === true ? removeEvenAltered(db, rootId, removal) : removeTree(db, rootId, removal)
  })
  return written instanceof Promise ? written.then(() => stone) : stone
}

const ORDER = ['c', 't', 'n', 'l']

function readWhole(db: Connection, rootId: Id): WholeTree | undefined {
  const place = spansWithin(db, rootId)
  if (place === undefined) return undefined
  const { spans } = place
  const rows = spans.flatMap((span) =>
    span.rows.flatMap((row) => {
      if (row.packed === null) throw unreadable(row.n)
      return writtenRow(row, span.turn?.id ?? null) ?? []
    }),
  )
  const edges = new Map(
    spans.flatMap(edgesIn).map(({ isShared: _, ...edge }) => [`${edge.from} ${edge.to} ${edge.type}`, edge]),
  )
  return {
    rootId,
    rows: rows.sort((a, b) => ORDER.indexOf(a.letter) - ORDER.indexOf(b.letter)),
    edges: [...edges.values()],
    bodies: bodiesOf(db, spans),
    records: readRecords(db, place.tree).map(({ number: _, rootId: __, ...record }) => record),
  }
}

function unreadable(n: number): StoreError {
  return new StoreError('store', `Row ${n} of the file cannot be read: it is not what was written.`)
}

const ADD_RECORD = `INSERT INTO commits (n, root_id, seq, kind, at, events, marks, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

/** Drops the tree of which a newer copy comes, in the caller's transaction. */
function makeRoom(db: Connection, cache: RowCache, { rootId, hash }: { rootId: Id; hash: string }): void {
  if (headOfTree(db, rootId) !== hash) throw wentOn(rootId)
  dropTree(db, rootId)
  cache.clear()
}

/** Rows keep their texts byte for byte, and so their hashes. */
function restore(db: Connection, cache: RowCache, tree: WholeTree): void {
  const { rootId, records, bodies } = tree
  for (const row of tree.rows) refuseKnown(db, row)
  const whole = unpackTree(tree)
  const fresh: Commit = {
    ...whole,
    conversations: whole.conversations.map(asNew),
    turns: whole.turns.map(asNew),
    nodes: whole.nodes.map(asNew),
    links: whole.links.map(asNew),
  }
  const { numbers, edges } = numberRows(db, cache, fresh)
  // Only now: until here the tombstone uses the number.
  liftStone(db, tree)
  addKeys(db, newKeys(fresh, numbers))
  const root = fresh.conversations.find(({ id }) => id === rootId)
  const values = valuesOf(whole, tree.rows, numbers)
  ownQueues(values, root?.owner)
  for (const [n, list] of edges) pushEdges(values, n, list)
  putRows(db, values)
  for (const body of bodies) putBody(db, body)
  const first = spanOf(numbers[fresh.conversations.findIndex(({ id }) => id === rootId)] ?? 0)
  putUses(db, first, fresh)
  if (root !== undefined) {
    putOwned(db, {
      commit: fresh,
      root,
      numbers,
      tree: first,
      isNewTree: true,
      conversation: (id) => fresh.conversations.find((row) => row.id === id),
      turnBefore: () => undefined,
      newestBefore: () => undefined,
    })
  }
  records.forEach(({ seq, kind, at, events, marks, hash }, index) => {
    const n = first * COMMITS_PER_TREE + index + 1
    db.run(ADD_RECORD, [n, index === 0 ? rootId : null, seq, kind, at, shortText(events, []), marks, hash])
  })
  sealTree(db, first, spansIn(numbers), records)
}

/** The first row of each span. */
function spansIn(numbers: readonly number[]): number[] {
  return [...new Set(numbers.map(spanOf))].map((span) => span * SPAN)
}

function liftStone(db: Connection, tree: WholeTree): void {
  const stones = readStones(db).flatMap(({ n, data }) => {
    const stone = toStone(data)
    return stone === undefined ? [] : [{ n, stone }]
  })
  const lifted = liftedBy(
    stones.map(({ stone }) => stone),
    tree,
    tree.records.at(-1)?.hash ?? '',
  )
  const found = stones.find(({ stone }) => stone === lifted)
  if (found !== undefined) dropStone(db, found.n)
}

function refuseKnown(db: Connection, { letter, id }: WrittenRow): void {
  if (db.first('SELECT n FROM keys WHERE id = ? AND slot = ?', [id, letter]) === undefined) return
  throw new ConflictError('conflict', `The row ${id} is in this store already.`, { details: { id } })
}

function valuesOf(whole: Commit, rows: readonly WrittenRow[], numbers: readonly number[]): SqlValue[] {
  const values: SqlValue[] = []
  for (const row of whole.conversations) pushConversation(values, row)
  for (const row of whole.turns) pushTurn(values, row)
  for (const row of whole.nodes) pushNode(values, row)
  for (const row of whole.links) pushLink(values, row)
  rows.forEach(({ text }, at) => {
    values[at * WIDTH] = numbers[at] ?? 0
    values[at * WIDTH + WIDTH - 1] = text
  })
  return values
}

/** Works as `removeTree`, and deletes also a tree that differs from its commits: nothing else could delete it. */
function removeEvenAltered(db: Connection, rootId: Id, removal: Removal): Tombstone | undefined {
  try {
    const stone = removeTree(db, rootId, removal)
    if (stone !== undefined || !isAltered(db, rootId)) return stone
  } catch (error) {
    if (!isAltered(db, rootId)) throw error
  }
  return removeAltered(db, rootId, removal)
}

function isAltered(db: Connection, rootId: Id): boolean {
  return verifySqlite(db, rootId).findings.some((one) => one.rootId === rootId)
}

/** Relies on the log and the seals, because rows may contain anything. Rows that another tree wrote stay. */
function removeAltered(db: Connection, rootId: Id, removal: Removal): Tombstone | undefined {
  const tree = treeByLog(db, rootId) ?? findTrees(db, rootId).byRoot.get(rootId)?.tree
  if (tree === undefined) return undefined
  const numbers = alteredSpansOf(db, rootId, tree)
  const spans = numbers.map((n) => readSpan(db, n))
  const { seq = 0, hash = '' } = readRecords(db, tree).at(-1) ?? {}
  const conversations = spans.flatMap((span) => readConversation(span) ?? [])
  const turns = spans.flatMap(({ turn }) => turn ?? [])
  const stone = tombstoneOf({ rootId, hash, seq, conversations, turns }, removal)
  if (removal.dryRun === true) return stone
  db.run(DROP_KEYS, [JSON.stringify(numbers.map((n) => n / SPAN))])
  bury(db, { rootId, tree, spans: numbers }, stone)
  return stone
}

const DROP_KEYS = `DELETE FROM keys WHERE n / ${SPAN} IN (SELECT value FROM json_each(?))`
const SEALED = 'SELECT n FROM seals WHERE writer >= ? AND writer < ?'

/** All spans that commits of this tree began, and those that no commit began and that name this tree. */
function alteredSpansOf(db: Connection, rootId: Id, tree: number): number[] {
  const first = tree * COMMITS_PER_TREE
  const sealed = db.all(SEALED, [first, first + COMMITS_PER_TREE]).map(([n]) => Number(n))
  const claimed = findTrees(db, rootId).byRoot.get(rootId)?.spans ?? []
  const isUnsealed = (n: number) => db.first('SELECT 1 FROM seals WHERE n = ?', [n]) === undefined
  return [...sealed, ...claimed.filter(isUnsealed)]
}
