import { expect } from 'vitest'
import { type Connection, connectTo } from '../../src/stores/sqlite/driver.ts'
import { findTrees, readRecords } from '../../src/stores/sqlite/tree.ts'
import { verifySqlite } from '../../src/stores/sqlite/verify.ts'

/** Reads the file without the store: nothing is damaged and every tree's chain is right. The last hash of every tree. */
export function verifyFile(path: string): Map<string, string> {
  const db = connectTo(path)
  expect(db.first('PRAGMA integrity_check')).toEqual(['ok'])
  expect(db.all(STRAY_KEYS)).toEqual([])
  expect(db.first(COUNTS)).toEqual([0])
  const last = verifyChains(db)
  db.close()
  return last
}

/** Keys and rows tell the same. */
const STRAY_KEYS = `SELECT keys.id, keys.slot FROM keys LEFT JOIN rows ON rows.n = keys.n
  WHERE keys.id IS NOT CASE keys.slot WHEN 'c' THEN rows.data ->> '$.conversation' WHEN 't' THEN rows.data ->> '$.turn'
    WHEN 'n' THEN rows.data ->> '$.node' WHEN 'l' THEN rows.data ->> '$.link'
    ELSE coalesce(rows.data ->> '$.laneId', rows.data ->> '$.conversationId') END`
const COUNTS = `SELECT (SELECT count(*) FROM rows WHERE data ->> '$.edges' IS NULL)
  - (SELECT count(*) FROM keys WHERE slot IN ('c', 't', 'n', 'l'))`

function verifyChains(db: Connection): Map<string, string> {
  expect(verifySqlite(db).findings).toEqual([])
  const trees = [...findTrees(db).byRoot]
  return new Map(trees.map(([rootId, { tree = 0 }]) => [rootId, readRecords(db, tree).at(-1)?.hash ?? '']))
}
