import type { Connection } from './sqlite-driver.ts'

/** "Lgte": says that the file is ours. */
export const APPLICATION_ID = 0x4c677465

/**
 * The whole row is the JSON in `data`; the other columns are what queries need. Columns that only some rows of a table
 * need are null in all others, and their indexes leave nulls out.
 */
const first = `
CREATE TABLE conversations (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  root_id TEXT NOT NULL,
  type TEXT NOT NULL,
  agent TEXT NOT NULL,
  version INTEGER NOT NULL,
  data TEXT NOT NULL
);
CREATE INDEX roots ON conversations (n) WHERE id = root_id;

CREATE TABLE turns (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id),
  lane_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  version INTEGER NOT NULL,
  queued INTEGER,      -- 1 while queued
  due INTEGER,         -- the deadline while running
  stop_at INTEGER,     -- when it was asked to stop, while open
  open_root INTEGER,   -- 1 while open, in user conversations
  data TEXT NOT NULL,
  UNIQUE (id, conversation_id)
);
CREATE INDEX lanes ON turns (lane_id, ordinal);
CREATE INDEX turns_queued ON turns (lane_id, ordinal) WHERE queued IS NOT NULL;
CREATE INDEX turns_due ON turns (due) WHERE due IS NOT NULL;
CREATE INDEX turns_stopping ON turns (stop_at) WHERE stop_at IS NOT NULL;
CREATE INDEX turns_open_root ON turns (n) WHERE open_root IS NOT NULL;

CREATE TABLE nodes (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  kind TEXT NOT NULL,
  key TEXT,            -- kind and idempotency key
  version INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  ready INTEGER,       -- when it was made, while pending without blockers
  wake_at INTEGER,     -- while pending
  engine_id TEXT,      -- while open
  epoch INTEGER,       -- while running
  data TEXT NOT NULL,
  UNIQUE (id, conversation_id),
  FOREIGN KEY (turn_id, conversation_id) REFERENCES turns (id, conversation_id)
);
CREATE INDEX nodes_of_turn ON nodes (turn_id, is_open, ordinal);
CREATE UNIQUE INDEX nodes_key ON nodes (turn_id, key) WHERE key IS NOT NULL;
CREATE INDEX nodes_ready ON nodes (ready) WHERE ready IS NOT NULL;
CREATE INDEX nodes_waking ON nodes (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX nodes_claimed ON nodes (engine_id) WHERE engine_id IS NOT NULL;

CREATE TABLE edges (
  from_id TEXT NOT NULL,
  to_id TEXT NOT NULL,
  type TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  root_id TEXT NOT NULL,
  PRIMARY KEY (from_id, to_id, type),
  FOREIGN KEY (from_id, conversation_id) REFERENCES nodes (id, conversation_id),
  FOREIGN KEY (to_id, conversation_id) REFERENCES nodes (id, conversation_id),
  CHECK (from_id <> to_id)
) WITHOUT ROWID;
CREATE INDEX edges_to ON edges (to_id);

CREATE TABLE links (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  host_turn_id TEXT NOT NULL,
  host_conversation_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  version INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  data TEXT NOT NULL,
  FOREIGN KEY (host_turn_id, host_conversation_id) REFERENCES turns (id, conversation_id)
);
CREATE INDEX links_of_turn ON links (host_turn_id, is_open, ordinal);

CREATE TABLE bodies (hash TEXT NOT NULL UNIQUE, text BLOB NOT NULL);

CREATE TABLE engines (id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, data TEXT NOT NULL);

CREATE TABLE blocks (node_id TEXT NOT NULL UNIQUE, root_id TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX blocks_of_tree ON blocks (root_id);

-- One row per commit of a tree, with its events; \`seq\` is the sequence after it. \`digest\` covers the rows it wrote,
-- \`hash\` the hash before it, the digest and the events.
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
CREATE INDEX commits_of_tree ON commits (root_id, seq);
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
