import type { StoreError } from '../../base/error.ts'
import type { Commit } from '../../graph/commit.ts'
import type { Body, Id } from '../../graph/rows.ts'
import { sendWithWakes } from '../dispatch.ts'
import { tampered } from '../not-found.ts'
import { agree, isNamedRight, type LoadedRow } from '../replica/agreement.ts'
import {
  AnswerLost,
  type Head,
  Refused,
  type Sending,
  type Transport,
  type TreePart,
  type Wanted,
} from '../replica/transport.ts'
import type { Database } from './database.ts'
import type { PgRow } from './driver.ts'
import { escaped, idOf, keyOf, laneKey, unescaped } from './escape.ts'
import { isLost, isRefusal } from './failure.ts'
import { AT_ONE_MOMENT, isIn, longData, marksIn, readTree, verifyTables } from './whole-tree.ts'
import { commitValues, wakeValues } from './write.ts'

const SEND = 'SELECT @.commit_1($1, $2, $3, $4, $5, $6, $7)'
const HEADS = 'SELECT root_id, t, n, seq FROM @.trees WHERE root_id = ANY ($1)'
const ORDER = `ORDER BY strpos('ctnle', letter::text), x.ordinal, x.n, x.id`
const COLUMNS = 'id, letter, version, n, seq, ordinal, span, conversation_id, data, edges, edges_n, edges_seq'
const FOUND = `h.t, h.n, h.seq, x.letter::text, x.id, x.version, x.n, x.seq, x.span, x.conversation_id, x.data,
  x.edges, x.edges_n, x.edges_seq`
/** The tree, and its number for other tables. */
const HEAD = 'h AS (SELECT t, n, seq FROM @.trees WHERE root_id = $1)'
const TREE = '(SELECT t FROM h)'
/** The marks that commits have of their rows (m), and the texts that they brought (b). */
const beside = (ofCommits: string, ofBodies: string) => `
    UNION ALL SELECT NULL, 'm', 0, n, seq, NULL, NULL, NULL, marks, NULL, 0, 0, NULL, NULL FROM @.commits WHERE t = ${TREE} AND ${ofCommits}
    UNION ALL SELECT NULL, 'b', 0, n, 0, NULL, NULL, NULL, '', NULL, 0, 0, hash, data FROM @.bodies WHERE t = ${TREE} AND ${ofBodies}`
const IS_FEW = '(SELECT yes FROM few)'
/** All rows, or none where there are more than wanted. */
const ROWS = `WITH ${HEAD},
  few AS (SELECT count(*) <= $2 AS yes FROM (SELECT 1 FROM @.rows WHERE t = ${TREE} LIMIT $2::bigint + 1) c)
  SELECT ${FOUND}, x.hash, x.body FROM h LEFT JOIN (
    SELECT ${COLUMNS}, NULL AS hash, NULL::bytea AS body FROM @.rows WHERE t = ${TREE} AND ${IS_FEW}${beside(IS_FEW, IS_FEW)}) x
  ON true ${ORDER}`
/** The rows that later commits have written: they name them, or all rows are looked at. */
const NEWER = `WITH h AS (SELECT t, n, seq FROM @.trees WHERE root_id = $1 AND t = $2),
  later AS MATERIALIZED (SELECT ids FROM @.commits WHERE t = ${TREE} AND seq >= $4 AND n > $3),
  few AS (SELECT EXISTS (SELECT 1 FROM later WHERE ids IS NULL) AS yes),
  named AS (SELECT DISTINCT x FROM later, unnest(ids) AS w(x) WHERE NOT ${IS_FEW})
  SELECT ${FOUND}, x.hash, x.body FROM h LEFT JOIN (
    SELECT ${prefixed('r')}, NULL AS hash, NULL::bytea AS body FROM named
      JOIN @.rows r ON r.id = substr(x, 2) AND r.letter = convert_from(substr(x, 1, 1), 'UTF8')::"char" AND r.t = ${TREE}
    UNION ALL SELECT ${COLUMNS}, NULL, NULL FROM @.rows WHERE t = ${TREE} AND n > $3 AND ${IS_FEW}
    ${beside('seq >= $4 AND n > $3', 'n > $3')}) x
  ON true ${ORDER}`
