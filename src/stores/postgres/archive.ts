import { ConflictError } from '../../core/base/error.ts'
import { parseOwnJson } from '../../core/base/json.ts'
import { rootState } from '../../core/graph/kinds.ts'
import type { Edge, Id } from '../../core/graph/rows.ts'
import {
  type Archive,
  type ArchivePart,
  type Finding,
  finding,
  type Tombstone,
  type VerifyReport,
  type WholeTree,
  type WrittenRow,
} from '../../core/store/archive.ts'
import { sameText, shortText } from '../../core/store/codec/short-text.ts'
import { unpackTree } from '../../core/store/codec/tree-text.ts'
import { memberText, readMarks, rowMark } from '../../core/store/commit-chain.ts'
import { forgottenStone, liftedBy, readTombstone, tombstoneFor, wentOn } from '../../core/store/not-found.ts'
import { surplusTrees } from './archive-surplus.ts'
import { AT_ONE_MOMENT, edgesByCommit, readParts, readTableTree, verifyTables } from './archive-tree.ts'
import { foldSpent, tidy } from './changes.ts'
import { columnsOf, edgeGroups, newestOf } from './commit-values.ts'
import type { Database } from './connection/database.ts'
import type { PgRow, Query } from './connection/driver.ts'
import { escaped, escapedOrNull, FIRST_KEY, idOf, keyOf } from './escape.ts'
import { dropTrees, lockTrees, putStones, removeTree, removeTrees } from './remove.ts'

export function postgresArchive(
  database: Database,
  {
    forget,
    made,
  }: {
    /** Called with each tree that was deleted or made. */
    readonly forget: (rootId: Id) => void
    /** Called with each tree that was made: it may have work. */
    readonly made: (rootId: Id) => void
  },
): Archive {
  const change = <T>(work: (query: Query) => Promise<T>) => database.transaction('READ COMMITTED', work)
  return {
    read: (rootId) => database.transaction(AT_ONE_MOMENT, async (query) => (await readTableTree(query, rootId))?.whole),
    parts: (rootId) => parts(database, rootId),
    verify: (rootId) => verify(database, rootId),
    head: async (rootId) => {
      const [row] = await database.query(HEAD, [keyOf(rootId)])
      return row === undefined ? undefined : String(row[0])
    },
    restore: async (tree, instead) => {
      await change(async (query) => {
        if (instead !== undefined) await makeRoom(query, tree.rootId, instead)
        await restore(query, tree)
      })
      forget(tree.rootId)
      made(tree.rootId)
    },
    remove: async (rootId, removal) => {
      const stone = await change((query) => removeTree(query, rootId, removal))
      forget(rootId)
      return stone
    },
    surplus: (query) => surplusTrees(database, query),
    removeAll: async (trees, removal) => {
      const gone = await removeTrees(database, trees, removal)
      for (const { rootId } of trees) forget(rootId)
      return gone
    },
    bury: (stone) => change((query) => putStones(query, [stone])),
    tombstones: async () => (await database.query(STONES)).map(toStone),
    tombstone: async (id) => {
      const stones = (await database.query(STONES_OF, [[escaped(String(id))]])).map(toStone)
      return tombstoneFor(stones, (one) => one === id)
    },
    forgetOwner: (owner, keptDay) => change((query) => forgetOwner(query, owner, keptDay)),
    compact: async () => {
      await foldSpent(database)
      await tidy(database)
    },
  }
}

async function* parts(database: Database, rootId: Id): AsyncGenerator<ArchivePart> {
  const { query, end } = await database.moment()
  let isWhole = false
  try {
    yield* readParts(query, rootId)
    await query('COMMIT')
    isWhole = true
  } catch (error) {
    throw database.failure(error)
  } finally {
    // A reader that stops early leaves the connection in the middle of something.
    end(!isWhole)
  }
}

const STONES = 'SELECT data, s FROM @.stones ORDER BY at, s'
const STONES_OF = 'SELECT data, s FROM @.stones WHERE s IN (SELECT s FROM @.stone_ids WHERE id = ANY ($1)) ORDER BY s'

function toStone([data]: PgRow): Tombstone {
  return readTombstone(parseOwnJson(String(data)) as Tombstone)
}

const ROOTS = 'SELECT root_id FROM @.trees WHERE root_id > $1 ORDER BY root_id LIMIT 100'
const STRAY = `SELECT id, letter::text FROM @.rows r WHERE NOT EXISTS (SELECT 1 FROM @.trees h WHERE h.t = r.t) LIMIT 100`

