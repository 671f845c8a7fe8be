import { createHash } from 'node:crypto'
import { storeConformance } from 'legate/testing'
import { describe, test } from 'vitest'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { isFull } from '../crash/support/full.ts'
import { debianPrograms, noPostgres, type ServerOptions, usePostgres } from '../support/postgres.ts'

describe.skipIf(noPostgres !== undefined)('PostgreSQL', async () => {
  await conformance('PostgreSQL', noPostgres === undefined ? {} : undefined)
})

const older = isFull && debianPrograms !== undefined ? { programs: debianPrograms } : undefined

/** The oldest version that is supported, where Debian has installed it, with the full figures. */
describe.skipIf(older === undefined)('PostgreSQL 15', async () => {
  await conformance('PostgreSQL 15', older)
})

async function conformance(name: string, options: ServerOptions | undefined): Promise<void> {
  const server = options === undefined ? undefined : await usePostgres(options)
  const schemaOf = (folder: string) => `s${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`
  storeConformance({
    name,
    open: (folder) => postgresStore({ url: server?.url() ?? '', schema: schemaOf(folder) }),
    durable: true,
    test,
  })
}