/** Turns by id, by what they hold, of lanes and open ones; with them, those that called them. Then all their rows. */
const FIND = `WITH RECURSIVE ${HEAD},
  named AS (SELECT id, letter, span FROM @.rows WHERE id = ANY ($2) AND letter <> 'e' AND t = ${TREE}),
  turns (id) AS (
    (SELECT f.id FROM unnest($3::bytea[], $4::bigint[], $5::bigint[]) AS q (lane, last, most) CROSS JOIN LATERAL (
      SELECT id FROM @.rows WHERE t = ${TREE} AND letter = 't' AND span = q.lane AND ordinal <= q.last
        ORDER BY ordinal DESC LIMIT q.most) f
    UNION ALL SELECT CASE WHEN letter = 't' THEN id ELSE span END FROM named WHERE letter <> 'c'
    UNION ALL SELECT id FROM @.rows WHERE $6 AND queue IN ('t', 'u') AND t = ${TREE})
    UNION SELECT l.span FROM turns JOIN @.rows l ON l.id = turns.id AND l.letter = 'l' AND l.t = ${TREE}),
  of_turns AS (SELECT ${prefixed('r')} FROM turns JOIN @.rows r ON r.id = turns.id AND r.letter = 't' AND r.t = ${TREE})
  SELECT ${FOUND} FROM h LEFT JOIN (
    SELECT ${prefixed('r')} FROM turns JOIN @.rows r ON r.t = ${TREE} AND r.span = turns.id
    UNION ALL SELECT * FROM of_turns
    UNION ALL SELECT ${prefixed('r')} FROM (SELECT conversation_id AS id FROM of_turns UNION SELECT id FROM named WHERE letter = 'c'
      UNION SELECT $1::bytea FROM h) c JOIN @.rows r ON r.id = c.id AND r.letter = 'c' AND r.t = ${TREE}) x
  ON true ${ORDER}`
const MARKS = `SELECT c.n, marks FROM unnest($2::int[], $3::int[]) AS q (seq, n)
  JOIN @.commits c ON c.t = $1 AND c.seq = q.seq AND c.n = q.n`
const BODIES =
  'SELECT hash, data FROM @.bodies WHERE t = (SELECT t FROM @.trees WHERE root_id = $1) AND hash = ANY ($2)'

function prefixed(table: string): string {
  return COLUMNS.split(', ')
    .map((column) => `${table}.${column}`)
    .join(', ')
}

export interface TransportOptions {
  readonly isRelaxed: boolean
  /** How many commits of a tree this process knows. */
  readonly known: (rootId: Id) => number
  /** Called with the error for a tree that somebody else has changed. */
  readonly altered?: (rootId: Id, error: StoreError) => void
  /** The call that puts a wake into the queue of the store, if it has one. */
  readonly enqueue?: string | undefined
}

/** Sends commits to PostgreSQL and loads trees from it. */
export function postgresTransport(database: Database, options: TransportOptions): Omit<Transport, 'listen'> {
  const checked = (rootId: Id, load: () => Promise<Loaded | undefined>) =>
    loadChecked(database, { rootId, load, options })
  return {
    send: async (commit, sending) => send(database, commit, { ...sending, ...options }),
    heads: async (rootIds) => {
      const rows = await database.query(HEADS, [rootIds.map(keyOf)])
      const heads = new Map(rows.map(([id, ...head]) => [idOf(id), headOf(head)]))
      return rootIds.map((id) => heads.get(id))
    },
    load: (rootId, most) => checked(rootId, () => load(database, rootId, most)),
    newer: (rootId, since) => checked(rootId, () => newer(database, rootId, since)),
    find: (rootId, wanted) => checked(rootId, () => find(database, rootId, wanted)),
    bodies: async (rootId, hashes) => (await database.query(BODIES, [keyOf(rootId), hashes.map(escaped)])).map(bodyOf),
  }
}

async function send(
  database: Database,
  commit: Commit,
  options: Sending & TransportOptions,
): Promise<Head | undefined> {
  const { rootId } = commit
  const values = commitValues(commit, { ...options, known: rootId === null ? 0 : options.known(rootId) })
  const wakes = options.enqueue === undefined ? undefined : wakeValues(commit)
  try {
    const [row] =
      options.enqueue === undefined || wakes === undefined
        ? await database.once(SEND, values)
        : await database.once(sendWithWakes(SEND, options.enqueue), [...values, wakes])
    return rootId === null ? undefined : headOf(row?.[0] as PgRow)
  } catch (error) {
    if (isRefusal(error)) throw new Refused('The rows contradict the commit.', { cause: error })
    if (isLost(error)) throw new AnswerLost(database.failure(error).message, { cause: error })
    throw database.failure(error)
  }
}

/** Rows, and the marks of the commits that wrote them. */
interface Loaded {
  readonly part: TreePart & { readonly rows: readonly LoadedRow[] | undefined }
  readonly marks: ReadonlyMap<number, string>
}

interface Load {
  readonly rootId: Id
  readonly load: () => Promise<Loaded | undefined>
  readonly options: TransportOptions
}

/** Gives only rows that their commits wrote. A difference counts when the whole tree shows it at one moment. */
async function loadChecked(database: Database, { rootId, load, options }: Load): Promise<TreePart | undefined> {
  for (;;) {
    const loaded = await load()
    if (loaded === undefined || isRight(loaded)) return loaded?.part
    const tree = await database.transaction(AT_ONE_MOMENT, (query) => readTree(query, rootId))
    const [wrong] = tree === undefined ? [] : verifyTables(tree)
    if (wrong !== undefined) {
      const error = tampered(wrong.message.replace(/\.$/, ''), { rootId, path: database.address })
      options.altered?.(rootId, error)
      throw error
    }
    if (tree !== undefined && isIn(tree, loaded.part)) return loaded.part
  }
}

