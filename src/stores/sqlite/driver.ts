import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { isLegateError, messageOf, StoreError } from '../../core/base/error.ts'
import { loadBeside } from '../../core/base/package/beside.ts'
import { type Connection, columnText, type SqlRow } from './beside/connection.ts'

export { type Connection, columnText, type SqlRow }

/** SQLite's primary result codes that the store distinguishes. */
export const RESULT = {
  busy: 5,
  locked: 6,
  readonly: 8,
  io: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  constraint: 19,
  notADatabase: 26,
}

/** How a file is opened. `immutable`: as if nobody could ever write to it, without lock and log. */
export type OpenMode = 'write' | 'read' | 'immutable'

/** `node:sqlite` where this Node has it, else `libsql`; LEGATE_SQLITE_DRIVER=node|libsql forces one. */
export function connectTo(path: string, access: OpenMode = 'write'): Connection {
  const wanted = process.env['LEGATE_SQLITE_DRIVER'] ?? ''
  if (!['', 'node', 'libsql'].includes(wanted)) {
    throw new StoreError('store', `LEGATE_SQLITE_DRIVER is "${wanted}"; it may be "node" or "libsql".`)
  }
  const node = wanted === 'libsql' ? undefined : loadNodeSqlite()
  const name =
    access === 'write' ? path : `${pathToFileURL(path).href}?mode=ro${access === 'read' ? '' : '&immutable=1'}`
  if (node !== undefined) {
    return connectNode(new node.DatabaseSync(access === 'immutable' ? name : path, { readOnly: access !== 'write' }))
  }
  if (wanted === 'node') {
    throw new StoreError('store', `LEGATE_SQLITE_DRIVER is "node", but Node ${process.version} has no node:sqlite.`)
  }
  return connectLibsql(new (loadLibsql())(name), access)
}

/** Closed connections that may still hold their files: libsql frees them when the last statement is collected. */
let held = 0
const collected = new FinalizationRegistry<undefined>(() => {
  held--
})
/** Connections that were closed since the last collection. */
let young = 0
let freeing: Promise<void> | undefined

/**
 * A collection of young objects frees nearly all files. A full one frees all, but stops the process for milliseconds, and throws
 * away compiled code of which nothing is in use at that moment: so it is for the few that are left.
 */
const MOST_YOUNG = 32
const MOST_HELD = 256

/** Resolves when few closed connections hold files. Callers that close together wait together. */
export function filesFreed(): Promise<void> {
  if (young < MOST_YOUNG) return Promise.resolve()
  freeing ??= collect().finally(() => {
    freeing = undefined
  })
  return freeing
}

/** Forces a collection. Collected statements free their files in the next turn of the event loop. */
async function collect(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  young = 0
  collector()(held < MOST_HELD ? { type: 'minor' } : undefined)
  await new Promise((resolve) => setImmediate(resolve))
}

type Collector = (options?: { readonly type: 'minor' }) => void
let found: Collector | undefined

function collector(): Collector {
  if (found === undefined) process.getBuiltinModule('node:v8').setFlagsFromString('--expose-gc')
  found ??= process.getBuiltinModule('node:vm').runInNewContext('gc') as Collector
  return found
}

/** SQLite's extended result code of an error of either driver; 0 for any other error. */
export function resultCode(error: unknown): number {
  if (typeof error !== 'object' || error === null) return 0
  const { rawCode, errcode } = error as { rawCode?: unknown; errcode?: unknown }
  if (typeof rawCode === 'number') return rawCode
  return typeof errcode === 'number' ? errcode : 0
}

interface Statement {
  run(...parameters: readonly unknown[]): { readonly changes: number | bigint }
  get(...parameters: readonly unknown[]): unknown
  all(...parameters: readonly unknown[]): unknown[]
  iterate(...parameters: readonly unknown[]): Iterable<unknown>
}

interface Database<S extends Statement> {
  exec(sql: string): void
  prepare(sql: string): S
  close(): void
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string, options: { readonly readOnly: boolean }) => Database<Statement>
}

function loadNodeSqlite(): NodeSqlite | undefined {
  const { getBuiltinModule } = process as { getBuiltinModule?: (id: string) => unknown }
  return getBuiltinModule?.('node:sqlite') as NodeSqlite | undefined
}

function connectNode(database: Database<Statement>): Connection {
  const prepared = statements((sql) => database.prepare(sql))
  const iterated = statements((sql) => database.prepare(sql))
  return {
    exec: (sql) => database.exec(sql),
    first: (sql, parameters = []) => {
      const row = prepared(sql).get(...parameters)
      return row === undefined ? undefined : Object.values(row as object)
    },
    all: (sql, parameters = []) =>
      prepared(sql)
        .all(...parameters)
        .map((row) => Object.values(row as object)),
    each: function* (sql, parameters = []) {
      for (const row of iterated(sql).iterate(...parameters)) yield Object.values(row as object)
    },
    run: (sql, parameters) => Number(prepared(sql).run(...parameters).changes),
    close: () => database.close(),
  }
}

interface LibsqlStatement extends Statement {
  raw(): LibsqlStatement
}

const SQLITE_INSIDE = 'Node 22.13 and newer have SQLite themselves.'

/**
 * libsql creates a process report to find the C library. A report looks up the names of connected hosts, and everything waits
 * for the answer; this function excludes them.
 */
