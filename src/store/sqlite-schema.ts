import type { Connection } from './sqlite-driver.ts'

/** "Lgte": says that the file is ours. */
export const APPLICATION_ID = 0x4c677465

/**
 * Few trees of pages, each written at its end: what a commit costs is the pages it changes. `rows` has all rows of all
 * trees in the order of their making; `keys` says where they are. A key is an id and
 * - c, t, n, l: the conversation, turn, node or link of that id,
 * - T, N, L, ordinal and number: a turn of that lane, a node of that turn, a link of that host turn,
 * - K and kind and idempotency key: a node of that turn,
 * - > or <, a node and the first letter of a type: an edge to or from that node.
 * `data` is JSON without what the columns say and without fields that have their usual value.
 */
const first = `
CREATE TABLE rows (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  slot TEXT NOT NULL,  -- c conversation, t turn, n node, l link
  version INTEGER NOT NULL,
  home TEXT NOT NULL,  -- the conversation; of a conversation: its tree
  parent TEXT,         -- a turn's lane, a node's turn, a link's host turn
  ordinal INTEGER,     -- the place in the parent; a root conversation's is the number of its tree
  queue TEXT,          -- t: running turn, q and lane: queued turn, r: runnable node, e and engine: claimed node
  due INTEGER,         -- t: the deadline, q: the ordinal, r: when it was made
  mark INTEGER,        -- when a pending node wakes; when an open turn was asked to stop
  data TEXT NOT NULL
);
CREATE INDEX queues ON rows (queue, due) WHERE queue IS NOT NULL;
CREATE INDEX marks ON rows (slot, mark) WHERE mark IS NOT NULL;

CREATE TABLE keys (id TEXT NOT NULL, slot TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (id, slot)) WITHOUT ROWID;

CREATE VIEW conversations AS SELECT id, version, home AS root_id, data FROM rows WHERE slot = 'c';
CREATE VIEW turns AS SELECT id, version, home AS conversation_id, parent AS lane_id, ordinal, data
  FROM rows WHERE slot = 't';
CREATE VIEW nodes AS SELECT id, version, home AS conversation_id, parent AS turn_id, ordinal,
  iif(queue > 'e' AND queue < 'f', substr(queue, 2), NULL) AS engine_id, data FROM rows WHERE slot = 'n';
CREATE VIEW links AS SELECT id, version, home AS host_conversation_id, parent AS host_turn_id, ordinal, data
  FROM rows WHERE slot = 'l';
CREATE VIEW edges AS SELECT id AS from_id, substr(slot, 2, length(slot) - 2) AS to_id, substr(slot, -1) AS type
  FROM keys WHERE slot > '>' AND slot < '?';
CREATE TRIGGER edges_stay_inside INSTEAD OF INSERT ON edges BEGIN
  SELECT RAISE(ABORT, 'an edge must join two nodes of one conversation') WHERE NOT EXISTS (
    SELECT 1 FROM keys AS f JOIN rows AS a ON a.n = f.n JOIN keys AS t JOIN rows AS b ON b.n = t.n
    WHERE f.id = NEW.from_id AND f.slot = 'n' AND t.id = NEW.to_id AND t.slot = 'n' AND a.home = b.home AND a.n <> b.n);
  INSERT INTO keys (id, slot, n) VALUES (NEW.from_id, '>' || NEW.to_id || NEW.type, 0),
    (NEW.to_id, '<' || NEW.from_id || NEW.type, 0);
END;

CREATE TABLE bodies (hash TEXT NOT NULL UNIQUE, text BLOB NOT NULL);

CREATE TABLE engines (id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, data TEXT NOT NULL);

CREATE TABLE blocks (node_id TEXT NOT NULL UNIQUE, root_id TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX blocks_of_tree ON blocks (root_id);

-- One row per commit of a tree, with its events; \`n\` is the tree's number times 2^24, plus the commit's number in it;
-- \`seq\` is the sequence after it. \`digest\` covers the rows it wrote, \`hash\` the hash before it, the digest and the
-- events.
CREATE TABLE commits (
  n INTEGER PRIMARY KEY,
  root_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at INTEGER NOT NULL,
  events TEXT NOT NULL,
  digest TEXT NOT NULL,
  hash TEXT NOT NULL
);
`

/** Step n leads from schema version n to n + 1. Steps are never changed once published, only added. */
export const MIGRATIONS: readonly string[] = [first]

/** Takes every step that the file lacks, each whole or not at all. Other processes may do the same at the same time. */
export function migrate(connection: Connection, migrations: readonly string[] = MIGRATIONS): void {
  while (schemaVersion(connection) < migrations.length) takeStep(connection, migrations)
}

export function schemaVersion(connection: Connection): number {
  return Number(connection.first('PRAGMA user_version')?.[0] ?? 0)
}

function takeStep(connection: Connection, migrations: readonly string[]): void {
  connection.exec('BEGIN IMMEDIATE')
  try {
    const version = schemaVersion(connection)
    const step = migrations[version]
    if (step !== undefined) connection.exec(`${step}\nPRAGMA user_version = ${version + 1};`)
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
    // What made the caller roll back is what there is to tell.
  }
}
