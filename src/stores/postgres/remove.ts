import { isLegateError, type StoreError } from '../../core/base/error.ts'
import type { Conversation, Id, Turn } from '../../core/graph/rows.ts'
import type { Removal, SurplusTree, Tombstone } from '../../core/store/archive.ts'
import { parseRow, toConversation, toTurn } from '../../core/store/codec/rows.ts'
import { tombstoneOf } from '../../core/store/not-found.ts'
import { openTree } from '../../core/store/store.ts'
import { longData, readTableTree, verifyTables } from './archive-tree.ts'
import type { Database } from './connection/database.ts'
import type { PgRow, Query } from './connection/driver.ts'
import { escaped, escapedOrNull, idOf, keyOf } from './escape.ts'

const LOCK = `SELECT h.t, h.root_id, h.seq, h.hash FROM unnest($1::bytea[], $2::int[]) AS asked (root, seq)
  JOIN @.trees h ON h.root_id = asked.root AND h.seq = coalesce(asked.seq, h.seq) ORDER BY h.root_id FOR UPDATE OF h`
/** A young table is taken for empty, and would be read whole: see `commit_1`. */
const BY_INDEX = 'SET LOCAL enable_seqscan = off'
const HEADS = `SELECT r.letter::text, r.id, r.version, r.span, r.data, r.t FROM unnest($1::bigint[], $2::bytea[]) AS asked (t, root)
  CROSS JOIN LATERAL (SELECT * FROM @.rows WHERE t = asked.t AND letter IN ('c', 't') OFFSET 0) r
  ORDER BY r.t, r.letter, r.id <> asked.root, r.n, r.ordinal, r.id`
const DROPS = ['rows', 'commits', 'bodies', 'trees'].map((table) => `DELETE FROM @.${table} WHERE t = ANY ($1)`)
const DROP_BLOCKS = 'DELETE FROM @.blocks WHERE root_id = ANY ($1)'
const ADD_STONES = `WITH put AS (
    INSERT INTO @.stones (root_id, hash, at, owner, data)
    SELECT root, hash, at, owner, data FROM json_to_recordset($1) AS r(root text, hash text, at float8, owner text, data text)
    RETURNING s, root_id)
  INSERT INTO @.stone_ids (id, s) SELECT DISTINCT i.id, put.s FROM put
    JOIN json_to_recordset($1) AS r(root text, ids json) ON r.root = put.root_id, json_array_elements_text(r.ids) AS i (id)`

/** A tree that nobody writes to before the transaction ends. */
interface LockedTree {
  readonly rootId: Id
  /** The number of the tree. */
  readonly t: number
  readonly seq: number
  readonly hash: string
}

/**
 * Locks trees, in the order in which commits lock them. Those with other events than asked for are left out. The transaction finds
 * rows by their indexes from then on.
 */
export async function lockTrees(
  query: Query,
  trees: readonly { readonly rootId: Id; readonly seq?: number | undefined }[],
  how: '' | 'SKIP LOCKED' = '',
): Promise<readonly LockedTree[]> {
  await query(BY_INDEX)
  const values = [trees.map(({ rootId }) => keyOf(rootId)), trees.map(({ seq }) => seq ?? null)]
  const found = await query(`${LOCK} ${how}`, values)
  return found.map(([t, root, seq, hash]) => ({
    rootId: idOf(root),
    t: Number(t),
    seq: Number(seq),
    hash: String(hash),
  }))
}

/** The conversations and turns of trees that are locked. */
function readHeads(query: Query, trees: readonly LockedTree[]): Promise<readonly PgRow[]> {
  return query(HEADS, [trees.map(({ t }) => t), trees.map(({ rootId }) => keyOf(rootId))])
}

/** Deletes all rows of trees that are locked. */
export async function dropTrees(query: Query, trees: readonly LockedTree[]): Promise<void> {
  await query(DROP_BLOCKS, [trees.map(({ rootId }) => keyOf(rootId))])
  for (const text of DROPS) await query(text, [trees.map(({ t }) => t)])
}

/** Deletes a tree and leaves its tombstone, in the caller's transaction. */
export async function removeTree(query: Query, rootId: Id, removal: Removal): Promise<Tombstone | undefined> {
  const [tree] = await lockTrees(query, [{ rootId, seq: removal.seq }])
  if (tree === undefined) return undefined
  const isEven = removal.evenTampered === true
  const heads = headsOf(await readHeads(query, [tree]), rootId, isEven)
  const open = openTurnOf(heads)
  // Only a tree that would have to stay is compared with its commits.
  const mayGo = open === undefined || (isEven && (await isDifferent(query, rootId)))
  if (!mayGo) throw openTree(rootId, open.id)
  const stone = tombstoneOf({ ...tree, ...heads }, removal)
  if (removal.dryRun === true) return stone
  await dropTrees(query, [tree])
  await putStones(query, [stone])
  return stone
}

