import { describe, test } from 'vitest'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { narrowLaws, narrowWorld } from '../support/narrow-laws.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'

describe.skipIf(noPostgres !== undefined)('I12: a narrower principal of the same id, on PostgreSQL', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)

  test.each(narrowLaws.map((law, at) => [...law, at] as const))('%s', async (_, check, at) => {
    await using runtime = narrowWorld(postgresStore({ url: server.url(), schema: `narrow_${at}` }))
    await check(runtime)
  })
})
