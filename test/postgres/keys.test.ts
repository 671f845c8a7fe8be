import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import {
  commitOf,
  nodeRow,
  outcomeOf,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from '../../src/testing/conformance/store-rows.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { leaveUnaudited } from '../support/unaudited.ts'

/** What a schema of version 2 has where that of version 3 has keys with the number of the tree. */
const OLDER_KEYS = `
  ALTER TABLE @.rows DROP CONSTRAINT rows_pkey, ADD PRIMARY KEY (id, letter);
  DROP INDEX @.rows_by_key;
  CREATE UNIQUE INDEX rows_by_key ON @.rows (span, key) WHERE key IS NOT NULL;
  DROP INDEX @.trees_at_rest;
  CREATE INDEX trees_idle ON @.trees (active, t) WHERE state <> 'open';
  UPDATE @.legate SET version = 2`
const KEYS = `SELECT pg_get_indexdef(indexrelid, 0, true) FROM pg_index
  WHERE indrelid = '@.rows'::regclass AND indisunique AND indisvalid ORDER BY 1`

describe.skipIf(noPostgres !== undefined)('keys of PostgreSQL', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  /** A connection to a schema, whose name stands for `@`. */
  async function connectTo(schema: string) {
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    const ask = async (text: string): Promise<unknown[]> => {
      const result = await client.query({ text: text.replaceAll('@', schema), rowMode: 'array' })
      return (result as pg.QueryArrayResult).rows?.map(([first]) => first) ?? []
    }
    return { ask, end: () => client.end() }
  }

  function openAt(schema: string): Store {
    const store = postgresStore({ url: server.url(), schema })
    leaveUnaudited(store)
    return store
  }

  test('the number of the tree comes into the keys of a store while an older process writes and another reads for long', async () => {
    const [admin, busy] = [await connectTo('older'), await connectTo('older')]
    const older = openAt('older')
    await older.commit(treeCommit('root'))
    await admin.ask(OLDER_KEYS)
    await busy.ask(`BEGIN; UPDATE @.rows SET version = version`)
    // A process that ended while it built an index has left a broken one.
    await admin.ask('SET statement_timeout = 300')
    const build = admin.ask('CREATE UNIQUE INDEX CONCURRENTLY rows_by_id ON @.rows (id, letter, t)')
    await expect(build).rejects.toThrow('statement timeout')
    await admin.ask('SET statement_timeout = 0')

    const younger = [openAt('older'), openAt('older')]
    const opened = Promise.all(younger.map((store, at) => store.commit(treeCommit(`young-${at}`))))
    const waiting = `SELECT count(*)::int FROM pg_stat_activity WHERE query ~ '^(CREATE|DROP).* INDEX CONCURRENTLY' AND wait_event_type = 'Lock'`
    await expect.poll(() => admin.ask(waiting), { timeout: 10_000 }).toEqual([1])
    await expectSoon(older.commit(treeCommit('meanwhile')))
    await busy.ask('COMMIT')
    await busy.ask('BEGIN; SELECT 1 FROM @.rows')
    for (let at = 0; at < 3; at++) {
      await sleep(500)
      await expectSoon(older.commit(treeCommit(`later-${at}`)))
    }
    expect(await admin.ask('SELECT version FROM @.legate')).toEqual([2])
    await busy.ask('COMMIT')
    await opened

    expect(await admin.ask('SELECT version FROM @.legate')).toEqual([3])
    expect(await admin.ask(KEYS)).toEqual([
      'CREATE UNIQUE INDEX rows_by_key ON older.rows USING btree (span, key, t) WHERE key IS NOT NULL',
      'CREATE UNIQUE INDEX rows_pkey ON older.rows USING btree (id, letter, t)',
    ])
    await older.commit(treeCommit('after'))
    expect(await older.archive?.verify()).toMatchObject({ findings: [], rows: 8 * 3 })
    await Promise.all([older, ...younger].map((store) => store.close()))
    await Promise.all([admin.end(), busy.end()])
  })

  test('of two trees that take the id of one run at the same moment, one is refused', async () => {
    const admin = await connectTo('same_run')
    const stores = [openAt('same_run'), openAt('same_run')]
    await Promise.all(stores.map((store, at) => store.commit(treeCommit(`before-${at}`))))
    // Neither is done before the other has begun.
    await admin.ask(`CREATE FUNCTION @.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END';
      CREATE TRIGGER slow BEFORE INSERT ON @.commits FOR EACH ROW EXECUTE FUNCTION @.slow()`)
    const taken = stores.map((store, at) => {
      const place = { ...placeIn(`tree-${at}`), turnId: 'one-run' }
      return store.commit(treeCommit(`tree-${at}`, { turns: [turnRow(place)], nodes: [nodeRow(place, `node-${at}`)] }))
    })
    const ends = await Promise.allSettled(taken)
    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await admin.ask(`SELECT count(*)::int FROM @.rows WHERE @.id_text(id) = 'one-run'`)).toEqual([1])
    await Promise.all(stores.map((store) => store.close()))
    await admin.end()
  })

  test('tables are cut by the number of the tree without writing them anew, and an old part is dropped whole', async () => {
    const admin = await connectTo('cut')
    const store = openAt('cut')
    for (let at = 0; at < 6; at++) await store.commit(endedTree(`old-${at}`))
    await store.commit(treeCommit('old-open'))
    const [next] = await admin.ask('SELECT max(t) + 1 FROM @.trees')
    const filesOf = `SELECT relfilenode FROM pg_class WHERE oid IN (SELECT indexrelid FROM pg_index
      WHERE indrelid = to_regclass('@.rows_1')) OR oid = to_regclass('@.rows_1') ORDER BY oid`
    await admin.ask('BEGIN')
    for (const table of ['rows', 'commits', 'bodies']) await admin.ask(`ALTER TABLE @.${table} RENAME TO ${table}_1`)
    const before = await admin.ask(filesOf)
    for (const table of ['rows', 'commits', 'bodies']) {
      await admin.ask(`CREATE TABLE @.${table} (LIKE @.${table}_1 INCLUDING ALL) PARTITION BY RANGE (t);
        ALTER TABLE @.${table} ATTACH PARTITION @.${table}_1 FOR VALUES FROM (MINVALUE) TO (${next});
        CREATE TABLE @.${table}_2 PARTITION OF @.${table} FOR VALUES FROM (${next}) TO (MAXVALUE)`)
    }
    await admin.ask('COMMIT')
    expect(before.length).toBeGreaterThan(5)
    expect(await admin.ask(filesOf)).toEqual(before)

    // A process that was there before goes on, in both parts.
    for (let at = 0; at < 6; at++) await store.commit(endedTree(`new-${at}`))
    await store.commit(commitOf('old-open', { events: [warningEvent(placeIn('old-open'), 'late')] }))
    await expect(store.commit(treeCommit('new-9', { turns: [turnRow(placeIn('old-1'))] }))).rejects.toThrow()
    const trees = [
      { rootId: 'old-0', seq: 1, reason: 'ttl' } as const,
      { rootId: 'new-0', seq: 1, reason: 'ttl' } as const,
    ]
    expect(await store.archive?.removeAll?.(trees, { at: 1 })).toMatchObject([{ rootId: 'old-0' }, { rootId: 'new-0' }])
    expect(await store.archive?.verify()).toMatchObject({ findings: [], rows: 10 * 2 + 3 })
    expect(await admin.ask('SELECT count(*)::int FROM @.rows_2')).toEqual([5 * 2])

    await admin.ask(
      `BEGIN; DROP TABLE @.rows_1, @.commits_1, @.bodies_1; DELETE FROM @.trees WHERE t < ${next}; COMMIT`,
    )
    expect(await store.archive?.verify()).toMatchObject({ findings: [], rows: 5 * 2 })
    const left = await store.roots({ limit: 100 })
    expect(left.map(({ id }) => id)).toEqual(['new-5', 'new-4', 'new-3', 'new-2', 'new-1'])
    await store.close()
    await admin.end()
  })
})

/** A commit of an older process does not wait for the step: others that wait for it would give up. */
async function expectSoon(commit: unknown): Promise<void> {
  const begun = performance.now()
  await commit
  expect(performance.now() - begun).toBeLessThan(3_000)
}

function endedTree(rootId: string) {
  const place = placeIn(rootId)
  const ended = { state: 'ended', endedAt: 1, outcome: outcomeOf(place.turnId, rootId) } as const
  return treeCommit(rootId, { turns: [turnRow(place, ended)], nodes: [], events: [warningEvent(place, 'end')] })
}
