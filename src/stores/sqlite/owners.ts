import type { Commit } from '../../core/graph/commit.ts'
import { rootState } from '../../core/graph/kinds.ts'
import type { RootsQuery, RunnableQuery } from '../../core/graph/reader.ts'
import type { Conversation, Id, Node, Turn } from '../../core/graph/rows.ts'
import {
  parseRow,
  queueOf,
  READY,
  readyQueue,
  SPAN,
  type SqlValue,
  toConversation,
  toTurn,
} from '../../core/store/codec/rows.ts'
import { type Connection, columnText, type SqlRow } from './driver.ts'
import type { FileSpan } from './tree.ts'

/**
 * Finds the trees of an owner, and what waits in them. A tree without an owner is here only while it is failed or uncertain: so
 * most of them cost nothing.
 */
const tables = `
CREATE TABLE trees (
  n INTEGER PRIMARY KEY,    -- the span of its root conversation
  owner TEXT,
  agent TEXT NOT NULL,
  state TEXT NOT NULL,      -- of the newest turn of the root's own lane
  ordinal INTEGER NOT NULL  -- of that turn; -1 for none
);
CREATE INDEX trees_of_owner ON trees (owner, n) WHERE owner IS NOT NULL;
CREATE INDEX trees_of_owner_and_agent ON trees (owner, agent, n) WHERE owner IS NOT NULL;
CREATE INDEX trees_of_owner_and_state ON trees (owner, state, n) WHERE owner IS NOT NULL;
CREATE INDEX trees_of_state ON trees (state, n) WHERE state IN ('failed', 'uncertain');

-- Only of trees that have an owner.
CREATE TABLE waits (
  n INTEGER PRIMARY KEY,    -- of the row that waits
  owner TEXT NOT NULL,
  queue TEXT NOT NULL,      -- a and w: as in rows; o: an open turn of a user conversation
  due INTEGER NOT NULL,     -- when it goes on by itself; for a turn, when it was made
  id TEXT NOT NULL
);
CREATE INDEX waits_of_owner ON waits (owner, queue, due, id);
`

const PUT_TREE = 'INSERT OR REPLACE INTO trees (owner, agent, state, ordinal, n) VALUES (?, ?, ?, ?, ?)'
const SET_STATE = 'UPDATE trees SET state = ?, ordinal = ? WHERE n = ? AND ordinal <= ?'
const PUT_WAIT = 'INSERT OR REPLACE INTO waits (owner, queue, due, id, n) VALUES (?, ?, ?, ?, ?)'
const DROP_WAIT = 'DELETE FROM waits WHERE n = ?'

/** Everything by which a commit is found later. */
export interface OwnedCommit {
  readonly commit: Commit
  readonly root: Conversation
  /** The numbers of its rows. */
  readonly numbers: readonly number[]
  /** The number of its tree. */
  readonly tree: number
  readonly isNewTree: boolean
  conversation(id: Id): Conversation | undefined
  /** A turn as it was before. */
  turnBefore(id: Id): Turn | undefined
  /** The newest turn of the root's own lane before. */
  newestBefore(): Turn | undefined
}

/** Writes what the tree of a commit is found by. */
export function putOwned(db: Connection, owned: OwnedCommit): void {
  const { commit, root, tree, isNewTree } = owned
  if (isNewTree) putTree(db, tree, treeColumns(root, newestIn(commit)))
  else putState(db, owned)
  if (root.owner !== null) putWaits(db, owned, root.owner)
}

/** Puts a tree where it has an owner, or somebody should look at it. */
function putTree(db: Connection, tree: number, columns: SqlRow): void {
  const [owner, , state] = columns
  if (owner !== null || isListed(state)) db.run(PUT_TREE, [...columns, tree])
}

function newestIn({ turns, rootId }: Commit): Turn | undefined {
  return newestOf(turns.filter(({ laneId }) => laneId === rootId))
}

function newestOf(turns: readonly Turn[]): Turn | undefined {
  return turns.reduce<Turn | undefined>((a, b) => (a === undefined || a.ordinal < b.ordinal ? b : a), undefined)
}

function treeColumns({ owner, agent }: Conversation, newest: Turn | undefined): SqlValue[] {
  return [owner, agent.name, rootState(newest), newest?.ordinal ?? -1]
}

