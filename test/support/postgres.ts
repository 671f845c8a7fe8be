import { existsSync } from 'node:fs'
import path from 'node:path'
import { afterAll } from 'vitest'
import { isFull } from '../crash/support/full.ts'
import { type PostgresServer, type ServerOptions, startPostgres } from './postgres-server.ts'

export { noPostgres, type PostgresServer, startPostgres } from './postgres-server.ts'

/** Starts a server for the tests of one file, and stops it after them. */
export async function usePostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const server = await startPostgres(options)
  afterAll(() => server.drop())
  return server
}

/** The programs of PostgreSQL 15 that Debian has installed; undefined elsewhere. */
const debianPrograms: string | undefined = ['/usr/lib/postgresql/15'].find((folder) =>
  existsSync(path.join(folder, 'bin', 'initdb')),
)

/** The servers of suites: that of the package, and with the full figures the oldest that is supported, where Debian has it. */
export const postgresVersions: readonly PostgresVersion[] = [
  { name: 'PostgreSQL', options: {} },
  ...(isFull && debianPrograms !== undefined ? [{ name: 'PostgreSQL 15', options: { programs: debianPrograms } }] : []),
]

export interface PostgresVersion {
  readonly name: string
  readonly options: ServerOptions
}