/** So many trees are deleted with one transaction, of so many commits together: a long one holds up others. */
const MOST_TREES = 100
const MOST_COMMITS = 2_000

const SIZES = `SELECT coalesce(h.n, 0) FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (root, at)
  LEFT JOIN @.trees h ON h.root_id = asked.root ORDER BY at`

type Gone = Tombstone | StoreError | undefined

/** Deletes trees in lots. One that somebody works on stays, and one that cannot be read does not hold up the others. */
export async function removeTrees(
  database: Database,
  trees: readonly SurplusTree[],
  removal: Pick<Removal, 'at' | 'dryRun'>,
): Promise<readonly Gone[]> {
  const sizes = await database.query(SIZES, [trees.map(({ rootId }) => keyOf(rootId))])
  const gone = new Map<Id, Gone>()
  let lot: SurplusTree[] = []
  let commits = 0
  const send = async () => {
    const found = await database.transaction('READ COMMITTED', (query) => removeLot(query, lot, removal))
    for (const [rootId, one] of found) gone.set(rootId, one)
    lot = []
    commits = 0
  }
  for (const [at, tree] of trees.entries()) {
    const size = Number(sizes[at]?.[0])
    if (lot.length >= MOST_TREES || (lot.length > 0 && commits + size > MOST_COMMITS)) await send()
    lot.push(tree)
    commits += size
  }
  if (lot.length > 0) await send()
  return trees.map(({ rootId }) => gone.get(rootId))
}

async function removeLot(
  query: Query,
  lot: readonly SurplusTree[],
  removal: Pick<Removal, 'at' | 'dryRun'>,
): Promise<ReadonlyMap<Id, Gone>> {
  const reasons = new Map(lot.map(({ rootId, reason }) => [rootId, reason]))
  // Whoever holds a tree works on it.
  const locked = await lockTrees(query, lot, 'SKIP LOCKED')
  const rows = new Map<number, PgRow[]>(locked.map(({ t }) => [t, []]))
  for (const row of await readHeads(query, locked)) rows.get(Number(row[5]))?.push(row)
  const gone = new Map<Id, Gone>()
  const leaving: LockedTree[] = []
  const stones: Tombstone[] = []
  for (const tree of locked) {
    const { rootId, t } = tree
    try {
      const heads = headsOf(rows.get(t) ?? [], rootId, false)
      if (openTurnOf(heads) !== undefined) continue
      const stone = tombstoneOf({ ...tree, ...heads }, { ...removal, reason: reasons.get(rootId) ?? '' })
      gone.set(rootId, stone)
      leaving.push(tree)
      stones.push(stone)
    } catch (error) {
      if (!isLegateError(error, 'store')) throw error
      gone.set(rootId, error as StoreError)
    }
  }
  if (removal.dryRun === true || leaving.length === 0) return gone
  await dropTrees(query, leaving)
  await putStones(query, stones)
  return gone
}

/** Leaves tombstones of trees that are not there, or not any more. */
export async function putStones(query: Query, stones: readonly Tombstone[]): Promise<void> {
  const rows = stones.map((stone) => ({
    root: escaped(stone.rootId),
    hash: stone.hash,
    at: stone.at,
    owner: escapedOrNull(stone.owner),
    data: JSON.stringify(stone),
    ids: stone.conversations.flatMap(({ id, runs }) => [id, ...runs]).map(escaped),
  }))
  await query(ADD_STONES, [JSON.stringify(rows)])
}

interface Heads {
  readonly conversations: Conversation[]
  readonly turns: Turn[]
}

function openTurnOf({ turns }: Heads): Turn | undefined {
  return turns.find(({ state }) => state !== 'ended')
}

function headsOf(rows: readonly PgRow[], rootId: Id, isEven: boolean): Heads {
  const found: Heads = { conversations: [], turns: [] }
  for (const row of rows) {
    try {
      const packed = parseRow(longData(row, rootId))
      if ('conversation' in packed) found.conversations.push(toConversation(packed))
      else if ('turn' in packed) found.turns.push(toTurn(packed))
    } catch (error) {
      // A tree that differs from its commits goes whatever its rows say.
      if (!isEven) throw error
    }
  }
  return found
}

async function isDifferent(query: Query, rootId: Id): Promise<boolean> {
  const tree = await readTableTree(query, rootId)
  return tree !== undefined && verifyTables(tree).length > 0
}