function loadLibsql(): new (path: string) => Database<LibsqlStatement> {
  const report: object & { excludeNetwork?: unknown } = process.report
  const { excludeNetwork } = report
  report.excludeNetwork = true
  try {
    return loadBeside(createRequire(import.meta.url), 'libsql', SQLITE_INSIDE) as ReturnType<typeof loadLibsql>
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}

/**
 * Handles three peculiarities of libsql: a boolean parameter aborts the process; a statement that ran with `all` gives `get`
 * its last row again, so each way has its own statement; and statements live until they are collected, so that closing moves
 * nothing out of the -wal file. The file stays in that mode: changing it needs exclusive access, and a process that opens the
 * file at that moment would be refused.
 */
function connectLibsql(database: Database<LibsqlStatement>, access: OpenMode): Connection {
  const firsts = statements((sql) => database.prepare(sql).raw())
  const lists = statements((sql) => database.prepare(sql).raw())
  const iterated = statements((sql) => database.prepare(sql).raw())
  const runs = statements((sql) => database.prepare(sql))
  return {
    exec: (sql) => database.exec(sql),
    first: (sql, parameters = []) => firsts(sql).get(bindable(parameters)) as SqlRow | undefined,
    all: (sql, parameters = []) => lists(sql).all(bindable(parameters)) as SqlRow[],
    each: (sql, parameters = []) => iterated(sql).iterate(bindable(parameters)) as Iterable<SqlRow>,
    run: (sql, parameters) => Number(runs(sql).run(bindable(parameters)).changes),
    close: () => {
      try {
        if (access === 'write') database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // Another process uses the file, or the disk is full; the rows are as safe in the log.
      }
      database.close()
      held++
      young++
      collected.register(database, undefined)
    },
  }
}

function bindable(parameters: readonly unknown[]): readonly unknown[] {
  for (const value of parameters) if (typeof value === 'boolean') throw new TypeError('SQLite cannot bind a boolean.')
  return parameters
}

function statements<S>(prepare: (sql: string) => S): (sql: string) => S {
  const prepared = new Map<string, S>()
  return (sql) => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
}

/** Turns a failure of SQLite or of the file system into an error for the user of the store. */
export function storeError(cause: unknown, path: string): Error {
  if (isLegateError(cause)) return cause
  const said = messageOf(cause)
  const details = { path }
  switch (kindOf(cause)) {
    case 'busy':
      return new StoreError('store_busy', busyMessage(path), { cause, details })
    case 'full':
      return new StoreError('store_full', `The disk of ${path} is full; nothing was written. Make room and go on.`, {
        cause,
        details,
      })
    case 'readonly': {
      const advice =
        'The store must be able to write the file and its folder: change their permissions, or name another path.'
      return new StoreError('store_readonly', `Cannot write ${path} (${said}). ${advice}`, { cause, details })
    }
    case 'foreign':
      return new StoreError('store_foreign_file', foreignMessage(path, 'is not a SQLite database'), { cause, details })
    case 'corrupt':
      return new StoreError('store', `The database ${path} is damaged (${said}). Restore it from a backup.`, {
        cause,
        details,
      })
    default:
      return new StoreError('store', `The database ${path} failed: ${said}`, { cause, details })
  }
}

export function busyMessage(path: string): string {
  return `Another process has kept ${path} locked for too long. Try again, or look what holds it.`
}

export function foreignMessage(path: string, why: string): string {
  return `The file ${path} ${why}; it was left as it is. Name another path for the store.`
}

type Kind = 'busy' | 'full' | 'readonly' | 'foreign' | 'corrupt' | 'other'

/** The disk is full when the shared index of the write-ahead log cannot grow. */
const sharedMemorySize = RESULT.io | (19 << 8)

const kinds: ReadonlyMap<number | string, Kind> = new Map<number | string, Kind>([
  [RESULT.busy, 'busy'],
  [RESULT.locked, 'busy'],
  [RESULT.full, 'full'],
  [RESULT.readonly, 'readonly'],
  [RESULT.notADatabase, 'foreign'],
  [RESULT.corrupt, 'corrupt'],
  [sharedMemorySize, 'full'],
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['EACCES', 'readonly'],
  ['EPERM', 'readonly'],
  ['EROFS', 'readonly'],
])

function kindOf(cause: unknown): Kind {
  const code = resultCode(cause)
  if (code !== 0) return kinds.get(code) ?? kinds.get(code & 0xff) ?? 'other'
  const name = typeof cause === 'object' && cause !== null ? Reflect.get(cause, 'code') : undefined
  return (typeof name === 'string' ? kinds.get(name) : undefined) ?? 'other'
}

/**
 * Tries again while another process holds the file, up to a limit. Nothing else runs meanwhile, so this is for rare and short
 * steps: turning a new file to its log, or mending the log of a killed process.
 */
export function whileBusy<T>(busyMs: number, attempt: () => T): T {
  let giveUpAt = 0
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (giveUpAt === 0) giveUpAt = performance.now() + busyMs
      if (performance.now() >= giveUpAt) throw error
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + Math.random() * 20)
  }
}

export function isBusy(error: unknown): boolean {
  return (resultCode(error) & 0xff) === RESULT.busy
}

/** Runs a query on a snapshot: later writes of others do not show. */
export function atOneMoment<T>(db: Connection, query: () => T): T {
  db.exec('BEGIN')
  try {
    return query()
  } finally {
    db.exec('COMMIT')
  }
}
