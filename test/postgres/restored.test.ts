import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { beforeEach, describe } from 'vitest'
import { testLost } from '../support/lost-store.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'
import { skipUnlessBuilt } from '../support/program.ts'

/** `pg_dump` must be as new as its server: both are those of Debian, where it has them. */
const programs = '/usr/lib/postgresql/15'
const hasDump = existsSync(path.join(programs, 'bin', 'pg_dump'))

beforeEach(skipUnlessBuilt)

describe.skipIf(noPostgres !== undefined)('a database of PostgreSQL', async () => {
  const server =
    noPostgres === undefined ? await usePostgres(hasDump ? { programs } : {}) : (undefined as unknown as PostgresServer)
  let databases = 0

  async function asAdmin(...statements: string[]): Promise<void> {
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }

  const run = (program: string, ...args: string[]) => promisify(execFile)(path.join(programs, 'bin', program), args)

  testLost('it', async (folder) => {
    const database = `lost${++databases}`
    const name = server.url().replace(/postgres$/, database)
    const file = path.join(folder, 'backup.dump')
    await asAdmin(`CREATE DATABASE ${database}`)
    const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`
    return {
      name,
      backUp: async () => {
        if (hasDump) await run('pg_dump', '--format=custom', `--file=${file}`, name)
        // Without the program: a copy of the files, for which connections are cut. The processes connect again.
        else await asAdmin(cut, `CREATE DATABASE ${database}_backup TEMPLATE ${database}`)
      },
      bringBack: async () => {
        await asAdmin(cut, `DROP DATABASE ${database}`)
        if (hasDump) await asAdmin(`CREATE DATABASE ${database}`)
        else await asAdmin(`CREATE DATABASE ${database} TEMPLATE ${database}_backup`)
        if (hasDump) await run('pg_restore', '--exit-on-error', `--dbname=${name}`, file)
      },
    }
  })
})
