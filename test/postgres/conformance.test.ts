import { createHash } from 'node:crypto'
import { storeConformance } from 'legate/testing'
import { describe, test } from 'vitest'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { noPostgres, postgresVersions, usePostgres } from '../support/postgres.ts'

describe.skipIf(noPostgres !== undefined).each(postgresVersions)('$name', async ({ name, options }) => {
  const server = noPostgres === undefined ? await usePostgres(options) : undefined
  const schemaOf = (folder: string) => `s${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`
  storeConformance({
    name,
    open: (folder) => postgresStore({ url: server?.url() ?? '', schema: schemaOf(folder) }),
    durable: true,
    test,
  })
})
