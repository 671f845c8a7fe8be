import { shortSha256 } from '../../../core/base/hash.ts'
import { parseOwnJson } from '../../../core/base/json.ts'
import type { Id } from '../../../core/graph/rows.ts'
import type { Tombstone } from '../../../core/store/archive.ts'
import { forgottenStone, readTombstone, tombstoneFor } from '../../../core/store/not-found.ts'
import { type Connection, columnText } from './connection.ts'

/** Finds the tombstones that name a conversation or run. */
export const STONE_IDS = `
CREATE TABLE stone_ids (
  id TEXT NOT NULL,
  n INTEGER NOT NULL,  -- of the tombstone
  PRIMARY KEY (id, n)
) WITHOUT ROWID;
CREATE INDEX stone_ids_of_stone ON stone_ids (n);
INSERT OR IGNORE INTO stone_ids (id, n)
  SELECT c.value ->> '$.id', stones.n FROM stones JOIN json_each(iif(json_valid(stones.data), stones.data, '{}'), '$.conversations') AS c
  WHERE c.value ->> '$.id' IS NOT NULL;
INSERT OR IGNORE INTO stone_ids (id, n)
  SELECT r.value, stones.n FROM stones JOIN json_each(iif(json_valid(stones.data), stones.data, '{}'), '$.conversations') AS c
  JOIN json_each(c.value, '$.runs') AS r WHERE r.value IS NOT NULL;
`

/** A tombstone as the file has it. */
export interface WrittenStone {
  readonly n: number
  readonly hash: string
  readonly data: string
}

/** All tombstones, with their numbers in the file. */
export function readStones(db: Connection): WrittenStone[] {
  return db
    .all(
      "SELECT n, CAST(hash AS BLOB), CAST(data AS BLOB) FROM stones ORDER BY iif(json_valid(data), data ->> '$.at', 0), n",
    )
    .map(([n, hash, data]) => ({ n: Number(n), hash: columnText(hash), data: columnText(data) }))
}

/** By number: a tree that took the id of another came after it, whatever the clock said. */
const NAMING =
  'SELECT CAST(data AS BLOB) FROM stones WHERE n IN (SELECT n FROM stone_ids WHERE id = ?) ORDER BY stones.n'

/** The newest tombstone that names this conversation or run. */
export function findStone(db: Connection, id: Id): Tombstone | undefined {
  const stones = db.all(NAMING, [String(id)]).flatMap(([data]) => toStone(columnText(data)) ?? [])
  return tombstoneFor(stones, (one) => one === id)
}

/** Writes a tombstone, and what it is found by. */
export function putStone(db: Connection, n: number, stone: Tombstone): void {
  const data = JSON.stringify(stone)
  db.run('INSERT INTO stones (n, data, hash) VALUES (?, ?, ?)', [n, data, stoneHash(n, data)])
  for (const id of idsOf(stone)) db.run('INSERT INTO stone_ids (id, n) VALUES (?, ?)', [id, n])
}

/** Takes a tombstone away: its tree is back. */
export function dropStone(db: Connection, n: number): void {
  db.run('DELETE FROM stones WHERE n = ?', [n])
  db.run('DELETE FROM stone_ids WHERE n = ?', [n])
}

/** Erases the details of an owner's tombstones. Their ids stay: no key of a deleted run starts a second one. */
export function forgetStones(db: Connection, owner: string): void {
  for (const { n, data } of readStones(db)) {
    const stone = toStone(data)
    if (stone?.owner !== owner) continue
    const text = JSON.stringify(forgottenStone(stone))
    db.run('UPDATE stones SET data = ?, hash = ? WHERE n = ?', [text, stoneHash(n, text), n])
  }
}

/** Undefined where it cannot be read: an audit reports it. */
export function toStone(data: string): Tombstone | undefined {
  try {
    return readTombstone(parseOwnJson(data) as Tombstone)
  } catch {
    return undefined
  }
}

/** True where the tombstone is as it was written, and is found by exactly the ids that it names. */
export function isWhole(db: Connection, { n, hash, data }: WrittenStone): boolean {
  if (stoneHash(n, data) !== hash) return false
  const stone = toStone(data)
  const found = db
    .all('SELECT CAST(id AS BLOB) FROM stone_ids WHERE n = ? ORDER BY id', [n])
    .map(([id]) => columnText(id))
  return stone !== undefined && JSON.stringify([...idsOf(stone)].sort()) === JSON.stringify(found.sort())
}

/** Ids that lead to no tombstone. */
export function strayIds(db: Connection): string[] {
  return db
    .all('SELECT CAST(id AS BLOB) FROM stone_ids WHERE n NOT IN (SELECT n FROM stones)')
    .map(([id]) => columnText(id))
}

function idsOf({ conversations }: Tombstone): Set<Id> {
  return new Set(conversations.flatMap(({ id, runs }) => [id, ...runs]))
}

function stoneHash(n: number, data: string): string {
  return shortSha256(`${n}\n${data}`)
}