/** Most commits leave the state of their tree as it is. */
function putState(db: Connection, owned: OwnedCommit): void {
  const { commit, root, tree } = owned
  let newest: number | undefined
  for (const turn of commit.turns) {
    if (turn.laneId !== commit.rootId) continue
    const state = rootState(turn)
    const before = turn.version === 1 ? undefined : owned.turnBefore(turn.id)
    if (isInState(before, state)) continue
    if (root.owner !== null) {
      db.run(SET_STATE, [state, turn.ordinal, tree, turn.ordinal])
    } else if (isListed(state) || isOffList(before)) {
      newest ??= newestOrdinal(owned)
      if (turn.ordinal >= newest) putUnowned(db, owned, turn, before)
    }
  }
}

function isInState(turn: Turn | undefined, state: string): boolean {
  return turn !== undefined && rootState(turn) === state
}

/** A new turn, or one whose end was settled, takes the tree off the list; one that fails puts it there. */
function putUnowned(db: Connection, { root, tree }: OwnedCommit, turn: Turn, before: Turn | undefined): void {
  if (isOffList(before)) db.run('DELETE FROM trees WHERE n = ?', [tree])
  putTree(db, tree, treeColumns(root, turn))
}

function isOffList(before: Turn | undefined): boolean {
  return before === undefined || isListed(rootState(before))
}

/** The ordinal of the newest turn of the root's own lane, the turns of the commit included. */
function newestOrdinal({ commit, newestBefore }: OwnedCommit): number {
  return Math.max(newestIn(commit)?.ordinal ?? -1, newestBefore()?.ordinal ?? -1)
}

function isListed(state: SqlValue | undefined): boolean {
  return state === 'failed' || state === 'uncertain'
}

function putWaits(db: Connection, { commit, numbers, conversation }: OwnedCommit, owner: string): void {
  let at = commit.conversations.length
  const put = (wait: SqlRow | null, version: number): void => {
    const n = numbers[at++] ?? 0
    if (wait !== null) db.run(PUT_WAIT, [owner, ...wait, n])
    else if (version > 1) db.run(DROP_WAIT, [n])
  }
  for (const turn of commit.turns) {
    const home = commit.conversations.find(({ id }) => id === turn.conversationId) ?? conversation(turn.conversationId)
    put(waitOfTurn(turn, home), turn.version)
  }
  for (const node of commit.nodes) put(waitOfNode(node), node.version)
}

/** Queue, due and id; null for a turn that has ended or that another run started. */
function waitOfTurn({ id, state, createdAt }: Turn, home: Conversation | undefined): SqlRow | null {
  return state !== 'ended' && home?.type === 'user' ? ['o', createdAt, id] : null
}

function waitOfNode(node: Node): SqlRow | null {
  const queue = queueOf(node)
  return queue === 'a' || queue === 'w' ? [queue, node.wakeAt ?? 0, node.id] : null
}

/** Removes what a tree was found by; `spans` are the first rows of its spans. */
export function dropOwned(db: Connection, tree: number, spans: readonly number[]): void {
  db.run('DELETE FROM trees WHERE n = ?', [tree])
  for (const first of spans) db.run('DELETE FROM waits WHERE n >= ? AND n < ?', [first, first + SPAN])
}

/** A statement with its values, except the last one: the limit. */
export type RootsScan = readonly [sql: string, values: SqlRow]

/**
 * The roots of a query for an owner, or for a state that is listed for all; null for another one. `end` is the number of the tree
 * to end before.
 */
export function rootsAsked(
  { owner, agent, state }: Omit<RootsQuery, 'limit' | 'before'>,
  end: number,
): RootsScan | null {
  if (owner === undefined && !isListed(state)) return null
  const values: SqlValue[] = []
  const terms: string[] = []
  const add = (term: string, value: string | undefined): void => {
    if (value === undefined) return
    terms.push(term)
    values.push(value)
  }
  add('owner = ?', owner)
  add('agent = ?', agent)
  add('state = ?', state)
  // SQLite takes an index of some rows only where the text says that no others are meant.
  if (owner === undefined) terms.push("state IN ('failed', 'uncertain')")
  const index = indexFor({ owner, agent, state })
  const sql = `SELECT CAST(commits.root_id AS BLOB) FROM trees ${index} CROSS JOIN commits ON commits.n = trees.n * 16777216 + 1
    WHERE ${terms.join(' AND ')} AND trees.n < ? ORDER BY trees.n DESC LIMIT ?`
  return [sql, [...values, end]]
}

function indexFor({ owner, agent, state }: { [Name in 'owner' | 'agent' | 'state']: string | undefined }): string {
  if (owner !== undefined) {
    return `INDEXED BY trees_of_owner${state === undefined ? (agent === undefined ? '' : '_and_agent') : '_and_state'}`
  }
  return 'INDEXED BY trees_of_state'
}

