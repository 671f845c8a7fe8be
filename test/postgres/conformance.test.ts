import { createHash } from 'node:crypto'
import { storeConformance } from 'legate/testing'
import { describe, test } from 'vitest'
import { postgresStore } from '../../src/store/postgres/index.ts'
import { noPostgres, usePostgres } from '../support/postgres.ts'

describe.skipIf(noPostgres !== undefined)('PostgreSQL', async () => {
  const server = noPostgres === undefined ? await usePostgres() : undefined
  const schemaOf = (folder: string) => `s${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`
  storeConformance({
    name: 'PostgreSQL',
    open: (folder) => postgresStore({ url: server?.url() ?? '', schema: schemaOf(folder) }),
    durable: true,
    test,
  })
})
