import pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { commitOf, nodeRow, placeIn, treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

const place = placeIn('root-a')

/** Each change, and whether a reader must notice it without being asked to verify. */
const CHANGES: readonly (readonly [change: string, isRead?: true])[] = [
  ['legate.rows SET edges_n = 0 WHERE edges IS NOT NULL', true],
  ['legate.rows SET edges_n = NULL WHERE edges_n = 5', true],
  ['legate.rows SET edges_seq = 77 WHERE edges_n = 5'],
  ["legate.rows SET conversation_id = '\\xff' WHERE edges_n = 5"],
  ["legate.rows SET conversation_id = '\\xff' WHERE letter = 't'"],
  ["legate.rows SET span = '\\x2fff' WHERE letter = 't'"],
  ['legate.rows SET ordinal = 99 WHERE ordinal = 12'],
  ["legate.rows SET key = 'x' WHERE ordinal = 12"],
  ['legate.rows SET n = 3 WHERE ordinal = 12', true],
  ["legate.commits SET ids = '{}' WHERE n = 55"],
]

describe.skipIf(noPostgres !== undefined)('columns by which rows or edges are found', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  test('each that somebody changed is named', async () => {
    const store = openStore(server)
    await writeChain(store)
    expect(await foundIn(store)).toEqual([])
    for (const [change, isRead] of CHANGES) {
      const [table] = change.split(' ')
      await run(server, `CREATE TABLE legate.kept AS SELECT * FROM ${table}`, `UPDATE ${change}`)
      expect((await foundIn(store)).length, change).toBeGreaterThan(0)
      const other = openStore(server)
      if (isRead) await expect(other.tree('root-a'), change).rejects.toMatchObject({ code: 'tampered' })
      await other.close()
      const back = [`DELETE FROM ${table}`, `INSERT INTO ${table} SELECT * FROM legate.kept`, 'DROP TABLE legate.kept']
      await run(server, ...back)
      expect(await foundIn(store), change).toEqual([])
    }
    await store.close()
  })

  test('rows of a tree that somebody deleted, or put back as they were before, stop whoever loads it', async () => {
    const id = 'root-b'
    const { turnId } = placeIn(id)
    const store = openStore(server)
    await store.commit(treeCommit(id))
    await run(
      server,
      `CREATE TABLE legate.kept AS SELECT r.* FROM legate.rows r JOIN legate.trees h USING (t) WHERE ${isRoot(id)}`,
    )
    const node = (await store.tree(id)).node(`${turnId}-node`)
    await store.commit(commitOf(id, { nodes: [{ ...node, title: 'later', version: 2 } as never] }))
    const whole = 'SELECT r.* FROM legate.rows r JOIN legate.trees h USING (t)'
    await run(server, `CREATE TABLE legate.newest AS ${whole} WHERE ${isRoot(id)}`)
    const remove = `DELETE FROM legate.rows r USING legate.trees h WHERE h.t = r.t AND ${isRoot(id)}`
    const put = (table: string) => [remove, `INSERT INTO legate.rows SELECT * FROM legate.${table}`]

    for (const change of [put('kept'), [`${remove} AND r.letter = 'n'`]]) {
      await run(server, ...change)
      const other = openStore(server)
      await expect(other.tree(id), change.join('; ')).rejects.toMatchObject({ code: 'tampered' })
      await other.close()
      await run(server, ...put('newest'))
    }
    const other = openStore(server)
    expect((await other.tree(id)).node(`${turnId}-node`)?.version).toBe(2)
    await other.close()
    await run(server, 'DROP TABLE legate.kept', 'DROP TABLE legate.newest')
    await store.close()
  })
})

function isRoot(rootId: string): string {
  return `legate.id_text(h.root_id) = '${rootId}'`
}

function openStore(server: PostgresServer): Store {
  const store = postgresStore({ url: server.url() })
  leaveUnaudited(store)
  return store
}

/** A tree of more commits than are few, each with a node and an edge to it. */
async function writeChain(store: Store): Promise<void> {
  await store.commit(treeCommit('root-a'))
  for (let n = 10; n < 70; n++) {
    const from = n === 10 ? `${place.turnId}-node` : `n${n - 1}`
    const edges = [{ rootId: 'root-a', conversationId: 'root-a', from, to: `n${n}`, type: 'sequence' } as const]
    await store.commit(commitOf('root-a', { nodes: [nodeRow(place, `n${n}`, { ordinal: n })], edges }))
  }
}

async function foundIn(store: Store): Promise<readonly string[]> {
  return ((await store.archive?.verify('root-a'))?.findings ?? []).map(({ message }) => message)
}

async function run(server: PostgresServer, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: server.url() })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}
