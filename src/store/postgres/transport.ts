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
import { escaped, unescaped } from './escape.ts'
import { isLost, isRefusal } from './failure.ts'
import { AT_ONE_MOMENT, readTree, verifyTables } from './whole-tree.ts'
import { commitValues, wakeValues } from './write.ts'

const SEND = 'SELECT @.commit_1($1, $2, $3, $4, $5, $6)'
const HEADS = 'SELECT root_id, t, n, seq FROM @.trees WHERE root_id = ANY ($1)'
const ORDER = `ORDER BY strpos('ctnle', letter::text), x.ordinal, x.n, x.id`
const COLUMNS = 'id, letter, n, seq, ordinal, span, conversation_id, data'
const FOUND = 't.t, t.n, t.seq, x.letter::text, x.id, x.n, x.seq, x.span, x.conversation_id, x.data'
/** The marks that commits have of their rows (m), and the texts that they brought (b). */
const beside = (ofCommits: string, ofBodies: string) => `
    UNION ALL SELECT '', 'm', n, seq, NULL, NULL, NULL, marks, NULL FROM @.commits WHERE root_id = $1 AND ${ofCommits}
    UNION ALL SELECT hash, 'b', n, 0, NULL, NULL, NULL, '', data FROM @.bodies WHERE root_id = $1 AND ${ofBodies}`
const IS_FEW = '(SELECT yes FROM few)'
const HEAD = 'SELECT t, n, seq FROM @.trees WHERE root_id = $1'
/** All rows, or none where there are more than wanted. */
const ROWS = `WITH few AS (SELECT count(*) <= $2 AS yes FROM (SELECT 1 FROM @.rows WHERE root_id = $1 LIMIT $2::bigint + 1) c)
  SELECT ${FOUND}, x.body FROM (${HEAD}) t LEFT JOIN (
    SELECT ${COLUMNS}, NULL::bytea AS body FROM @.rows WHERE root_id = $1 AND ${IS_FEW}${beside(IS_FEW, IS_FEW)}) x
  ON true ${ORDER}`
/** The rows that later commits have named. */
const NEWER = `WITH t AS (SELECT t, n, seq FROM @.trees WHERE root_id = $1 AND t = $2 AND NOT EXISTS (
    SELECT 1 FROM @.commits c WHERE c.root_id = $1 AND c.seq >= $4 AND c.n > $3 AND c.ids = '')),
  named AS (SELECT DISTINCT left(x, 1) AS letter, substr(x, 2) || CASE WHEN left(x, 1) = 'e' THEN ' ' || c.n ELSE '' END AS id
    FROM t, @.commits c, json_array_elements_text(c.ids::json) AS w(x) WHERE c.root_id = $1 AND c.seq >= $4 AND c.n > $3)
  SELECT ${FOUND}, x.body FROM t LEFT JOIN (
    SELECT ${prefixed('rows')}, NULL::bytea AS body FROM named
      JOIN @.rows ON rows.id = named.id AND rows.letter = named.letter::"char" AND rows.root_id = $1
    ${beside('seq >= $4 AND n > $3', 'n > $3')}) x
  ON true ${ORDER}`
/** Turns by id, by what they hold, of lanes and open ones; with them, those that called them. Then all their rows. */
const FIND = `WITH RECURSIVE t AS (${HEAD}),
  named AS (SELECT id, letter, span FROM @.rows WHERE id = ANY ($2) AND letter <> 'e' AND root_id = $1),
  turns (id) AS (
    (SELECT f.id FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS q (lane, last, most) CROSS JOIN LATERAL (
      SELECT id FROM @.rows WHERE letter = 't' AND span = '/' || q.lane AND ordinal <= q.last AND root_id = $1
        ORDER BY ordinal DESC LIMIT q.most) f
    UNION ALL SELECT CASE WHEN letter = 't' THEN id ELSE span END FROM named WHERE letter <> 'c'
    UNION ALL SELECT id FROM @.rows WHERE $6 AND queue IN ('t', 'u') AND root_id = $1)
    UNION SELECT l.span FROM turns JOIN @.rows l ON l.id = turns.id AND l.letter = 'l' AND l.root_id = $1),
  of_turns AS (SELECT ${prefixed('r')} FROM turns JOIN @.rows r ON r.id = turns.id AND r.letter = 't' AND r.root_id = $1)
  SELECT ${FOUND} FROM t LEFT JOIN (
    SELECT ${prefixed('r')} FROM turns JOIN @.rows r ON r.root_id = $1 AND r.span = turns.id
    UNION ALL SELECT * FROM of_turns
    UNION ALL SELECT ${prefixed('r')} FROM (SELECT conversation_id AS id FROM of_turns UNION SELECT id FROM named WHERE letter = 'c'
      UNION SELECT root_id FROM @.trees WHERE root_id = $1) c JOIN @.rows r ON r.id = c.id AND r.letter = 'c' AND r.root_id = $1) x
  ON true ${ORDER}`