function isRight({ part, marks }: Loaded): boolean {
  return agree(part.rows ?? [], (n) => marks.get(n)) && part.bodies.every(isNamedRight)
}

/** A whole tree at one moment. */
async function load(database: Database, rootId: Id, most: number): Promise<Loaded | undefined> {
  const values = [keyOf(rootId), Math.min(most, MOST)]
  // Who wants all rows of a tree may get very many.
  const found = most > MOST ? await database.scan(ROWS, values) : await database.query(ROWS, values)
  const [first] = found
  // A tree has at least its root.
  if (first?.[3] === null) return { part: { head: headOf(first), rows: undefined, bodies: [] }, marks: new Map() }
  return loadedOf(found, { rootId, since: 0, marks: [] })
}

async function newer(database: Database, rootId: Id, since: Head): Promise<Loaded | undefined> {
  const found = await database.query(NEWER, [keyOf(rootId), since.tree, since.n, since.seq])
  return loadedOf(found, { rootId, since: since.n, marks: [] })
}

async function find(database: Database, rootId: Id, wanted: Wanted): Promise<Loaded | undefined> {
  const found = await database.query(FIND, wantedValues(rootId, wanted))
  const [tree] = found[0] ?? []
  if (tree === undefined) return undefined
  const writers = new Map<number, number>()
  for (const [, , , , , , n, seq, , , , , edgesN, edgesSeq] of found) {
    writers.set(Number(n), Number(seq))
    if (edgesN !== null) writers.set(Number(edgesN), Number(edgesSeq))
  }
  const marks = await database.query(MARKS, [tree, [...writers.values()], [...writers.keys()]])
  return loadedOf(found, { rootId, since: 0, marks })
}

function wantedValues(rootId: Id, { ids, lanes, open }: Wanted): readonly unknown[] {
  const ranges = [
    lanes.map(({ laneId }) => laneKey(laneId)),
    lanes.map(({ last }) => last),
    lanes.map(({ limit }) => Math.min(limit, MOST)),
  ]
  return [keyOf(rootId), ids.map(keyOf), ...ranges, open]
}

/** More than PostgreSQL takes as a limit of ours. */
const MOST = 2 ** 31 - 1

interface LoadedFrom {
  readonly rootId: Id
  /** Edges of commits up to this one are there already. */
  readonly since: number
  /** Marks that were asked for. */
  readonly marks: readonly PgRow[]
}

/** Reads rows with their head, and what is beside them. */
function loadedOf(found: readonly PgRow[], { rootId, since, marks: more }: LoadedFrom): Loaded | undefined {
  const [first] = found
  if (first === undefined) return undefined
  const rows: LoadedRow[] = []
  const edges: LoadedRow[] = []
  const bodies: Body[] = []
  const marks = new Map(more.map(([n, text]) => [Number(n), String(text)]))
  for (const [, , , ...row] of found) {
    const [letter, , , n, , , , text, own, , , hash, body] = row
    if (letter === 'm') marks.set(Number(n), String(text))
    else if (letter === 'b') bodies.push(bodyOf([hash, body]))
    else if (letter !== null) rows.push(loadedRow(rootId, row))
    if (own !== null) edges.push(loadedEdges(rootId, row))
  }
  // Edges from before are there already, unless a later commit says that it wrote them.
  const written = [...marks.values()].join('')
  const isNew = ({ n, text }: LoadedRow) =>
    since === 0 || n > since || marksIn(text).some((mark) => written.includes(mark))
  return { part: { head: headOf(first), rows: [...rows, ...edges.filter(isNew)], bodies }, marks }
}

function bodyOf([hash, data]: PgRow): Body {
  return { hash: unescaped(String(hash)), text: (data as Buffer).toString('utf8') }
}

function headOf([tree, n, seq]: PgRow): Head {
  return { tree: Number(tree), n: Number(n), seq: Number(seq) }
}

/** The edges that a node came with. */
function loadedEdges(rootId: Id, [, key, version, , seq, span, conversation, , edges, n]: PgRow): LoadedRow {
  return loadedRow(rootId, ['e', key, version, n, seq, span, conversation, edges])
}

function loadedRow(rootId: Id, [letter, key, version, n, , span, conversation, data]: PgRow): LoadedRow {
  const isOfTurn = letter !== 'c' && letter !== 't'
  const id = letter === 'e' ? '' : idOf(key)
  return {
    letter: letter as LoadedRow['letter'],
    id,
    n: Number(n),
    turnId: isOfTurn ? idOf(span) : null,
    conversationId: letter === 'e' ? idOf(conversation) : null,
    text: longData([letter, key, version, span, data], rootId),
  }
}
