import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../../core/base/error.ts'
import { COMMIT } from './commit-function.ts'
import type { Query } from './driver.ts'
import { busySchema, isLockTimeout, missingSchema } from './failure.ts'

/**
 * The tables. A commit pays for each byte in each index, so ids are bytes (`keyOf`), rows name their tree by its number, and texts
 * are short ones (`shortText`); `id_text` makes an id readable. Names and owners may be any text, and PostgreSQL takes no NUL in
 * one: `escaped` writes them. Rows are not `jsonb`, which would give their text back in another order, and with another hash.
 * - `trees`: one row per tree; whoever locks it may extend the tree. `t` is its number, `n` counts its commits.
 * - `rows`: conversations (c), turns (t), nodes (n), links (l), and edges that came without a new node (e). `span` is the turn of a
 *   node, a link or edges, so that one turn can be read alone, and of a turn its lane after a slash; `n` and `seq` name
 *   the commit that wrote the row last. Columns that never change come first: the log of an update leaves them out.
 * - `commits`: one row per commit, with its events; `ids` names the rows that it wrote, in trees with many commits.
 */
const TABLES = `
CREATE TABLE @.trees (
  root_id bytea PRIMARY KEY,
  t bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  owner text COLLATE "C",
  agent text COLLATE "C" NOT NULL,
  n int NOT NULL,
  seq int NOT NULL,
  ordinal bigint NOT NULL,  -- of the newest turn of the root's own lane; -1 for none
  state text NOT NULL,      -- of that turn
  hash text NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX trees_made ON @.trees (t);
CREATE INDEX trees_of_owner ON @.trees (owner, t) WHERE owner IS NOT NULL;
CREATE INDEX trees_of_state ON @.trees (state, t) WHERE state IN ('failed', 'uncertain', 'open');

CREATE TABLE @.rows (
  t bigint NOT NULL,
  ordinal int,
  edges_n int,               -- the commit that wrote the edges
  edges_seq int,
  letter "char" NOT NULL,
  id bytea NOT NULL,
  span bytea,
  conversation_id bytea,     -- of a turn or edges
  edges text,                -- of a node that came with edges of its turn: all of them
  key text COLLATE "C",      -- kind and idempotency key of a node
  version int NOT NULL,
  n int NOT NULL,
  seq int NOT NULL,
  due double precision,      -- t: the deadline, r: when it was made, a and w: when it goes on by itself
  mark double precision,     -- when a runnable node wakes; when an open turn was asked to stop
  epoch int,                 -- of an open node
  state "char",              -- of an open node: its first letter
  queue text COLLATE "C",    -- t: running turn, u: queued turn, r and owner: runnable node, a: one that awaits a person,
                             -- w: one that waits until a moment, e and engine: claimed node
  wait text COLLATE "C",     -- a, w or o (open turn of a user), and the owner of the tree
  kind text COLLATE "C",     -- of a runnable node; of a turn, the type of its conversation; of a conversation, its code
  data text NOT NULL,
  PRIMARY KEY (id, letter)
) WITH (fillfactor = 65);
CREATE INDEX rows_of_tree ON @.rows (t, span, ordinal);
CREATE INDEX rows_in_queue ON @.rows (queue, due) WHERE queue IS NOT NULL;
CREATE INDEX rows_marked ON @.rows (mark) WHERE mark IS NOT NULL;
CREATE INDEX rows_of_owner ON @.rows (wait, due, id) WHERE wait IS NOT NULL;
CREATE UNIQUE INDEX rows_by_key ON @.rows (span, key) WHERE key IS NOT NULL;

CREATE TABLE @.commits (
  t bigint NOT NULL,
  at double precision NOT NULL,
  seq int NOT NULL,
  n int NOT NULL,
  id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  events text NOT NULL,
  marks text NOT NULL,
  hash text NOT NULL,
  ids bytea[],               -- letter and id of each row; null in a tree with few commits, all of whose rows can be looked at
  PRIMARY KEY (t, seq, n)
);

CREATE TABLE @.bodies (
  t bigint NOT NULL,
  n int NOT NULL,
  hash text COLLATE "C" NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (t, hash)
);

CREATE TABLE @.engines (id text COLLATE "C" PRIMARY KEY, version int NOT NULL, data text NOT NULL) WITH (fillfactor = 50);

-- The feed of changes. Transactions end in any order: a reader takes only those before all that are still open.
CREATE TABLE @.changes (
  c bigint GENERATED ALWAYS AS IDENTITY,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at double precision NOT NULL,
  seq int NOT NULL,
  root_id bytea,             -- null where its owner was forgotten
  owner text COLLATE "C",
  agent text NOT NULL,
  types text NOT NULL,
  PRIMARY KEY (xid, c)
);

-- Changes up to this one are gone.
CREATE TABLE @.feed (xid xid8 NOT NULL, c bigint NOT NULL);
INSERT INTO @.feed VALUES ('0', 0);

-- Sums by owner, day, agent and model; several rows of one key are one sum.
CREATE TABLE @.spent (
  owner text COLLATE "C" NOT NULL,
  day text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  runs bigint NOT NULL,
  model_calls bigint NOT NULL,
  input bigint NOT NULL,
  output bigint NOT NULL,
  cache_read bigint NOT NULL,
  cache_write bigint NOT NULL
);
CREATE INDEX spent_by_day ON @.spent (day, owner);

CREATE TABLE @.registry (
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  owner text COLLATE "C",
  version int NOT NULL,
  at bigint NOT NULL,
  data text NOT NULL,
  PRIMARY KEY (kind, id)
);
CREATE INDEX registry_of_owner ON @.registry (owner, kind, id) WHERE owner IS NOT NULL;

CREATE TABLE @.stones (
  s bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  root_id text COLLATE "C" NOT NULL,
  hash text NOT NULL,
  at double precision NOT NULL,
  owner text COLLATE "C",
  data text NOT NULL
);
CREATE TABLE @.stone_ids (id text COLLATE "C" NOT NULL, s bigint NOT NULL, PRIMARY KEY (id, s));
CREATE INDEX stone_ids_of_stone ON @.stone_ids (s);

-- Streams of running nodes, for readers in other processes, and the trees that somebody reads. A crash of the server empties
-- both: who reads leaves its row again, and who runs writes its stream again.
CREATE SEQUENCE @.block_numbers;
CREATE UNLOGGED TABLE @.blocks (
  b bigint NOT NULL DEFAULT nextval('@.block_numbers') PRIMARY KEY,
  node_id bytea NOT NULL,
  root_id bytea NOT NULL,
  data text NOT NULL
);
CREATE INDEX blocks_of_tree ON @.blocks (root_id, b);
CREATE INDEX blocks_of_node ON @.blocks (node_id);
CREATE UNLOGGED TABLE @.readers (root_id bytea PRIMARY KEY, until timestamptz NOT NULL);

-- Counts writes, so that a process that hears nothing can ask whether there was one.
CREATE SEQUENCE @.writes;

-- An id as text: see \`keyOf\`.
CREATE FUNCTION @.id_text(p_key bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $legate$
  SELECT CASE WHEN length(p_key) = 16 AND get_byte(p_key, 0) <> 255 THEN encode(p_key, 'hex')::uuid::text
    ELSE convert_from(substr(p_key, 2), 'UTF8') END
$legate$;
`

