import type { Commit } from '../../graph/commit.ts'
import type { Id } from '../../graph/rows.ts'
import { sendWithWakes } from '../dispatch.ts'
import {
  AnswerLost,
  type Head,
  Refused,
  type Sending,
  type StoredRow,
  type Transport,
  type TreePart,
} from '../replica/transport.ts'
import type { Database } from './database.ts'
import type { PgRow } from './driver.ts'
import { escaped, unescaped } from './escape.ts'
import { isLost, isRefusal } from './failure.ts'
import { commitValues, wakeValues } from './write.ts'

const SEND = 'SELECT @.commit_1($1, $2, $3, $4, $5, $6)'
const HEADS = 'SELECT root_id, t, n, seq FROM @.trees WHERE root_id = ANY ($1)'
const ORDER = `ORDER BY strpos('ctnle', letter::text), r.ordinal, r.n, r.id`
const ROWS = `SELECT t.t, t.n, t.seq, letter::text, turn_id, conversation_id, data
  FROM @.trees t LEFT JOIN @.rows r ON r.root_id = t.root_id WHERE t.root_id = $1 ${ORDER}`
/** The rows that later commits have named. */
const NEWER = `WITH t AS (SELECT t, n, seq FROM @.trees WHERE root_id = $1 AND t = $2),
  named AS (SELECT DISTINCT left(x, 1) AS letter, substr(x, 2) || CASE WHEN left(x, 1) = 'e' THEN ' ' || c.n ELSE '' END AS id
    FROM t, @.commits c, json_array_elements_text(c.ids::json) AS w(x) WHERE c.root_id = $1 AND c.seq >= $4 AND c.n > $3)
  SELECT t.t, t.n, t.seq, r.letter::text, turn_id, conversation_id, data FROM t LEFT JOIN (
    SELECT rows.* FROM named JOIN @.rows ON rows.id = named.id AND rows.letter = named.letter::"char" AND rows.root_id = $1) r
  ON true ${ORDER}`
const BODIES = 'SELECT hash, data FROM @.bodies WHERE root_id = $1 AND n > $2'

/** Sends commits to PostgreSQL and loads trees from it. */
export function postgresTransport(
  database: Database,
  options: Omit<SendOptions, keyof Sending>,
): Omit<Transport, 'listen'> {
  return {
    send: async (commit, sending) => send(database, commit, { ...sending, ...options }),
    heads: async (rootIds) => {
      const rows = await database.query(HEADS, [rootIds.map(escaped)])
      const heads = new Map(rows.map(([id, ...head]) => [id, headOf(head)]))
      return rootIds.map((id) => heads.get(escaped(id)))
    },
    load: async (rootId, since) => load(database, rootId, since),
  }
}

interface SendOptions extends Sending {
  readonly isRelaxed: boolean
  readonly known: (rootId: Id) => number
  /** The call that puts a wake into the queue of the store, if it has one. */
  readonly enqueue: string | undefined
}

async function send(database: Database, commit: Commit, options: SendOptions): Promise<Head | undefined> {
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

/** Only rows and heads must be of one moment; a body never changes, and comes with the node that names it or before. */
async function load(database: Database, rootId: Id, since: Head | undefined): Promise<TreePart | undefined> {
  const id = escaped(rootId)
  const found =
    since === undefined
      ? await database.query(ROWS, [id])
      : await database.query(NEWER, [id, since.tree, since.n, since.seq])
  const [first] = found
  if (first === undefined) return undefined
  const bodies = await database.query(BODIES, [id, since?.n ?? 0])
  return {
    head: headOf(first),
    rows: found.filter(([, , , letter]) => letter !== null).map(([, , , ...row]) => storedRow(row)),
    bodies: bodies.map(([hash, data]) => ({ hash: unescaped(String(hash)), text: (data as Buffer).toString('utf8') })),
  }
}

function headOf([tree, n, seq]: PgRow): Head {
  return { tree: Number(tree), n: Number(n), seq: Number(seq) }
}

function storedRow([letter, turnId, conversationId, text]: PgRow): StoredRow {
  return {
    letter: letter as StoredRow['letter'],
    turnId: turnId === null ? null : unescaped(String(turnId)),
    conversationId: conversationId === null ? null : unescaped(String(conversationId)),
    text: String(text),
  }
}
