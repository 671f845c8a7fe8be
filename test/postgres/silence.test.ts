import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createRuntime } from '../../src/core/runtime/runtime.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { commitOf, nodeRow, placeIn, treeCommit, warningEvent } from '../../src/testing/conformance/store-rows.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { Cable } from './support/cable.ts'

/** A statement without an answer is sent again after 8 s, on a new connection. The rest is for a busy machine. */
const NOTICED_MS = 11_000

describe.skipIf(noPostgres !== undefined)('a database that is silent', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  const place = placeIn('root-a')

  for (const lost of ['questions', 'answers'] as const) {
    test.concurrent(`${lost} vanish on all connections: they are noticed together, and nothing is written twice`, async ({
      expect,
    }) => {
      const cable = await Cable.open(server.port)
      const url = server.url().replace(`:${server.port}/`, `:${cable.port}/`)
      const store = postgresStore({ url, schema: `silent_${lost}` })
      const other = postgresStore({ url: server.url(), schema: `silent_${lost}` })
      const heard: unknown[] = []
      const unwatch = store.watch((change) => heard.push(change?.rootId))
      await store.commit(treeCommit('root-a'))
      // As many connections as it may have, and one that listens.
      await Promise.all(Array.from({ length: 20 }, () => store.roots({ limit: 1 })))
      await sleep(1_500)

      cable.forget(lost)
      const began = performance.now()
      await store.commit(commitOf('root-a', { events: [warningEvent(place, 'x')] }))
      for (let at = 0; at < 9; at++) await store.roots({ limit: 1 })
      expect(performance.now() - began).toBeLessThan(NOTICED_MS)
      expect((await other.events('root-a', 0, 9)).length).toBe(1)

      // It listens again, too.
      await sleep(Math.max(0, NOTICED_MS - (performance.now() - began)))
      await other.commit(commitOf('root-a', { nodes: [nodeRow(place, 'new', { ordinal: 5 })] }))
      await expect.poll(() => heard, { timeout: 500 }).toContain('root-a')
      unwatch()
      // Nobody waits for answers to last words.
      cable.forget(lost)
      const ending = performance.now()
      await Promise.all([store.close(), other.close()])
      expect(performance.now() - ending).toBeLessThan(2_000)
      await cable.close()
    })
  }

  test.concurrent('a database that was never reached is said to be away after 10 s, and at once to those who ask later', async ({
    expect,
  }) => {
    // It takes connections, and says nothing.
    const mute = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const { port } = mute.address() as { port: number }
    const store = postgresStore(`postgres://me@127.0.0.1:${port}/x`)
    const began = performance.now()
    await expect(store.roots({ limit: 1 })).rejects.toMatchObject({ code: 'store_busy' })
    expect(performance.now() - began).toBeLessThan(16_000)
    const later = performance.now()
    await expect(store.roots({ limit: 1 })).rejects.toMatchObject({ code: 'store_busy' })
    expect(performance.now() - later).toBeLessThan(6_000)
    await store.close()
    mute.close()
  })

  test('a runtime that could not start says so once: closing it asks for nothing, and is done at once', async () => {
    const runtime = createRuntime({ store: postgresStore({ url: 'postgres://me@127.0.0.1:1/x', busyMs: 200 }) })
    await expect(runtime.resume()).rejects.toMatchObject({ code: 'store_busy' })
    const began = performance.now()
    await runtime.close()
    expect(performance.now() - began).toBeLessThan(150)
  })
})