/**
 * `trees.active` is the time of the last activity: see `COMMIT`. It is null where nobody has written to a tree since this step; who asks for
 * old trees fills it in. Sums of `spent` that are folded are one row of their key. Processes that know only the first step commit with the functions of this one, under their names.
 */
const ACTIVITY = `
ALTER TABLE @.trees ADD COLUMN active double precision;
CREATE INDEX trees_idle ON @.trees (active, t) WHERE state <> 'open';
ALTER TABLE @.spent ADD COLUMN folded boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX spent_folded ON @.spent (day, owner, agent, model) WHERE folded;
CREATE INDEX spent_new ON @.spent (day) WHERE NOT folded;
`

/**
 * The number of the tree is in every unique key of a table that has it, as PostgreSQL demands of a table that is cut by that number; an id
 * still leads to its row in one step. `trees_at_rest` also has what trees that stay are counted by.
 */
const KEYS = `
ALTER TABLE @.rows DROP CONSTRAINT rows_pkey, ADD CONSTRAINT rows_pkey PRIMARY KEY USING INDEX rows_by_id;
DROP INDEX @.rows_by_key;
ALTER INDEX @.rows_by_key_in_tree RENAME TO rows_by_key;
DROP INDEX @.trees_idle;
${COMMIT}`

/** Indexes that a step takes for granted. Where there are rows, they are built before it, while other processes write. */
const INDEXES: ReadonlyMap<string, readonly Index[]> = new Map([
  [
    KEYS,
    [
      { name: 'rows_by_id', kind: 'UNIQUE', on: '@.rows (id, letter, t)' },
      { name: 'rows_by_key_in_tree', kind: 'UNIQUE', on: '@.rows (span, key, t) WHERE key IS NOT NULL' },
      { name: 'trees_at_rest', kind: '', on: "@.trees (active, t) INCLUDE (owner, agent) WHERE state <> 'open'" },
    ],
  ],
])

interface Index {
  readonly name: string
  readonly kind: 'UNIQUE' | ''
  readonly on: string
}