/** The rows that wait in the trees of an owner: of a queue, after a place. */
export const WAITS = `SELECT CAST(id AS BLOB) FROM waits WHERE owner = ?1 AND queue = ?2 AND (due, id) > (?3, ?4)
  ORDER BY due, id LIMIT ?5`

/** Fills the tables from the rows of an older file. A row that cannot be read is left out: an audit reports it. */
export function addOwners(db: Connection): void {
  db.exec(tables)
  const trees = new OlderTrees()
  for (const [n, data] of headsOf(db)) trees.take(n, data)
  trees.put(db)
  for (const [n, queue, due, data] of db.all(OLDER_WAITS)) {
    const owner = trees.ownerAt(Math.floor(Number(n) / SPAN) * SPAN)
    const id = idIn(columnText(data))
    if (owner !== null && id !== null) db.run(PUT_WAIT, [owner, columnText(queue), due ?? 0, id, Number(n)])
  }
}

const OLDER_HEADS = 'SELECT n, CAST(data AS BLOB) FROM rows WHERE n % 1048576 = 0 AND n > ? ORDER BY n LIMIT 1000'
const OLDER_WAITS = `SELECT n, CAST(queue AS BLOB), due, CAST(data AS BLOB) FROM rows WHERE queue IN ('a', 'w')`

function* headsOf(db: Connection): Generator<readonly [n: number, data: string]> {
  for (let last = -1; ; ) {
    const heads = db.all(OLDER_HEADS, [last])
    for (const [n, data] of heads) yield [Number(n), columnText(data)]
    if (heads.length === 0) return
    last = Number(heads.at(-1)?.[0])
  }
}

function idIn(data: string): Id | null {
  try {
    const packed = parseRow(data)
    return 'node' in packed ? packed.node : null
  } catch {
    return null
  }
}

/** The trees of an older file, as far as the first rows of their spans tell. */
class OlderTrees {
  private readonly roots = new Map<Id, { readonly tree: number; readonly row: Conversation }>()
  private readonly newest = new Map<Id, Turn>()
  private readonly open: { readonly n: number; readonly turn: Turn }[] = []
  private readonly users = new Map<Id, Conversation>()
  private readonly rootAt = new Map<number, Id>()

  take(n: number, data: string): void {
    try {
      const packed = parseRow(data)
      if ('conversation' in packed) this.conversation(n, toConversation(packed))
      else if ('turn' in packed) this.turn(n, toTurn(packed))
    } catch {
      // An audit reports a row that cannot be read.
    }
  }

  private conversation(n: number, row: Conversation): void {
    if (row.id === row.rootId) this.roots.set(row.id, { tree: n / SPAN, row })
    if (row.type === 'user') this.users.set(row.id, row)
  }

  private turn(n: number, turn: Turn): void {
    if (turn.state !== 'ended') {
      this.open.push({ n, turn })
      this.rootAt.set(n, turn.rootId)
    }
    const known = this.newest.get(turn.rootId)
    if (turn.laneId === turn.rootId && (known?.ordinal ?? -1) < turn.ordinal) this.newest.set(turn.rootId, turn)
  }

  put(db: Connection): void {
    for (const [id, { tree, row }] of this.roots) putTree(db, tree, treeColumns(row, this.newest.get(id)))
    for (const { n, turn } of this.open) {
      const owner = this.ownerAt(n)
      const wait = waitOfTurn(turn, this.users.get(turn.conversationId))
      if (owner !== null && wait !== null) db.run(PUT_WAIT, [owner, ...wait, n])
    }
  }

  /** The owner of the open turn with this number. */
  ownerAt(n: number): string | null {
    return this.roots.get(this.rootAt.get(n) ?? '')?.row.owner ?? null
  }
}

/** Skips from one queue to the next, however many nodes are in it. */
const NEXT_QUEUE = 'SELECT CAST(queue AS BLOB) FROM rows WHERE queue > ? AND queue <= ? ORDER BY queue LIMIT 1'
/** No queue has this name. */
const AFTER_READY = 's'

