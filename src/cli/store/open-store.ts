import { mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { stateFolder } from '../../core/base/system/user-folders.ts'
import { createRuntime, type Runtime, type RuntimeOptions, type Store } from '../../index.ts'
import { dbos } from '../../stores/dbos/index.ts'
import { jsonStore } from '../../stores/json/index.ts'
import { isPostgresUrl, postgresStore } from '../../stores/postgres/index.ts'
import { sqliteStore } from '../../stores/sqlite/index.ts'
import { type Call, CliError, EXIT, textOption } from '../command/command.ts'
import { setNextStore } from '../command/next-command.ts'
import { note } from '../terminal/output.ts'

/** A person waits for the answer, so reading soon reports that the file is locked. Writing may wait longer. */
const BUSY_MS = { read: 1_000, write: 10_000 } as const

type Use = keyof typeof BUSY_MS

/**
 * Chooses the store: `--store`, `$LEGATE_DB`, or the user's own. It is never one found in the working folder. A file by its path, or
 * a database by its address.
 */
export function storePath(call: Call): string {
  const option = textOption(call, 'store')
  if (option === '') throw new CliError('--store is empty: name the file of the store, or leave it out.', EXIT.usage)
  const named = option ?? call.env['LEGATE_DB'] ?? ''
  if (option === undefined && (call.env['LEGATE_SERVER'] ?? '') !== '') throw new CliError(NO_SERVER, EXIT.usage)
  if (named !== '') return wholePlace(named)
  return usualPath(call)
}

function usualPath({ env }: Pick<Call, 'env'>): string {
  return join(stateFolder(env), 'legate.db')
}

/**
 * Names the store in all commands that are shown, for a person who types them in another folder and another environment than this
 * program was started in. Only the user's own store needs no name.
 */
export function nameStore({ address }: Store): void {
  setNextStore(address === usualPath({ env: {} }) ? undefined : address)
}

/** A file or folder by its whole path, or a database by its address. */
export function wholePlace(named: string): string {
  return isPostgresUrl(named) ? named : resolve(asPath(named))
}

/** An address that is not one of PostgreSQL is a slip of the pen, not the name of a new file. */
function asPath(named: string): string {
  const [begin] = /^(?:[a-z][\w+.-]*:\/\/|postgres(?:ql)?:)/i.exec(named) ?? []
  if (begin === undefined) return named
  const message = `A store is a file, or an address that begins with postgres://, not with ${begin}.`
  throw new CliError(message, EXIT.usage)
}

/** The store as others may know it: an address without its password. */
export function shownStore(call: Call): string {
  return shownPlace(storePath(call))
}

/** A file by its path, or an address without its password. */
export function shownPlace(place: string): string {
  if (!isPostgresUrl(place) || !URL.canParse(place)) return place
  const url = new URL(place)
  const schema = url.searchParams.get('schema')
  url.password = ''
  // A query may have a password, too.
  url.search = schema === null ? '' : `?schema=${encodeURIComponent(schema)}`
  return url.href
}

/** Opens the store of a command; it must exist. Reading commands create and change nothing. */
export function openStore(call: Call, use: Use): Store {
  return openPlace(storePath(call), use)
}

/** Opens the store at this address or path, which must exist: PostgreSQL by its address, JSON by its folder, SQLite by its file. */
export function openPlace(path: string, use: Use): Store {
  if (isPostgresUrl(path)) return postgresStore({ url: path, busyMs: BUSY_MS[use], readOnly: use === 'read' })
  const stat = statOf(path)
  if (stat.isDirectory()) return openFolder(path)
  if (stat.size === 0) throw new CliError(`${path} is empty: no program has written a run to it yet. ${NAME_IT}`)
  return sqliteStore({ path, busyMs: BUSY_MS[use], readOnly: use === 'read' })
}

/**
 * Opens the store of a command that starts a run; creates it if needed. With `--queue`, DBOS brings work to the
 * processes on that queue.
 */
function openOrMakeStore(call: Call): Store {
  const path = storePath(call)
  const queue = textOption(call, 'queue')
  if (isPostgresUrl(path))
    return postgresStore({ url: path, ...(queue === undefined ? {} : { dispatch: dbos({ queue }) }) })
  if (queue !== undefined) throw new CliError(`--queue needs a store on PostgreSQL, and ${path} is a file.`, EXIT.usage)
  if (isFolder(path)) return openFolder(path)
  if (path === usualPath(call)) makeFolder(path)
  return sqliteStore({ path, busyMs: BUSY_MS.write })
}

/** Opens a store that a person may name first: PostgreSQL, a store of JSON where the name is that of a folder or ends in a slash, or SQLite. */
export function makePlace(path: string, named: string): Store {
  if (isPostgresUrl(path)) return postgresStore(path)
  if (named.endsWith('/') || isFolder(path)) return jsonStore(path)
  return sqliteStore(path)
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function openFolder(path: string): Store {
  if (statSync(join(path, 'store.journal'), { throwIfNoEntry: false }) !== undefined) return jsonStore(path)
  throw new CliError(`${path} is a folder without a store of JSON: name the file of the store in it.`)
}

/**
 * The store of a command whose module may bring its own, which `--store` replaces. Commands that are shown then name the store of the
 * module.
 */
export function storeOf(call: Call, own: Store | undefined, open: () => Store = () => openOrMakeStore(call)): Store {
  if (own === undefined || textOption(call, 'store') !== undefined) return open()
  setNextStore(own.address)
  return own
}

/** Makes the folder of the user's own store. Nobody makes a folder that a person named: it may be a slip of the pen. */
function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CliError(`Cannot create the folder of the store ${path}: ${why}. Name another with --store PATH.`)
  }
}

