import { StoreError } from '../../core/base/error.ts'
import type { Conversation, Id, Turn } from '../../core/graph/rows.ts'
import type { Removal, Tombstone, WrittenRow } from '../../core/store/archive.ts'
import { COMMITS_PER_TREE, SPAN, toConversation, toLink, turnSlot } from '../../core/store/codec/rows.ts'
import { markOf } from '../../core/store/codec/tree-text.ts'
import { isOfTurnEdges, readMarks } from '../../core/store/commit-chain.ts'
import { tombstoneOf } from '../../core/store/not-found.ts'
import { openTree } from '../../core/store/store.ts'
import { putStone } from './beside/stones.ts'
import { type Connection, columnText } from './driver.ts'
import { dropOwned } from './owners.ts'
import { type FileSpan, findTrees, readRecords, readSpan, writtenRow } from './tree.ts'

/** Deletes a tree in the caller's transaction. Costs as much as the tree is large, whatever else is stored. */
export function removeTree(db: Connection, rootId: Id, removal: Removal): Tombstone | undefined {
  const leaving = findLeaving(db, rootId)
  if (leaving === undefined || (removal.seq ?? leaving.seq) !== leaving.seq) return undefined
  // A caller that deletes even a changed tree uses another function.
  if (removal.evenTampered === true && !leaving.isWhole) return undefined
  const open = leaving.turns.find(({ state }) => state !== 'ended')
  if (open !== undefined) throw openTree(rootId, open.id)
  const stone = tombstoneOf(leaving, removal)
  if (removal.dryRun === true) return stone
  putStone(db, drop(db, leaving), stone)
  return stone
}

function drop(db: Connection, leaving: DoomedTree): number {
  for (const [id, slot] of leaving.spans.flatMap(keysOf)) {
    db.run('DELETE FROM keys WHERE id = ? AND slot = ?', [id, slot])
  }
  return dropRows(db, { ...leaving, spans: leaving.spans.map(firstOf) })
}

function firstOf({ rows }: FileSpan): number {
  return rows[0]?.n ?? 0
}

/** Deletes a tree in the caller's transaction, whatever is open in it, without a trace: a newer copy of it comes. */
export function dropTree(db: Connection, rootId: Id): void {
  const leaving = findLeaving(db, rootId)
  if (leaving !== undefined) drop(db, leaving)
}

/** The spans of a tree, in the order of the file, and its number in the log. Costs as much as the tree is large. */
export function spansWithin(db: Connection, rootId: Id): Pick<DoomedTree, 'tree' | 'spans'> | undefined {
  const tree = numberOf(db, rootId)
  if (tree === undefined) return undefined
  const marks = readRecords(db, tree).map((record) => record.marks)
  const spans = spansOf(db, rootId, marks)
  return { tree, spans: [...spans].sort((a, b) => firstOf(a) - firstOf(b)) }
}

const HEAD = 'SELECT CAST(hash AS BLOB) FROM commits WHERE n > ? AND n < ? ORDER BY n DESC LIMIT 1'

/** The hash of the last commit of a tree. */
export function headOfTree(db: Connection, rootId: Id): string | undefined {
  const tree = numberOf(db, rootId)
  if (tree === undefined) return undefined
  const first = tree * COMMITS_PER_TREE
  const [hash] = db.first(HEAD, [first, first + COMMITS_PER_TREE]) ?? []
  return hash === undefined ? undefined : columnText(hash)
}

/** A tree with everything that is deleted with it. */
interface DoomedTree {
  readonly rootId: Id
  /** The number of the tree in the log. */
  readonly tree: number
  readonly hash: string
  readonly seq: number
  readonly spans: readonly FileSpan[]
  /** True where every committed row is among them. */
  readonly isWhole: boolean
  readonly conversations: readonly Conversation[]
  readonly turns: readonly Turn[]
}

const KEY = 'SELECT n FROM keys WHERE id = ? AND slot = ?'
const COMMITS = 'SELECT seq, CAST(marks AS BLOB), CAST(hash AS BLOB) FROM commits WHERE n > ? AND n < ? ORDER BY n'

function findLeaving(db: Connection, rootId: Id): DoomedTree | undefined {
  const tree = numberOf(db, rootId)
  if (tree === undefined) return undefined
  const first = tree * COMMITS_PER_TREE
  const commits = db.all(COMMITS, [first, first + COMMITS_PER_TREE])
  const [seq = 0, , hash = ''] = commits.at(-1) ?? []
  const marks = commits.map(([, text]) => columnText(text))
  const spans = spansOf(db, rootId, marks)
  const conversations = spans.flatMap((span) => conversationIn(span) ?? [])
  if (conversations[0]?.rootId !== rootId) return undefined
  const turns = spans.flatMap(({ turn }) => turn ?? [])
  const isWhole = hasAll(spans, marks)
  return { rootId, tree, hash: columnText(hash), seq: Number(seq), spans, isWhole, conversations, turns }
}