async function verify(database: Database, rootId: Id | undefined): Promise<VerifyReport> {
  const report = { findings: [] as Finding[], rows: 0, commits: 0 }
  const one = async (id: Id): Promise<void> => {
    const tree = await database.transaction(AT_ONE_MOMENT, (query) => readTableTree(query, id))
    if (tree === undefined) return
    report.rows += tree.whole.rows.length
    report.commits += tree.whole.records.length
    report.findings.push(...verifyTables(tree))
  }
  if (rootId !== undefined) {
    await one(rootId)
    return report
  }
  for (let page = await database.query(ROOTS, [FIRST_KEY]); page.length > 0; ) {
    for (const [id] of page) await one(idOf(id))
    page = await database.query(ROOTS, [page.at(-1)?.[0]])
  }
  for (const [key, letter] of await database.scan(STRAY)) {
    const id = idOf(key)
    const place = { subject: 'store', id, rootId: null, conversationId: null } as const
    report.findings.push(finding('unknown_row', place, `The row ${id} (${letter}) is of a tree that is not there.`))
  }
  return report
}

const HEAD = 'SELECT hash FROM @.trees WHERE root_id = $1'
/** Drops the tree of which a newer copy comes, in the caller's transaction. */
async function makeRoom(query: Query, rootId: Id, instead: string): Promise<void> {
  const [tree] = await lockTrees(query, [{ rootId }])
  if (tree?.hash !== instead) throw wentOn(rootId)
  await dropTrees(query, [tree])
}

const DROP_STONE = 'WITH gone AS (DELETE FROM @.stones WHERE s = $1) DELETE FROM @.stone_ids WHERE s = $1'
const KNOWN = `SELECT r.id FROM @.rows r JOIN json_to_recordset($1) AS n(i bytea, l "char") ON r.id = n.i AND r.letter = n.l LIMIT 1`
const ADD_TREE = `INSERT INTO @.trees (root_id, n, seq, hash, owner, agent, state, ordinal, active) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING t`
const ADD_ROWS = `INSERT INTO @.rows (id, letter, t, version, n, seq, span, conversation_id, ordinal, queue, due, mark, wait, state, epoch, kind, key, data)
  SELECT i, l, $2, v, n, seq, t, c, o, q, d, m, w, s, p, k, y, x
  FROM json_to_recordset($1) AS r(i bytea, l "char", v int, n int, seq int, t bytea, c bytea, o int, q text, d float8, m float8, w text, s "char", p int, k text, y text, x text)`
const ADD_EDGES = `INSERT INTO @.rows (id, letter, t, version, n, seq, span, conversation_id, data)
  SELECT @.edges_id_1(t, n), 'e', $2, 1, n, seq, t, c, x FROM json_to_recordset($1) AS r(n int, seq int, t bytea, c bytea, x text)`
const ADD_RECORDS = `INSERT INTO @.commits (t, seq, n, id, kind, at, events, marks, hash, ids)
  SELECT $2, seq, n, '', kind, at, events, marks, hash, NULL
  FROM json_to_recordset($1) AS r(seq int, n int, kind text, at float8, events text, marks text, hash text)`
const ADD_BODY = 'INSERT INTO @.bodies (t, hash, n, data) VALUES ($1, $2, 0, $3)'

/** The number of a commit, and of its last event. */
interface Writer {
  readonly n: number
  readonly seq: number
}

const NOBODY: Writer = { n: 0, seq: 0 }

interface Writers {
  readonly ofRow: (row: WrittenRow | undefined) => Writer
  /** Edges by the commit that wrote them. */
  readonly ofEdges: (edges: readonly Edge[]) => ReturnType<typeof edgesByCommit>
}

/** Finds the last commit that wrote a row as it is. */
function writersIn(records: WholeTree['records']): Writers {
  const writers = new Map<string, Writer>()
  for (const [at, { marks, seq }] of records.entries()) {
    for (const { key, hash } of readMarks(marks) ?? []) {
      writers.set(key === hash ? key : key + hash, { n: at + 1, seq })
    }
  }
  const of = (mark: string) => writers.get(mark) ?? NOBODY
  return {
    ofRow: (row) => {
      if (row === undefined) return NOBODY
      const { letter, id, turnId, text } = row
      return of(rowMark(letter, id, turnId === null ? text : memberText(turnId, text)))
    },
    ofEdges: (edges) => edgesByCommit(records, edges),
  }
}