/** Tells a person who waits that a database does not answer: a store on PostgreSQL waits half a minute before it says so. */
export async function noteIfSlow<T>(call: Call, waited: Promise<T>): Promise<T> {
  const timer = setTimeout(() => note(`legate: Waiting for ${shownStore(call)}, which has not answered yet.`), SLOW_MS)
  try {
    return await waited
  } finally {
    clearTimeout(timer)
  }
}

const SLOW_MS = 3_000

/** A module that brings its store says there how work reaches its workers. */
export function refuseQueue(call: Call): void {
  if (textOption(call, 'queue') === undefined) return
  const message =
    'The module brings its own store: name the queue there, with postgresStore({ dispatch: dbos({ queue }) }).'
  throw new CliError(message, EXIT.usage)
}

/**
 * Calls `act` with a runtime on the command's store, then closes it; `make` creates a store that is not there. The runtime runs no nodes: otherwise runs of
 * files, which need no code, would start here, in the wrong folder, while the command lasts.
 */
export async function withRuntime<T>(
  call: Call,
  use: Use | 'make',
  act: (runtime: Runtime) => Promise<T>,
  options: Pick<RuntimeOptions, 'agents' | 'files'> = {},
): Promise<T> {
  const store = use === 'make' ? openOrMakeStore(call) : openStore(call, use)
  const runtime = createRuntime({ ...options, store, engine: { workers: 0 } })
  try {
    return await act(runtime)
  } finally {
    await runtime.close()
  }
}

const NO_SERVER =
  'This command works on a store of this machine, and LEGATE_SERVER names a server: unset it, or name a store with --store PATH.'

const NAME_IT = 'Name the store of your program with --store PATH or LEGATE_DB.'

function statOf(path: string): Stats {
  try {
    return statSync(path)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new CliError(`There is no store at ${path}. ${NAME_IT}`)
    if (code === 'EACCES') throw new CliError(`Permission denied: you may not read the folder of ${path}.`)
    throw new CliError(`Cannot read ${path}: ${message}`)
  }
}