/** The queues of runnable nodes, one per owner: those after an owner, then the others. */
export function* readyQueues(
  list: (sql: string, values: SqlRow) => readonly SqlRow[],
  after: RunnableQuery['after'],
): Generator<string> {
  function* between(start: string, end: string): Generator<string> {
    const next = (queue: string) => list(NEXT_QUEUE, [queue, end]).map(([name]) => columnText(name))[0]
    for (let queue = next(start); queue !== undefined; queue = next(queue)) yield queue
  }
  const last = after === undefined ? AFTER_READY : readyQueue(after)
  if (after !== undefined) yield* between(last, AFTER_READY)
  yield READY
  if (last !== READY) yield* between(READY, last)
}

/**
 * Runnable nodes of a tree that has an owner wait in a queue of their own: r and the owner. Queues are skipped by the index of
 * all queues, so that owners can take turns whatever the number of their nodes.
 */
export const OWN_QUEUES = `UPDATE rows SET queue = 'r' || owned.owner
  FROM (SELECT r.n, trees.owner FROM rows AS r CROSS JOIN rows AS t ON t.n = r.n / 1048576 * 1048576
    CROSS JOIN keys ON keys.slot = 'c' AND keys.id = iif(json_valid(t.data), coalesce(t.data ->> '$.rootId', t.data ->> '$.conversationId'), '')
    CROSS JOIN trees ON trees.n = keys.n / 1048576
    WHERE r.queue = 'r' AND trees.owner IS NOT NULL) AS owned
  WHERE rows.n = owned.n`

const TREE = 'SELECT CAST(owner AS BLOB), CAST(agent AS BLOB), CAST(state AS BLOB), ordinal FROM trees WHERE n = ?'
const WAITS_IN =
  'SELECT n, CAST(owner AS BLOB), CAST(queue AS BLOB), due, CAST(id AS BLOB) FROM waits WHERE n >= ? AND n < ? ORDER BY n'

/** A tree as the rows of the file have it. */
export interface ReadTree {
  readonly rootId: Id
  readonly tree: number
  readonly spans: readonly FileSpan[]
  /** Null for a row that cannot be read, or is none. */
  conversationIn(span: FileSpan): Conversation | undefined
  nodesIn(span: FileSpan): readonly { readonly n: number; readonly node: Node }[]
}

/** The numbers of rows that are not found as their rows say, or are found and should not be. */
export function wronglyOwned(db: Connection, { rootId, tree, spans, conversationIn, nodesIn }: ReadTree): number[] {
  const homes = new Map(spans.flatMap((span) => conversationIn(span) ?? []).map((row) => [row.id, row]))
  const root = homes.get(rootId)
  // A root that cannot be read has its own finding, and says nothing of its owner.
  if (root === undefined) return []
  const newest = newestOf(spans.flatMap(({ turn }) => (turn?.laneId === rootId ? turn : [])))
  const wrong: number[] = []
  const columns = treeColumns(root, newest)
  const listed = root.owner !== null || isListed(columns[2]) ? columns : []
  if (!isSame(texts(db.first(TREE, [tree])), listed)) wrong.push(tree * SPAN)
  for (const span of spans) {
    const first = span.rows[0]?.n ?? 0
    const found = db.all(WAITS_IN, [first, first + SPAN]).map(texts)
    const right = root.owner === null ? [] : waitsIn(span, { owner: root.owner, homes, nodesIn })
    if (!isSame(found.flat(), right.flat())) wrong.push(first)
  }
  return wrong
}

function waitsIn(
  span: FileSpan,
  {
    owner,
    homes,
    nodesIn,
  }: Pick<ReadTree, 'nodesIn'> & { readonly owner: string; readonly homes: ReadonlyMap<Id, Conversation> },
): SqlRow[] {
  const { turn, rows } = span
  const own = turn === null ? null : waitOfTurn(turn, homes.get(turn.conversationId))
  const waits: SqlRow[] = own === null ? [] : [[rows[0]?.n ?? 0, owner, ...own]]
  for (const { n, node } of nodesIn(span)) {
    const wait = waitOfNode(node)
    if (wait !== null) waits.push([n, owner, ...wait])
  }
  return waits
}

function texts(row: SqlRow = []): SqlRow {
  return row.map((value) => (value instanceof Uint8Array ? columnText(value) : value))
}

function isSame(a: SqlRow, b: SqlRow): boolean {
  return a.length === b.length && a.every((value, at) => value === b[at])
}

/** Rows by which something is found that is not there. */
export const STRAY_OWNED = `SELECT trees.n * 1048576 FROM trees LEFT JOIN rows ON rows.n = trees.n * 1048576 WHERE rows.n IS NULL
  UNION ALL SELECT waits.n FROM waits LEFT JOIN rows ON rows.n = waits.n WHERE rows.n IS NULL`
