import { postgresStore } from 'legate/store/postgres'
import pg from 'pg'
import { describe } from 'vitest'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { fixture, testStored, toldOf } from '../support/stored-2043270a.ts'

describe.skipIf(noPostgres !== undefined)('an older store on PostgreSQL', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  const told = toldOf('postgres')
  let databases = 0

  async function run(url: string, ...statements: string[]): Promise<void> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }

  testStored('a database of commit 2043270a', async () => {
    const name = `old${++databases}`
    const url = server.url().replace(/postgres$/, name)
    // The feed goes by the numbers of transactions, as after a move of the files of a server.
    const catchUp = `DO $$ BEGIN WHILE pg_current_xact_id()::text::bigint < ${told.xid} LOOP COMMIT; END LOOP; END $$`
    await run(server.url(), catchUp, `CREATE DATABASE ${name}`)
    await run(url, fixture('2043270a.sql.gz').toString())
    return { open: () => postgresStore(url), told }
  })
})
