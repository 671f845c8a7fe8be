import pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { Database } from '../../src/stores/postgres/connection/database.ts'
import type { PostgresClient, PostgresPool } from '../../src/stores/postgres/connection/driver.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

describe.skipIf(noPostgres !== undefined)('reading at one moment', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  test('a statement that fails at its begin or end gives the connection back, and says so in our words', async () => {
    for (const failing of ['BEGIN', 'SET LOCAL', 'COMMIT']) {
      const pool = new pg.Pool({ connectionString: server.url(), max: 3 })
      const store = postgresStore({ pool: failingAt(pool, failing), schema: 'moments', readOnly: true, busyMs: 500 })
      leaveUnaudited(store)
      if (failing === 'BEGIN') await committed(server)
      for (let at = 0; at < 4; at++) {
        await expect(readAll(store), failing).rejects.toMatchObject({ code: 'store', message: /says: it is refused/ })
      }
      expect((await store.roots({ limit: 1 })).length).toBe(1)
      await store.close()
      await pool.end()
    }
  })

  test('slow readers leave connections for others, and take turns; one that stops early passes its turn', async () => {
    const store = postgresStore({ url: server.url(), schema: 'moments', connections: 3, busyMs: 1_000 })
    leaveUnaudited(store)
    const readers = Array.from({ length: 5 }, () => partsOf(store))
    const begun = readers.map((reader) => reader.next())
    await Promise.all(begun.slice(0, 2))
    expect((await Promise.all([1, 2, 3].map(() => store.roots({ limit: 1 })))).length).toBe(3)
    for (const [at, reader] of readers.entries()) {
      expect((await begun[at])?.done).toBe(false)
      await reader.return(undefined)
    }
    expect(await readAll(store)).toBeGreaterThan(1)
    await store.close()
  })

  test('a moment that the database ended passes its turn, though its reader never comes back', async () => {
    const database = new Database({
      url: server.url(),
      pool: undefined,
      schema: 'moments',
      readOnly: true,
      busyMs: 1_000,
      connections: 3,
    })
    const left = await database.moment()
    const [row] = await left.query('SELECT pg_backend_pid()')
    await database.query('SELECT pg_terminate_backend($1)', [row?.[0]])
    const next = await database.moment()
    expect(await next.query('SELECT 1')).toEqual([[1]])
    next.end(true)
    expect(left.end(true)).toBe(false)
    await database.close()
  })
})

async function committed(server: PostgresServer): Promise<void> {
  const store = postgresStore({ url: server.url(), schema: 'moments' })
  await store.commit(treeCommit('root-a'))
  await store.close()
}

/** A pool whose connections refuse one statement. */
function failingAt(pool: pg.Pool, begin: string): PostgresPool {
  const connect = async (): Promise<PostgresClient> => {
    const client = (await pool.connect()) as unknown as PostgresClient
    return {
      query: (config) =>
        String(Reflect.get(config, 'text')).startsWith(begin)
          ? Promise.reject(Object.assign(new Error('it is refused'), { code: 'XX000' }))
          : client.query(config),
      on: (event, heard) => client.on(event, heard),
      off: (event, heard) => client.off(event, heard),
      release: (isBroken) => client.release(isBroken),
    }
  }
  return { connect, end: () => pool.end(), on: (event, heard) => pool.on(event, heard) }
}

function partsOf(store: Store): AsyncGenerator<unknown> {
  return store.archive?.parts?.('root-a') as AsyncGenerator<unknown>
}

async function readAll(store: Store): Promise<number> {
  let parts = 0
  for await (const _ of partsOf(store)) parts++
  return parts
}
