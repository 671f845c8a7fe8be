import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { PostgresClient, PostgresPool } from '../../src/stores/postgres/connection/driver.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { commitOf, placeIn, treeCommit, warningEvent } from '../../src/testing/conformance/store-rows.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

describe.skipIf(noPostgres !== undefined)('listening that fails', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  test('a replica refuses it: no connection is kept, and looking alone finds the news', async () => {
    const schema = 'on_replica'
    const writer = postgresStore({ url: server.url(), schema })
    await writer.commit(treeCommit('root-a'))
    await writer.close()
    const replica = await server.follow(server.port)
    onTestFinished(() => replica.drop())
    const reader = postgresStore({ url: replica.url(), schema, readOnly: true, connections: 2, busyMs: 1_000 })
    leaveUnaudited(reader)
    let news = 0
    const unwatch = reader.watch(() => news++)
    await sleep(4_000)
    expect((await reader.roots({ limit: 9 })).map(({ id }) => id)).toEqual(['root-a'])
    const before = news
    const again = postgresStore({ url: server.url(), schema })
    await again.commit(commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'x')] }))
    await expect.poll(() => news, { timeout: 5_000 }).toBeGreaterThan(before)
    unwatch()
    await Promise.all([reader.close(), again.close()])
  })

  test('a connection that breaks meanwhile leaves one listener, not two', async () => {
    const pool = new pg.Pool({ connectionString: server.url(), max: 5 })
    pool.on('error', () => undefined)
    let asked = 0
    const watched = new WeakSet<object>()
    const breaking = {
      connect: async () => {
        const client = await pool.connect()
        // A connection that was given back comes again: it counts once.
        if (watched.has(client)) return client
        watched.add(client)
        const query = client.query.bind(client) as unknown as PostgresClient['query']
        const asking: PostgresClient['query'] = (config) => {
          const isFirst = String(Reflect.get(config, 'text')).startsWith('LISTEN') && ++asked === 1
          return query(isFirst ? { text: 'SELECT pg_terminate_backend(pg_backend_pid())' } : config)
        }
        return Object.assign(client, { query: asking })
      },
      end: () => pool.end(),
      on: () => undefined,
    } as unknown as PostgresPool
    const store = postgresStore({ pool: breaking, schema: 'breaks' })
    leaveUnaudited(store)
    const unwatch = store.watch(() => undefined)
    await expect.poll(() => asked, { timeout: 5_000 }).toBeGreaterThan(1)
    await sleep(1_200)
    expect(asked).toBe(2)
    unwatch()
    await store.close()
    await pool.end()
  })
})
