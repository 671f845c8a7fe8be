import { CHANGES } from './beside/changes.ts'
import { REGISTRY } from './beside/registry.ts'
import { SPENT } from './beside/spent.ts'
import { STONE_IDS } from './beside/stones.ts'
import type { Connection } from './driver.ts'
import { addOwners, OWN_QUEUES } from './owners.ts'
import { moveSeals } from './seals.ts'

/** "Lgte": marks the file as ours. */
export const APPLICATION_ID = 0x4c677465

/**
 * The first schema. The cost of a commit is the number of pages it changes, so there are few tables, and new rows go to
 * their ends. `rows` has all rows in spans of 2^20 numbers. A span is a conversation, or a turn followed by its nodes, links
 * and edges in the order they were made, so that one read gives a whole turn. `data` is JSON whose first field is one of:
 * - conversation, turn, node or link, with its id. It omits what the turn tells (its turn, conversation and tree) and fields
 *   with their usual value;
 * - edges and a list of [from, to, first letter of the type], each end a node of this turn by its place in the span, or
 *   a node of another turn by its id. Such an edge is in the spans of both turns.
 * `keys` finds rows by an id and a slot:
 * - c, t, n, l: the conversation, turn, node or link of that id,
 * - T, ordinal and span: a turn of that lane.
 */
const first = `
CREATE TABLE rows (
  n INTEGER PRIMARY KEY,
  queue TEXT,          -- t: running turn, q and lane: queued turn, r and owner: runnable node, a: one that awaits a person,
                       -- w: one that waits until a moment, e and engine: claimed node
  due INTEGER,         -- t: the deadline, q: the ordinal, r: when it was made, a and w: when it goes on by itself
  mark INTEGER,        -- when a pending node wakes; when an open turn was asked to stop
  data TEXT NOT NULL
);
CREATE INDEX queues ON rows (queue, due) WHERE queue IS NOT NULL;
CREATE INDEX marks ON rows (mark) WHERE mark IS NOT NULL;

CREATE TABLE keys (id TEXT NOT NULL, slot TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (id, slot)) WITHOUT ROWID;

CREATE VIEW conversations AS SELECT data ->> '$.conversation' AS id, data ->> '$.version' AS version,
  coalesce(data ->> '$.rootId', data ->> '$.conversation') AS root_id, data
  FROM rows WHERE data ->> '$.conversation' IS NOT NULL;
CREATE VIEW turns AS SELECT n, data ->> '$.turn' AS id, data ->> '$.version' AS version,
  data ->> '$.conversationId' AS conversation_id, data FROM rows WHERE data ->> '$.turn' IS NOT NULL;
CREATE VIEW nodes AS SELECT r.data ->> '$.node' AS id, r.data ->> '$.version' AS version, t.id AS turn_id,
  t.conversation_id, iif(queue > 'e' AND queue < 'f', substr(queue, 2), NULL) AS engine_id, r.data
  FROM rows AS r JOIN turns AS t ON t.n = r.n / 1048576 * 1048576 WHERE r.data ->> '$.node' IS NOT NULL;
CREATE VIEW links AS SELECT r.data ->> '$.link' AS id, r.data ->> '$.version' AS version, t.id AS host_turn_id,
  t.conversation_id AS host_conversation_id, r.data
  FROM rows AS r JOIN turns AS t ON t.n = r.n / 1048576 * 1048576 WHERE r.data ->> '$.link' IS NOT NULL;
CREATE VIEW edges AS SELECT DISTINCT coalesce(f.data ->> '$.node', e.value ->> 0) AS from_id,
  coalesce(t.data ->> '$.node', e.value ->> 1) AS to_id, e.value ->> 2 AS type
  FROM rows AS r JOIN json_each(r.data, '$.edges') AS e
  LEFT JOIN rows AS f ON json_type(e.value, '$[0]') = 'integer' AND f.n = r.n / 1048576 * 1048576 + (e.value ->> 0)
  LEFT JOIN rows AS t ON json_type(e.value, '$[1]') = 'integer' AND t.n = r.n / 1048576 * 1048576 + (e.value ->> 1);
CREATE TRIGGER edges_stay_inside INSTEAD OF INSERT ON edges BEGIN
  SELECT RAISE(ABORT, 'an edge must join two nodes of one conversation') WHERE NOT EXISTS (
    SELECT 1 FROM nodes AS f JOIN nodes AS t ON t.conversation_id = f.conversation_id
    WHERE f.id = NEW.from_id AND t.id = NEW.to_id AND f.id <> t.id);
  SELECT RAISE(ABORT, 'the edge is there already') WHERE EXISTS (
    SELECT 1 FROM edges WHERE from_id = NEW.from_id AND to_id = NEW.to_id AND type = NEW.type);
  INSERT INTO rows (n, data)
    SELECT (SELECT max(n) FROM rows WHERE n < (k.n / 1048576 + 1) * 1048576) + 1, json_object('edges', json_array(json_array(
      iif(f.n / 1048576 = k.n / 1048576, f.n % 1048576, f.id), iif(t.n / 1048576 = k.n / 1048576, t.n % 1048576, t.id),
      NEW.type)))
    FROM keys AS f JOIN keys AS t JOIN keys AS k
    WHERE f.id = NEW.from_id AND f.slot = 'n' AND t.id = NEW.to_id AND t.slot = 'n' AND k.slot = 'n'
      AND (k.id = f.id OR k.id = t.id AND t.n / 1048576 <> f.n / 1048576);
END;

CREATE TABLE bodies (hash TEXT NOT NULL UNIQUE, text BLOB NOT NULL);

CREATE TABLE engines (id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, data TEXT NOT NULL);

CREATE TABLE blocks (n INTEGER PRIMARY KEY AUTOINCREMENT, node_id TEXT NOT NULL, root_id TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX blocks_of_tree ON blocks (root_id, n);
CREATE INDEX blocks_of_node ON blocks (node_id);

-- One row per commit of a tree, with its events; \`n\` is the span of its root conversation times 2^24, plus the
-- commit's number in the tree; \`seq\` is the sequence after it. \`marks\` names the rows it wrote, each with a hash of
-- what was written; \`hash\` covers the hash before it and all of this.
CREATE TABLE commits (
  n INTEGER PRIMARY KEY,
  root_id TEXT,        -- in the first commit of the tree
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  events TEXT NOT NULL,
  marks TEXT NOT NULL,
  hash TEXT NOT NULL
);
`