/** Rows keep their texts byte for byte, and so their hashes. */
async function restore(query: Query, tree: WholeTree): Promise<void> {
  const { rootId, records } = tree
  const rows = unpackTree(tree)
  const texts = new Map(tree.rows.map((row) => [row.letter + keyOf(row.id), row]))
  const homes = new Map(rows.conversations.map((row) => [row.id, row]))
  const { columns, written: plain } = columnsOf(rows, { conversationOf: (one) => homes.get(one) }, rootId)
  const writers = writersIn(records)
  const written = JSON.stringify(
    columns.map((row, at) => {
      const text = texts.get(row.l + row.i) ?? plain[at]
      const isOther = text !== undefined && text.text !== plain[at]?.text
      return { ...row, ...writers.ofRow(text), x: isOther ? sameText(text.text) : row.x }
    }),
  )
  const [known] = await query(KNOWN, [written])
  if (known !== undefined) {
    const taken = idOf(known[0])
    throw new ConflictError('conflict', `The row ${taken} is in this store already.`, { details: { id: taken } })
  }
  await liftStone(query, tree)
  const root = homes.get(rootId)
  const newest = newestOf(rows.turns, rootId)
  const { seq = 0, hash = '' } = records.at(-1) ?? {}
  const n = records.length
  const facts = [escapedOrNull(root?.owner), escaped(root?.agent.name ?? ''), rootState(newest), newest?.ordinal ?? -1]
  const at = records.findLast(({ events }) => events !== '[]')?.at ?? root?.createdAt
  const [[t] = []] = await query(ADD_TREE, [keyOf(rootId), n, seq, hash, ...facts, at])
  await query(ADD_ROWS, [written, t])
  const turns = new Map(rows.nodes.map((node) => [node.id, node.turnId]))
  const groups = writers
    .ofEdges(rows.edges)
    .flatMap(({ n, seq, edges }) =>
      edgeGroups(edges, (nodeId) => turns.get(nodeId) ?? '', rootId).map((group) => ({ ...group, n, seq })),
    )
  await query(ADD_EDGES, [JSON.stringify(groups), t])
  const short = records.map((record, at) => ({ ...record, n: at + 1, events: shortText(record.events, [rootId]) }))
  await query(ADD_RECORDS, [JSON.stringify(short), t])
  for (const { hash: name, text } of tree.bodies) await query(ADD_BODY, [t, escaped(name), Buffer.from(text, 'utf8')])
  // Whoever looks for writes of others finds it, in this process too.
  await query("SELECT nextval('@.writes')")
}

/** Removes the tombstone of a tree that comes back. */
async function liftStone(query: Query, tree: WholeTree): Promise<void> {
  const ids = tree.rows.filter(({ letter }) => letter === 'c' || letter === 't').map((row) => escaped(row.id))
  const found = await query(STONES_OF, [ids])
  const stones = found.map(toStone)
  const lifted = liftedBy(stones, tree, tree.records.at(-1)?.hash ?? '')
  const at = lifted === undefined ? -1 : stones.indexOf(lifted)
  if (at >= 0) await query(DROP_STONE, [found[at]?.[1]])
}

const FORGET_CHANGES = `UPDATE @.changes SET root_id = NULL, owner = NULL, agent = '', types = '[]' WHERE owner = $1`
const FORGET_SPENT = 'DELETE FROM @.spent WHERE owner = $1 AND day <> $2'
const FORGET_REGISTERED = 'DELETE FROM @.registry WHERE owner = $1'
const STONES_OF_OWNER = 'SELECT data, s FROM @.stones WHERE owner = $1 FOR UPDATE'
const SET_STONE = 'UPDATE @.stones SET data = $2, owner = NULL WHERE s = $1'

async function forgetOwner(query: Query, owner: string, keptDay = ''): Promise<void> {
  await query(FORGET_SPENT, [escaped(owner), keptDay])
  for (const forget of [FORGET_CHANGES, FORGET_REGISTERED]) await query(forget, [escaped(owner)])
  for (const row of await query(STONES_OF_OWNER, [escaped(owner)])) {
    await query(SET_STONE, [row[1], JSON.stringify(forgottenStone(toStone(row)))])
  }
}
