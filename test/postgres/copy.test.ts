import path from 'node:path'
import { jsonStore } from 'legate/store/json'
import { postgresStore } from 'legate/store/postgres'
import { sqliteStore } from 'legate/store/sqlite'
import { describe } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { copyLaws } from '../support/copy-laws.ts'
import { noPostgres, type PostgresServer, usePostgres } from '../support/postgres.ts'

const sqlite = (folder: string): Store => sqliteStore(path.join(folder, 'runs.db'))

describe.skipIf(noPostgres !== undefined)('a copy', async () => {
  const server = noPostgres === undefined ? await usePostgres() : (undefined as unknown as PostgresServer)
  const postgres = (folder: string): Store => postgresStore({ url: server.url(), schema: path.basename(folder) })

  describe('from SQLite to PostgreSQL', () => copyLaws(sqlite, postgres))
  describe('from PostgreSQL to JSON', () => copyLaws(postgres, jsonStore))
  describe('from PostgreSQL to PostgreSQL', () => copyLaws(postgres, postgres))
})
