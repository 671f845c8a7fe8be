import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { commitOf, nodeRow, placeIn, treeCommit, warningEvent } from '../../src/testing/conformance/store-rows.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'

/** A look comes each second. */
const LOOKS_MS = 1_800

describe.skipIf(noPostgres !== undefined)('looking for writes of others', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  test('a write of its own that is under way hides none of somebody else', async () => {
    const options = { url: server.url(), schema: 'under_way' }
    const [store, other] = [postgresStore(options), postgresStore(options)]
    const admin = new pg.Client({ connectionString: server.url() })
    await admin.connect()
    await store.commit(treeCommit('root-a'))
    await store.commit(treeCommit('root-b'))
    let news = 0
    const unwatch = store.watch((change) => {
      if (change === null) news++
    })
    await sleep(LOOKS_MS)

    // The database has counted it, and does not answer before somebody else lets go of the tree.
    await admin.query("BEGIN; SELECT 1 FROM under_way.trees WHERE root_id = 'root-a' FOR UPDATE")
    const held = store.commit(commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'x')] }))
    await sleep(LOOKS_MS)
    await admin.query('COMMIT')
    await held
    const before = news
    // Nobody tells of this one: it is nothing that others have to act on.
    await other.commit(commitOf('root-b', { events: [warningEvent(placeIn('root-b'), 'y')] }))
    await expect.poll(() => news, { timeout: LOOKS_MS }).toBeGreaterThan(before)

    // Its own writes are no news.
    await sleep(LOOKS_MS)
    const quiet = news
    await store.commit(commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'z')] }))
    await sleep(LOOKS_MS)
    expect(news).toBe(quiet)
    unwatch()
    await Promise.all([store.close(), other.close(), admin.end()])
  })

  test('a tree that is brought in with work to do is told to others, and found by who brought it', async () => {
    const from = postgresStore({ url: server.url(), schema: 'brought_from' })
    await from.commit(treeCommit('root-a', { nodes: [nodeRow(placeIn('root-a'), 'n-1', { ordinal: 1 })] }))
    const tree = await from.archive?.read('root-a')
    if (tree === undefined) throw new Error('there is no tree')
    const options = { url: server.url(), schema: 'brought_to' }
    const [store, other] = [postgresStore(options), postgresStore(options)]
    await store.commit(treeCommit('root-b'))
    const heard: unknown[] = []
    let news = 0
    const unwatch = [
      other.watch((change) => heard.push(change)),
      store.watch((change) => {
        if (change === null) news++
      }),
    ]
    await sleep(LOOKS_MS)
    const before = news
    await store.archive?.restore(tree)
    await expect
      .poll(() => heard, { timeout: 700 })
      .toContainEqual({ isLeft: true, rootId: 'root-a', runnable: true, stop: false, ended: [] })
    await expect.poll(() => news, { timeout: LOOKS_MS }).toBeGreaterThan(before)
    for (const end of unwatch) end()
    await Promise.all([from, store, other].map((one) => one.close()))
  })
})