const MARKS = `SELECT c.n, marks FROM unnest($2::int[], $3::int[]) AS q (seq, n)
  JOIN @.commits c ON c.root_id = $1 AND c.seq = q.seq AND c.n = q.n`
const BODIES = 'SELECT hash, data FROM @.bodies WHERE root_id = $1 AND hash = ANY ($2)'

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
      const rows = await database.query(HEADS, [rootIds.map(escaped)])
      const heads = new Map(rows.map(([id, ...head]) => [id, headOf(head)]))
      return rootIds.map((id) => heads.get(escaped(id)))
    },
    load: (rootId, most) => checked(rootId, () => load(database, rootId, most)),
    newer: (rootId, since) => checked(rootId, () => newer(database, rootId, since)),
    find: (rootId, wanted) => checked(rootId, () => find(database, rootId, wanted)),
    bodies: async (rootId, hashes) =>
      (await database.query(BODIES, [escaped(rootId), hashes.map(escaped)])).map(bodyOf),
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
    if (tree?.head.n === loaded.part.head.n) return loaded.part
  }
}

function isRight({ part, marks }: Loaded): boolean {
  return agree(part.rows ?? [], (n) => marks.get(n)) && part.bodies.every(isNamedRight)
}

/** A whole tree at one moment. */
async function load(database: Database, rootId: Id, most: number): Promise<Loaded | undefined> {
  const found = await database.query(ROWS, [escaped(rootId), Math.min(most, MOST)])
  const [first] = found
  // A tree has at least its root.
  if (first?.[3] === null) return { part: { head: headOf(first), rows: undefined, bodies: [] }, marks: new Map() }
  return loadedOf(found)
}

async function newer(database: Database, rootId: Id, since: Head): Promise<Loaded | undefined> {
  return loadedOf(await database.query(NEWER, [escaped(rootId), since.tree, since.n, since.seq]))
}

async function find(database: Database, rootId: Id, wanted: Wanted): Promise<Loaded | undefined> {
  const found = await database.query(FIND, wantedValues(rootId, wanted))
  const writers = new Map(found.map(([, , , , , n, seq]) => [Number(n), Number(seq)]))
  const marks = await database.query(MARKS, [escaped(rootId), [...writers.values()], [...writers.keys()]])
  return loadedOf(found, marks)
}

function wantedValues(rootId: Id, { ids, lanes, open }: Wanted): readonly unknown[] {
  const ranges = [
    lanes.map(({ laneId }) => escaped(laneId)),
    lanes.map(({ last }) => last),
    lanes.map(({ limit }) => Math.min(limit, MOST)),
  ]
  return [escaped(rootId), ids.map(escaped), ...ranges, open]
}

/** More than PostgreSQL takes as a limit of ours. */
const MOST = 2 ** 31 - 1

/** Reads rows with their head, and what is beside them; `more` are marks that were asked for. */
function loadedOf(found: readonly PgRow[], more: readonly PgRow[] = []): Loaded | undefined {
  const [first] = found
  if (first === undefined) return undefined
  const rows: LoadedRow[] = []
  const bodies: Body[] = []
  const marks = new Map(more.map(([n, text]) => [Number(n), String(text)]))
  for (const [, , , ...row] of found) {
    const [letter, id, n, , , , text, body] = row
    if (letter === 'm') marks.set(Number(n), String(text))
    else if (letter === 'b') bodies.push(bodyOf([id, body]))
    else if (letter !== null) rows.push(loadedRow(row))
  }
  return { part: { head: headOf(first), rows, bodies }, marks }
}

function bodyOf([hash, data]: PgRow): Body {
  return { hash: unescaped(String(hash)), text: (data as Buffer).toString('utf8') }
}

function headOf([tree, n, seq]: PgRow): Head {
  return { tree: Number(tree), n: Number(n), seq: Number(seq) }
}

function loadedRow([letter, id, n, , span, conversationId, text]: PgRow): LoadedRow {
  return {
    letter: letter as LoadedRow['letter'],
    id: unescaped(String(id)),
    n: Number(n),
    turnId: span === null ? null : unescaped(String(span)),
    conversationId: conversationId === null ? null : unescaped(String(conversationId)),
    text: String(text),
  }
}