function numberOf(db: Connection, rootId: Id): number | undefined {
  const [n] = db.first(KEY, [rootId, 'c']) ?? []
  return typeof n === 'number' ? n / SPAN : undefined
}

/** The spans that a walk from the root reaches. Where a committed row is missing among them, all spans are searched. */
function spansOf(db: Connection, rootId: Id, marks: readonly string[]): readonly FileSpan[] {
  const walked = walk(db, rootId)
  if (hasAll(walked, marks)) return walked
  return (findTrees(db, rootId).byRoot.get(rootId)?.spans ?? []).map((n) => readable(readSpan(db, n)))
}

function hasAll(spans: readonly FileSpan[], marks: readonly string[]): boolean {
  const found = new Set(spans.flatMap(rowsIn).map((row) => markOf(row).key))
  return marks.every((some) =>
    (readMarks(some) ?? []).every((mark) => mark.key[0] === 'e' || isOfTurnEdges(mark) || found.has(mark.key)),
  )
}

const TURNS = "SELECT n FROM keys WHERE id = ? AND slot > 'T' AND slot < 'U'"

function walk(db: Connection, rootId: Id): FileSpan[] {
  const spans: FileSpan[] = []
  const seen = new Set<Id>()
  const open: Id[] = [rootId]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const [n] = seen.has(id) ? [] : (db.first(KEY, [id, 'c']) ?? [])
    seen.add(id)
    if (typeof n !== 'number') continue
    const home = readable(readSpan(db, n))
    const row = conversationIn(home)
    if (row?.rootId !== rootId) continue
    const turns = db.all(TURNS, [id]).map(([at]) => readable(readSpan(db, Number(at))))
    spans.push(home, ...turns)
    const lanes = [row.lane?.newest ?? [], row.lane?.before ?? []].flat()
    open.push(...turns.flatMap(childrenIn), ...lanes)
  }
  return spans
}

function conversationIn({ rows: [head] }: FileSpan): Conversation | undefined {
  return head?.packed != null && 'conversation' in head.packed ? toConversation(head.packed) : undefined
}

/** Undefined where it cannot be read, too. */
export function readConversation(span: FileSpan): Conversation | undefined {
  try {
    return conversationIn(span)
  } catch {
    return undefined
  }
}

function childrenIn({ rows, turn }: FileSpan): Id[] {
  if (turn === null) return []
  return rows.flatMap(({ packed }) =>
    packed !== null && 'link' in packed ? toLink(packed, turn).childConversationId : [],
  )
}

function rowsIn({ rows, turn }: FileSpan): WrittenRow[] {
  return rows.flatMap((row) => writtenRow(row, turn?.id ?? null) ?? [])
}

/** Refuses a span with an unreadable row: its keys are unknown. */
function readable(span: FileSpan): FileSpan {
  const damaged = span.rows.find(({ packed }) => packed === null)
  if (damaged === undefined) return span
  throw new StoreError(
    'store',
    `Row ${damaged.n} of the file cannot be read: the tree it is of cannot be deleted. See legate audit --verify.`,
  )
}

const DROP_BODIES = `DELETE FROM bodies WHERE hash IN (SELECT hash FROM uses WHERE tree = ?1)
  AND NOT EXISTS (SELECT 1 FROM uses WHERE uses.hash = bodies.hash AND uses.tree <> ?1)`

/** The parts of a tree to delete; its keys are deleted already. */
export interface RemovedTree {
  readonly rootId: Id
  readonly tree: number
  /** The first row of each. */
  readonly spans: readonly number[]
}

export function bury(db: Connection, removed: RemovedTree, stone: Tombstone): void {
  putStone(db, dropRows(db, removed), stone)
}

/** Gives the last number that the tree had: its tombstone takes it. */
function dropRows(db: Connection, { rootId, tree, spans }: RemovedTree): number {
  let last = tree * SPAN
  for (const first of spans) {
    last = Math.max(last, first)
    for (const table of ['rows', 'seals', 'stretches']) {
      db.run(`DELETE FROM ${table} WHERE n >= ? AND n < ?`, [first, first + SPAN])
    }
  }
  dropOwned(db, tree, spans)
  const commits = tree * COMMITS_PER_TREE
  db.run('DELETE FROM commits WHERE n > ? AND n < ?', [commits, commits + COMMITS_PER_TREE])
  db.run('DELETE FROM blocks WHERE root_id = ?', [rootId])
  db.run(DROP_BODIES, [tree])
  db.run('DELETE FROM uses WHERE tree = ?', [tree])
  return last
}

function keysOf(span: FileSpan): (readonly [id: Id, slot: string])[] {
  const keys: (readonly [Id, string])[] = rowsIn(span).map(({ id, letter }) => [id, letter])
  const { turn, rows } = span
  if (turn !== null) keys.push([turn.laneId, turnSlot(turn.ordinal, rows[0]?.n ?? 0)])
  return keys
}