/** Trees can be deleted: tombstones, and the texts that no other tree needs. */
const deletion = `
CREATE TABLE stones (
  n INTEGER PRIMARY KEY,  -- the last span of the tree: numbers of rows are never given twice
  data TEXT NOT NULL,
  hash TEXT NOT NULL      -- of both
);
-- \`tree\` is the span of its root conversation.
CREATE TABLE uses (tree INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (tree, hash)) WITHOUT ROWID;
CREATE INDEX uses_of_body ON uses (hash);
INSERT OR IGNORE INTO uses SELECT keys.n / 1048576, r.data ->> '$.output.bodyRef'
  FROM rows AS r CROSS JOIN rows AS t ON t.n = r.n / 1048576 * 1048576
  CROSS JOIN keys ON keys.id = coalesce(t.data ->> '$.rootId', t.data ->> '$.conversationId') AND keys.slot = 'c'
  WHERE r.data LIKE '%"bodyRef"%' AND json_valid(r.data) AND json_valid(t.data)
    AND r.data ->> '$.output.bodyRef' IS NOT NULL;
`

/** The commit that wrote a row, by its number in the log. */
const seals = 'CREATE TABLE seals (n INTEGER PRIMARY KEY, writer INTEGER NOT NULL);'

/** One hash for many rows that did not change for long: see `sealStretches`. */
const stretches = 'CREATE TABLE stretches (n INTEGER PRIMARY KEY, hash TEXT NOT NULL);'

/**
 * Each row names the commit that wrote it last: the commit's marks tell what the row must be. The first row of a span has the
 * number of its rows. `seals` keeps the first row of each span, with the commit that began it: so a span cannot vanish unseen.
 */
const writers = 'ALTER TABLE rows ADD COLUMN writer INTEGER; ALTER TABLE rows ADD COLUMN size INTEGER;'

function addWriters(connection: Connection): void {
  connection.exec(writers)
  moveSeals(connection)
}

/** From here on events of commits are kept in a short form: versions before this step cannot read them. */
function shortenEvents(): void {}

/** SQL, or a function. */
type MigrationStep = string | ((connection: Connection) => void)

/** Step n leads from schema version n to n + 1. Steps are never changed once published, only added. */
export const MIGRATIONS: readonly MigrationStep[] = [
  first,
  deletion,
  seals,
  stretches,
  addWriters,
  REGISTRY,
  addOwners,
  CHANGES,
  SPENT,
  STONE_IDS,
  OWN_QUEUES,
  shortenEvents,
]

/** Takes every step that the file lacks, each whole or not at all. Other processes may do so at the same time. */
export function migrate(connection: Connection, migrations: readonly MigrationStep[] = MIGRATIONS): void {
  while (schemaVersion(connection) < migrations.length) takeStep(connection, migrations)
}

export function schemaVersion(connection: Connection): number {
  return Number(connection.first('PRAGMA user_version')?.[0] ?? 0)
}

function takeStep(connection: Connection, migrations: readonly MigrationStep[]): void {
  connection.exec('BEGIN IMMEDIATE')
  try {
    const version = schemaVersion(connection)
    const step = migrations[version]
    if (typeof step === 'string') connection.exec(step)
    else step?.(connection)
    if (step !== undefined) connection.exec(`PRAGMA user_version = ${version + 1}`)
    connection.exec('COMMIT')
  } catch (error) {
    rollBack(connection)
    throw error
  }
}

/** Must not throw: SQLite may have rolled back by itself, for instance when the disk was full. */
export function rollBack(connection: Connection): void {
  try {
    connection.exec('ROLLBACK')
  } catch {
    // The error behind the rollback is the one to report.
  }
}