/** Step n leads from version n to n + 1. Steps are never changed once published, only added, and only add: see `LEAST`. */
const MIGRATIONS: readonly string[] = [TABLES, ACTIVITY, KEYS]

/**
 * The oldest version that a process may know and still use a schema of this version. A step that raises it also drops the
 * function that older processes commit with: those that run meanwhile are refused by the database, from that moment on.
 */
const LEAST = 1

const VERSION = 'SELECT version, least FROM @.legate'

/** True where the schema lacks steps, or is not there. */
export async function isBehind(query: Query): Promise<boolean> {
  return (await versionOf(query)).version < MIGRATIONS.length
}

/** How long a step waits for whoever uses a table before it lets them go on, and how long it rests then. */
const LOCK_MS = 1_000
const REST_MS = 100
/** How long others may take a step, or keep all tables in use. */
const PATIENCE_MS = 600_000

/**
 * Makes the schema, or takes the steps that it lacks, one after the other. Processes that start together take turns. `beside` asks on
 * another connection, for as long as it takes: an index that is built while others write is of no transaction.
 */
export async function migrate(query: Query, beside: Query, schema: string): Promise<void> {
  const until = performance.now() + PATIENCE_MS
  while (await isBehind(query)) {
    if (performance.now() > until) throw busySchema(schema)
    const isTaken = await takeStep(query, beside, schema)
    // Nobody may wait for a lock meanwhile: an index that is built waits for all who wait.
    if (!isTaken) await sleep(REST_MS)
  }
}

/** False where another process takes it at this moment, or a table is in use for long. */
async function takeStep(query: Query, beside: Query, schema: string): Promise<boolean> {
  await query('BEGIN')
  try {
    await query(`SET LOCAL lock_timeout = ${LOCK_MS}`)
    await query('SET LOCAL idle_in_transaction_session_timeout = 0')
    const [lock] = await query('SELECT pg_try_advisory_xact_lock(hashtext($1))', [`legate ${schema}`])
    if (lock?.[0] === true) await takeNext(query, beside)
    await query('COMMIT')
    return lock?.[0] === true
  } catch (error) {
    await query('ROLLBACK').catch(() => undefined)
    if (isLockTimeout(error)) return false
    throw error
  }
}

async function takeNext(query: Query, beside: Query): Promise<void> {
  await query('CREATE SCHEMA IF NOT EXISTS @')
  await query('CREATE TABLE IF NOT EXISTS @.legate (version int NOT NULL, least int NOT NULL)')
  const { version } = await versionOf(query)
  // A schema that is made now is nobody else's yet.
  const steps = version === 0 ? MIGRATIONS : MIGRATIONS.slice(version, version + 1)
  for (const step of steps) {
    for (const index of INDEXES.get(step) ?? []) {
      if (version > 0) await buildBeside(beside, index)
      else await query(`CREATE ${index.kind} INDEX ${index.name} ON ${index.on}`)
    }
    await query(step)
  }
  // Another process may have been faster, and of a later version.
  if (steps.length === 0) return
  const put = version === 0 ? 'INSERT INTO @.legate VALUES ($1, $2)' : 'UPDATE @.legate SET version = $1, least = $2'
  await query(put, [version + steps.length, LEAST])
}

/** Builds an index while others write. A process that ended while it built one left an invalid index, which is dropped first. */
async function buildBeside(beside: Query, { name, kind, on }: Index): Promise<void> {
  const [broken] = await beside(
    `SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('@.${name}') AND NOT indisvalid`,
  )
  if (Number(broken?.[0]) > 0) await beside(`DROP INDEX CONCURRENTLY @.${name}`)
  await beside(`CREATE ${kind} INDEX CONCURRENTLY IF NOT EXISTS ${name} ON ${on}`)
}

/** Refuses a schema that is not there, or that only newer software can use. */
export async function requireSchema(query: Query, schema: string): Promise<void> {
  const { version, least } = await versionOf(query)
  if (version === 0) throw missingSchema(schema)
  if (least > MIGRATIONS.length) {
    const message = `The schema ${schema} is of version ${version}, for software that knows version ${least} or later; this process knows ${MIGRATIONS.length}. It has written nothing more: update legate here.`
    throw new StoreError('store_newer_schema', message, { details: { schema, version, least } })
  }
}

async function versionOf(query: Query): Promise<{ readonly version: number; readonly least: number }> {
  const [found] = await query(`SELECT to_regclass('@.legate') IS NOT NULL`)
  const [row] = found?.[0] === true ? await query(VERSION) : []
  return { version: Number(row?.[0] ?? 0), least: Number(row?.[1] ?? 0) }
}
