import type { Connection } from './sqlite-driver.ts'

/** "Lgte": says that the file is ours. */
export const APPLICATION_ID = 0x4c677465

/**
 * All rows of all trees are in one table, by id: ids of a tree begin alike, so that what a commit writes lies on few
 * pages. `slot` is what the row is (c conversation, t turn, n node, l link), or names an edge: `>` and the node it leads
 * to at its beginning, `<` and the node it comes from at its end, each with the first letter of its type.
 * `data` is JSON without what the columns say and without fields that have their usual value.
 */
const first = `
CREATE TABLE rows (
  id TEXT NOT NULL,
  slot TEXT NOT NULL,
  version INTEGER NOT NULL,
  home TEXT NOT NULL,  -- the conversation; of a conversation: its tree
  parent TEXT,         -- a turn's lane, a node's turn, a link's host turn; '' for a root conversation
  ordinal INTEGER,     -- the place in the parent; a root conversation's is the number of its tree
  queue TEXT,          -- t: running turn, q and lane: queued turn, r: runnable node, e and engine: claimed node
  due INTEGER,         -- t: the deadline, q: the ordinal, r: when it was made
  mark INTEGER,        -- when a pending node wakes; when an open turn was asked to stop
  key TEXT,            -- a node's kind and idempotency key
  data TEXT NOT NULL,
  PRIMARY KEY (id, slot)
) WITHOUT ROWID;
CREATE INDEX members ON rows (parent, slot, ordinal) WHERE parent IS NOT NULL;
CREATE INDEX queues ON rows (queue, due) WHERE queue IS NOT NULL;
CREATE INDEX marks ON rows (slot, mark) WHERE mark IS NOT NULL;
CREATE UNIQUE INDEX node_keys ON rows (parent, key) WHERE key IS NOT NULL;

CREATE TRIGGER edges_stay_inside BEFORE INSERT ON rows WHEN NEW.slot < '?' AND (
  NOT EXISTS (SELECT 1 FROM rows WHERE id = NEW.id AND slot = 'n' AND home = NEW.home)
  OR NOT EXISTS (SELECT 1 FROM rows
    WHERE id = substr(NEW.slot, 2, length(NEW.slot) - 2) AND slot = 'n' AND home = NEW.home))
BEGIN
  SELECT RAISE(ABORT, 'an edge must join two nodes of one conversation');
END;

CREATE VIEW conversations AS SELECT id, version, home AS root_id, data FROM rows WHERE slot = 'c';
CREATE VIEW turns AS SELECT id, version, home AS conversation_id, parent AS lane_id, ordinal, data
  FROM rows WHERE slot = 't';
CREATE VIEW nodes AS SELECT id, version, home AS conversation_id, parent AS turn_id, ordinal,
  iif(queue > 'e' AND queue < 'f', substr(queue, 2), NULL) AS engine_id, data FROM rows WHERE slot = 'n';
CREATE VIEW links AS SELECT id, version, home AS host_conversation_id, parent AS host_turn_id, ordinal, data
  FROM rows WHERE slot = 'l';
CREATE VIEW edges AS SELECT id AS from_id, substr(slot, 2, length(slot) - 2) AS to_id, substr(slot, -1) AS type,
  home AS conversation_id FROM rows WHERE slot > '>' AND slot < '?';

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
