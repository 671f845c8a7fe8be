import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { sha256 } from '../../src/core/base/hash.ts'
import type { LiveBlock } from '../../src/core/graph/commit.ts'
import { createRuntime } from '../../src/core/runtime/runtime.ts'
import { agent } from '../../src/core/runtime/standalone.ts'
import type { Store } from '../../src/core/store/store.ts'
import { keyOf } from '../../src/stores/postgres/escape.ts'
import { type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import {
  commitOf,
  engineRow,
  next,
  nodeRow,
  outcomeOf,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from '../../src/testing/conformance/store-rows.ts'
import { scriptedModel } from '../../src/testing/stand-ins/scripted-model.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { leaveUnaudited } from '../support/unaudited.ts'
import { Cable } from './support/cable.ts'

const place = placeIn('root-a')

describe.skipIf(noPostgres !== undefined)('a store on PostgreSQL', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  let schemas = 0
  const schema = () => `s${++schemas}`

  /** Opens a store for a test, which closes it. */
  async function using(options: PostgresStoreOptions, use: (store: Store) => unknown): Promise<void> {
    const store = postgresStore({
      url: options.pool === undefined ? server.url() : undefined,
      busyMs: 2_000,
      ...options,
    } as PostgresStoreOptions)
    try {
      await use(store)
    } finally {
      await store.close()
    }
  }

  async function asAdmin(...statements: string[]): Promise<void> {
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }

  async function numbers(sql: string): Promise<number[]> {
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    const { rows } = await client.query({ text: sql, rowMode: 'array' })
    await client.end()
    return (rows[0] as unknown[]).map(Number)
  }

  describe('says in one sentence what is wrong', () => {
    const read = (store: Store) => store.roots({ limit: 1 })

    test('a wrong password', async () => {
      await using({ url: server.url('postgres', 'wrong') }, async (store) => {
        await expect(read(store)).rejects.toMatchObject({
          code: 'store',
          message: /does not accept this user and password/,
        })
        await expect(read(store)).rejects.not.toThrow(/wrong@|:wrong/)
      })
    })

    test('a database that is not there, and a server that is not there', async () => {
      await using({ url: server.url().replace(/\/postgres$/, '/nowhere') }, async (store) => {
        await expect(read(store)).rejects.toMatchObject({ code: 'store', message: /no such database/ })
      })
      await using({ url: 'postgres://me:secret@127.0.0.1:1/x', busyMs: 100 }, async (store) => {
        const failed = read(store)
        await expect(failed).rejects.toMatchObject({ code: 'store_busy', message: /does not answer/ })
        await expect(failed).rejects.not.toThrow(/secret/)
      })
    })

    test('a schema that is not there, where it may not be made', async () => {
      await using({ schema: 'nothing_here', readOnly: true }, async (store) => {
        await expect(read(store)).rejects.toMatchObject({ code: 'store', message: /no schema nothing_here/ })
      })
    })

    test('a role that may only read: it reads, and a commit is refused', async () => {
      const name = schema()
      await using({ schema: name }, (store) => store.commit(treeCommit('root-a')))
      await asAdmin(
        `CREATE ROLE reader_${name} LOGIN PASSWORD 'r'`,
        `GRANT USAGE ON SCHEMA ${name} TO reader_${name}`,
        `GRANT SELECT ON ALL TABLES IN SCHEMA ${name} TO reader_${name}`,
      )
      await using({ url: server.url(`reader_${name}`, 'r'), schema: name }, async (store) => {
        expect((await read(store)).map(({ id }) => id)).toEqual(['root-a'])
        await expect(store.commit(treeCommit('root-b'))).rejects.toMatchObject({
          code: 'store_readonly',
          message: /may not write/,
        })
      })
      await using({ url: server.url(`reader_${name}`, 'r'), schema: name, readOnly: true }, async (store) => {
        await expect(store.commit(treeCommit('root-b'))).rejects.toMatchObject({ code: 'store_readonly' })
        expect(store.isReadOnly).toBe(true)
      })
    })

    test('a database that takes no writes, as a replica', async () => {
      const name = schema()
      await using({ schema: name }, read)
      await asAdmin(
        `CREATE ROLE follower_${name} SUPERUSER LOGIN PASSWORD 'r'`,
        `ALTER ROLE follower_${name} SET default_transaction_read_only = on`,
      )
      await using({ url: server.url(`follower_${name}`, 'r'), schema: name }, async (store) => {
        await expect(store.commit(treeCommit('root-a'))).rejects.toMatchObject({
          code: 'store_readonly',
          message: /can only be read/,
        })
      })
    })

    test('no connection left', async () => {
      const name = schema()
      await asAdmin(`CREATE ROLE crowd_${name} LOGIN PASSWORD 'r' CONNECTION LIMIT 0`)
      await using({ url: server.url(`crowd_${name}`, 'r'), schema: name, busyMs: 100 }, async (store) => {
        await expect(read(store)).rejects.toMatchObject({ code: 'store_busy', message: /no connection left/ })
      })
    })

    test('no space left: the commit is refused whole, and goes through when there is space', async () => {
      const name = schema()
      await using({ schema: name }, async (store) => {
        await store.commit(treeCommit('root-a'))
        await asAdmin(
          `CREATE FUNCTION ${name}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$`,
          `CREATE TRIGGER full_disk BEFORE INSERT ON ${name}.commits FOR EACH ROW EXECUTE FUNCTION ${name}.full()`,
        )
        const commit = commitOf('root-a', { nodes: [nodeRow(place, 'new', { ordinal: 9 })] })
        await expect(store.commit(commit)).rejects.toMatchObject({ code: 'store_full', message: /no space left/ })
        expect((await store.tree('root-a')).node('new')).toBeUndefined()
        await asAdmin(`DROP TRIGGER full_disk ON ${name}.commits`)
        await store.commit(commit)
        expect((await store.tree('root-a')).node('new')).toBeDefined()
      })
    })

    test('a wrong address or pool, and neither or both of them', () => {
      const url = 'postgres://db/app'
      expect(() => postgresStore('mysql://x')).toThrow(/begins with postgres:\/\//)
      expect(() => postgresStore({})).toThrow(/needs `url` or `pool`/)
      expect(() => postgresStore({ url, pool: new pg.Pool() as never })).toThrow(/not both/)
      expect(() => postgresStore({ pool: {} as never })).toThrow(/a Pool of pg/)
      expect(() => postgresStore({ pool: new pg.Pool({ max: 1 }) as never })).toThrow(/at least 2 connections/)
      expect(() => postgresStore(`${url}?shema=a`)).toThrow(/Did you mean `\?schema=`/)
      expect(() => postgresStore(`${url}?schema=${encodeURIComponent("x'||chr(34));")}`)).toThrow(/letters, digits/)
      expect(() => postgresStore({ url, schema: 'a$&b' })).toThrow(/letters, digits/)
      expect(() => postgresStore({ url: `${url}?schema=a`, schema: 'b' })).toThrow(/schema a, and the option b/)
      expect(() => postgresStore({ url: 'postgres://x', schema: '' })).toThrow(/schema/)
    })
  })

  test('a pool of the user is used, and stays open', async () => {
    const pool = new pg.Pool({ connectionString: server.url(), max: 3 })
    await using({ pool, schema: schema() }, async (store) => {
      await store.commit(treeCommit('root-a'))
      expect((await store.roots({ limit: 9 })).length).toBe(1)
    })
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await pool.end()
  })

  test('a schema of a version that only newer software writes to is refused and left as it is', async () => {
    const name = schema()
    await using({ schema: name }, (store) => store.roots({ limit: 1 }))
    await asAdmin(`UPDATE ${name}.legate SET version = 99, least = 99`)
    await using({ schema: name }, async (store) => {
      await expect(store.roots({ limit: 1 })).rejects.toMatchObject({ code: 'store_newer_schema' })
    })
    await asAdmin(`UPDATE ${name}.legate SET version = 99, least = 1`)
    await using({ schema: name }, (store) => store.commit(treeCommit('root-a')))
  })

  test('processes that make the schema at the same time make it once', async () => {
    const name = schema()
    const stores = Array.from({ length: 4 }, () => postgresStore({ url: server.url(), schema: name }))
    await Promise.all(stores.map((store, at) => store.commit(treeCommit(`root-${at}`))))
    expect((await stores[0]?.roots({ limit: 9 }))?.length).toBe(4)
    await Promise.all(stores.map((store) => store.close()))
  })

  test('an answer that is lost on the way is found, and nothing is written twice', async () => {
    const name = schema()
    await using({ schema: name }, (store) => store.commit(treeCommit('root-a')))
    const cable = await Cable.open(server.port)
    const near = server.url().replace(`:${server.port}/`, `:${cable.port}/`)
    await using({ url: near, schema: name, busyMs: 20_000 }, async (store) => {
      await store.tree('root-a')
      const events = [warningEvent(place, 'once')]
      const rows = { nodes: [nodeRow(place, 'once', { ordinal: 5 })] }
      cable.loseAnswers()
      const sent = [store.commit(commitOf('root-a', { events })), store.commit(commitOf('root-a', rows))]
      const lease = store.commit(commitOf(null, { kind: 'lease', engines: [engineRow('e-1')] }))
      await sleep(300)
      cable.heal()
      await Promise.all([...sent, lease])
      expect(events[0]?.seq).toBe(1)
    })
    await cable.close()
    await using({ schema: name }, async (store) => {
      expect((await store.events('root-a', 0, 9)).length).toBe(1)
      expect((await store.tree('root-a')).node('once')?.version).toBe(1)
      expect((await store.engine('e-1'))?.version).toBe(1)
      expect(await store.archive?.verify()).toMatchObject({ findings: [], commits: 3 })
    })
  })

  test('the event loop goes on while the database does not answer', async () => {
    const cable = await Cable.open(server.port)
    await using(
      { url: server.url().replace(`:${server.port}/`, `:${cable.port}/`), schema: schema(), busyMs: 20_000 },
      async (store) => {
        await store.commit(treeCommit('root-a'))
        cable.cut()
        const late = Promise.all([
          store.tree('root-a'),
          store.commit(commitOf('root-a', { events: [warningEvent(place, 'x')] })),
        ])
        let turns = 0
        for (const until = performance.now() + 300; performance.now() < until; turns++) await sleep(1)
        expect(turns).toBeGreaterThan(20)
        cable.heal()
        await late
      },
    )
    await cable.close()
  })

  test('a tree that is pruned takes only its own copy of a text with it', async () => {
    const text = 'a text of two trees'
    const body = { hash: sha256(text), text }
    await using({ schema: schema() }, async (store) => {
      const ended = { state: 'ended', endedAt: 1, outcome: outcomeOf(place.turnId, 'root-a') } as const
      await store.commit(treeCommit('root-a', { turns: [turnRow(place, ended)], nodes: [], bodies: [body] }))
      await store.commit(treeCommit('root-b'))
      const commit = commitOf('root-b', {
        bodies: [body],
        nodes: [nodeRow(placeIn('root-b'), 'named', { ordinal: 3, state: 'finished', output: { bodyRef: body.hash } })],
      })
      await Promise.all([store.commit(commit), store.archive?.remove('root-a', { at: 1, reason: 'ttl' })])
      expect((await store.tree('root-b')).body(body.hash)).toBe(text)
      expect((await store.archive?.verify())?.findings).toEqual([])
    })
  })

  test('rows that somebody changed are found, and their tree can be deleted', async () => {
    const name = schema()
    await using({ schema: name }, async (store) => {
      await store.commit(treeCommit('root-a'))
      await store.commit(treeCommit('root-b'))
      const findings = async () => (await store.archive?.verify())?.findings.map(({ type }) => type)
      await asAdmin(`UPDATE ${name}.rows SET queue = 'w' WHERE letter = 'n' AND ${inRootA(name)}`)
      expect(await findings()).toEqual(['altered_index'])
      await asAdmin(
        `UPDATE ${name}.rows SET data = replace(data, 'editor', 'thief') WHERE letter = 'c' AND ${inRootA(name)}`,
      )
      expect(await findings()).toEqual(['altered_row'])
      await asAdmin(`UPDATE ${name}.commits SET events = '[{}]' WHERE ${inRootA(name)}`)
      expect(await findings()).toContain('broken_chain')
      await expect(store.archive?.remove('root-a', { at: 1, reason: 'x' })).rejects.toMatchObject({ code: 'conflict' })
      await store.archive?.remove('root-a', { at: 1, reason: 'x', evenTampered: true })
      expect(await findings()).toEqual([])
    })
  })

  test('a row that somebody changed behind its back is not given to anybody, and its tree takes no more commits', async () => {
    const name = schema()
    await using({ schema: name }, async (store) => {
      await store.commit(treeCommit('root-a'))
      await store.commit(treeCommit('root-b'))
    })
    const changes = {
      a_row: `UPDATE ${name}.rows SET data = replace(data, 'editor', 'thief') WHERE letter = 'c' AND ${inRootA(name)}`,
      an_older_commit: `UPDATE ${name}.commits SET marks = overlay(marks PLACING 'x' FROM 12) WHERE ${inRootA(name)}`,
    }
    for (const change of Object.values(changes)) {
      const [table] = /rows|commits/.exec(change) ?? []
      await asAdmin(`CREATE TABLE ${name}.kept AS SELECT * FROM ${name}.${table}`, change)
      await using({ schema: name }, async (store) => {
        leaveUnaudited(store)
        await expect(store.tree('root-a')).rejects.toMatchObject({ code: 'tampered', details: { rootId: 'root-a' } })
        await expect(store.near?.('root-a')).rejects.toMatchObject({ code: 'tampered' })
        await expect(store.commit(commitOf('root-a', {}))).rejects.toMatchObject({ code: 'tampered' })
        expect(store.tampered?.().map(({ details }) => details['rootId'])).toEqual(['root-a'])
        expect((await store.tree('root-b')).conversation('root-b')?.id).toBe('root-b')
        expect((await store.archive?.verify())?.findings.length).toBeGreaterThan(0)
      })
      await asAdmin(
        `DELETE FROM ${name}.${table}`,
        `INSERT INTO ${name}.${table} SELECT * FROM ${name}.kept`,
        `DROP TABLE ${name}.kept`,
      )
    }
    await using({ schema: name }, async (store) => {
      expect((await store.tree('root-a')).conversation('root-a')?.agent.name).toBe('editor')
    })
  })

  test('a stream is written only while somebody elsewhere reads its tree: all of it, then what comes', async () => {
    const name = schema()
    const count = async () => {
      const client = new pg.Client({ connectionString: server.url() })
      await client.connect()
      const { rows } = await client.query(`SELECT count(*)::int AS n FROM ${name}.blocks`)
      await client.end()
      return rows[0].n as number
    }
    await using({ schema: name }, (runs) =>
      using({ schema: name }, async (reads) => {
        const stop = runs.watch(() => undefined)
        await runs.commit(commitOf(null, { kind: 'lease', engines: [engineRow('engine-0')] }))
        await runs.commit(treeCommit('root-a'))
        const nodeId = `${place.turnId}-node`
        const say = (text: string) => runs.commit(commitOf(null, { kind: 'stream', blocks: [blockOf(nodeId, text)] }))
        await say('one ')
        await say('two ')
        expect(await count()).toBe(0)

        await reads.tree('root-a')
        const texts = async (after: number) => (await reads.blocks('root-a', after)).map(textOf)
        expect(await texts(0)).toEqual([])
        await until(async () => (await texts(0)).length === 2)
        await say('three ')
        await until(async () => (await texts(0)).length === 3)
        expect(await texts(0)).toEqual(['one ', 'two ', 'three '])

        const node = (await runs.tree('root-a')).node(nodeId)
        if (node === undefined) throw new Error('it is gone')
        await runs.commit(commitOf('root-a', { nodes: [next(node, { state: 'finished' })], dropBlocks: [nodeId] }))
        expect(await count()).toBe(0)
        stop()
      }),
    )
  })

  test('from one file to PostgreSQL: every tree that is exported is there, with its hashes', async () => {
    const file = sqliteStore(`${tempFolder()}/runs.db`)
    const from = createRuntime({ store: file })
    const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(['one', 'two', 'three']) })
    const ids = [await from.run(clerk, 'go').result, await from.run(clerk, 'on').result].map(
      (run) => run.conversationId,
    )
    const own = { schema: schema() }
    await using(own, async (store) => {
      const to = createRuntime({ store, engine: { workers: 0 } })
      for (const id of ids) {
        const lines: string[] = []
        for await (const line of from.export(id)) lines.push(line)
        await to.import(lines)
        expect((await store.archive?.read(id))?.records).toEqual((await file.archive?.read(id))?.records)
      }
      expect((await store.archive?.verify())?.findings).toEqual([])
      await to.close()
    })
    await using(own, async (store) => {
      const going = createRuntime({ store })
      const [conversationId = ''] = ids
      const { status } = await going.run(clerk, 'again', { conversationId }).result
      expect(status).toBe('completed')
      expect((await store.archive?.verify())?.findings).toEqual([])
      await going.close()
    })
    await from.close()
  })

  test('the feed keeps the newest changes, and says so to a reader who was away for too long', async () => {
    const name = schema()
    await using({ schema: name }, async (store) => {
      await store.commit(treeCommit('root-a'))
      const { cursor: early } = await store.changes(null, 0)
      await asAdmin(
        `INSERT INTO ${name}.changes (root_id, seq, agent, at, types) SELECT '${keyOf('root-a')}', n, 'editor', 1, '["run-end"]' FROM generate_series(1, 115000) AS n`,
        `INSERT INTO ${name}.changes (root_id, seq, agent, at, types) VALUES ('${keyOf('root-a')}', 115001, 'editor', 1, '["run-end"]')`,
      )
      expect(await store.changes(early, 1)).toMatchObject({ isCut: false, changes: [{ seq: 1 }] })
      await store.archive?.compact?.()
      const first = await store.changes(early, 2)
      expect(first).toMatchObject({ isCut: true, changes: [{ seq: 15_002 }, { seq: 15_003 }] })
      expect(await store.changes(first.cursor, 1)).toMatchObject({ isCut: false, changes: [{ seq: 15_004 }] })
      expect(await store.changes(null, 1)).toMatchObject({ isCut: false, changes: [{ seq: 15_002 }] })
    })
  })

  test('streams that are over and readers that are gone are forgotten, and copies of trees go on', async () => {
    const name = schema()
    await using({ schema: name }, (one) =>
      using({ schema: name }, async (other) => {
        await one.commit(treeCommit('root-a'))
        expect((await other.tree('root-a')).node('new')).toBeUndefined()
        await one.commit(commitOf('root-a', { nodes: [nodeRow(place, 'new', { ordinal: 7 })] }))
        await asAdmin(
          `INSERT INTO ${name}.blocks (node_id, root_id, data) VALUES ('gone', '${keyOf('root-a')}', '{}')`,
          `INSERT INTO ${name}.readers VALUES ('${keyOf('root-a')}', now() - interval '1 s')`,
        )
        await one.archive?.compact?.()
        const counts = await numbers(
          `SELECT (SELECT count(*) FROM ${name}.blocks), (SELECT count(*) FROM ${name}.readers)`,
        )
        expect(counts).toEqual([0, 0])
        expect((await other.tree('root-a')).node('new')?.version).toBe(1)
        expect((await one.archive?.verify())?.findings).toEqual([])
      }),
    )
  })

  test('ids are kept as bytes, and every one comes back', async () => {
    const name = schema()
    const roots = [
      '01a1ecbc-7b2b-7379-9592-1147a21b2403',
      'ff000000-7b2b-7379-9592-1147a21b2403',
      '01A1ECBC-7b2b-7379-9592-1147a21b2403',
      'fifteen letters',
      'sixteen letters!',
      'a\0b \ud800 and eight more',
    ]
    await using({ schema: name }, async (store) => {
      for (const root of roots) await store.commit(treeCommit(root))
    })
    await using({ schema: name }, async (store) => {
      for (const root of roots) {
        expect((await store.tree(root)).conversation(root)?.id).toBe(root)
        expect(await store.rootOf(placeIn(root).turnId)).toBe(root)
        expect(await store.findIds(root, 9)).toContainEqual({ id: root, type: 'conversation' })
      }
      const listed = (await store.conversations({ limit: 9 })).map(({ id }) => id)
      expect(listed.toSorted()).toEqual(roots.toSorted())
      expect((await store.archive?.verify())?.findings).toEqual([])
    })
    const [uuids] = await numbers(`SELECT count(*) FROM ${name}.trees WHERE length(root_id) = 16`)
    expect(uuids).toBe(2)
  })

  test('a copy of a tree takes what came since, whether its commits are few or many', async () => {
    const name = schema()
    const written = (nodeId: string, before: string) =>
      commitOf('root-a', {
        nodes: [nodeRow(place, nodeId, { ordinal: Number(nodeId.slice(1)) })],
        edges: [{ rootId: 'root-a', conversationId: 'root-a', from: before, to: nodeId, type: 'sequence' }],
      })
    await using({ schema: name }, (one) =>
      using({ schema: name }, async (other) => {
        await one.commit(treeCommit('root-a'))
        for (let n = 10; n < 75; n++) {
          await one.commit(written(`n${n}`, n === 10 ? `${place.turnId}-node` : `n${n - 1}`))
          if (n % 3 > 0) continue
          const tree = await other.tree('root-a')
          expect(tree.nodesOf(place.turnId)).toHaveLength(n - 8)
          expect(tree.edgesTo(`n${n}`).map(({ from }) => from)).toEqual([`n${n - 1}`])
        }
        const [few, many] = await numbers(`SELECT count(*) FILTER (WHERE ids IS NULL), count(ids) FROM ${name}.commits`)
        expect([few, many]).toEqual([50, 16])
        expect((await one.archive?.verify())?.findings).toEqual([])
      }),
    )
  })

  test('leases go by the clock of the database', async () => {
    await using({ schema: schema() }, async (store) => {
      const now = await store.now?.()
      expect(Math.abs((now ?? 0) - Date.now())).toBeLessThan(60_000)
    })
  })
})

function inRootA(name: string): string {
  return `t = (SELECT t FROM ${name}.trees WHERE ${name}.id_text(root_id) = 'root-a')`
}

function blockOf(nodeId: string, text: string): LiveBlock {
  const { rootId, conversationId, turnId } = place
  const at = { seq: 1.1, at: 1, conversationId, runId: turnId, nodeId, path: ['editor'], parentId: null }
  return { nodeId, rootId, epoch: 1, events: [{ ...at, type: 'text-delta', text }] }
}

function textOf({ events }: LiveBlock): string {
  return events.map((event) => (event.type === 'text-delta' ? event.text : event.type)).join('')
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 20_000
  while (!(await isDone())) {
    if (performance.now() > giveUpAt) throw new Error('it did not happen')
    await sleep(20)
  }
}
