// DBOS in this process: launched for the workers of one queue, and to make its tables.
//
// Owns:      the one DBOS of the process, who takes its wakes, and the removal of wakes that are over.
// Called by: `engine/dbos`, when a worker starts and when the tables of DBOS are missing.
// Must stay true:
//   - A wake catches everything and is short: it looks at its tree, claims, hands over and returns.
//   - A launch succeeds as a whole, or leaves a DBOS that is shut down and no connection.
//   - One process at a time makes the tables: DBOS does not lock them.

import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { within } from '../../core/base/abort.ts'
import { isLegateError, messageOf, StoreError } from '../../core/base/error.ts'
import type { WakeTaker } from '../../core/store/store.ts'
import { newPool, type PostgresClient } from '../postgres/connection/driver.ts'
import { isLostWithin } from '../postgres/connection/failure.ts'
import { unescaped } from '../postgres/escape.ts'
import { APPLICATION, type DbosPlace, storeName, VERSION, WAKE } from './place.ts'

type Dbos = typeof import('@dbos-inc/dbos-sdk').DBOS

const POLL_MS = 50
/** Wakes that one process takes at once. They are short; what is above goes to other processes. */
const AT_ONCE = 64
/** How often wakes that are over are removed, and how many at a time. */
const TIDY_MS = 60_000
const PAGE = 1_000
/** A wake that takes longer was lost with its process. */
const LOST_MS = 60_000
/** How long a process waits for another one that makes the tables. */
const LOCK_MS = 60_000
const DRAIN_MS = 2_000
/** How long a launch may take that makes no tables, and one that makes them, before its connections are given up. */
const LAUNCH_MS = 15_000
const TABLES_MS = 60_000
const LEAST_MS = 5_000

/** DBOS is one per process. */
interface Launched {
  readonly key: string
  readonly dbos: Dbos
  readonly connections: Connections
  /** Takers, with the store whose wakes they take. */
  readonly takers: Map<WakeTaker, string>
  readonly stopTidying: () => Promise<void>
}

let launched: Launched | undefined
/** Launches and shutdowns come one after the other. */
let last: Promise<unknown> = Promise.resolve()

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const next = last.then(work, work)
  last = next.catch(() => undefined)
  return next
}

/** Gives the wakes of a queue to a taker. Returns a function that ends it. */
export async function listen(place: DbosPlace, taker: WakeTaker): Promise<() => Promise<void>> {
  await inTurn(async () => {
    const key = JSON.stringify([place.url ?? 'pool', place.tables, place.queue])
    launched ??= await launchFor(place, key)
    if (launched.key !== key) throw new StoreError('store', ONE_QUEUE)
    launched.takers.set(taker, storeName(place))
  })
  return () => inTurn(() => leave(taker))
}

const ONE_QUEUE =
  'DBOS is one per process, and takes wakes of one queue. Run the workers of another store or queue in another process.'

/** Makes the tables of DBOS, or brings them to its version. */
export async function makeTables(place: DbosPlace): Promise<void> {
  await inTurn(async () => {
    const dbos = await loadDbos()
    requireNone(dbos)
    await patiently(place, () => locked(place, async () => end(dbos, await begin(dbos, place, WITH_TABLES))))
  })
}

async function leave(taker: WakeTaker): Promise<void> {
  if (launched?.takers.delete(taker) !== true || launched.takers.size > 0) return
  const { dbos, connections, stopTidying } = launched
  launched = undefined
  const stopping = stopTidying()
  await end(dbos, connections)
  await stopping
}

/** A query whose answer will never come is given up with its connection. */
async function end(dbos: Dbos, connections: Connections): Promise<void> {
  const ending = dbos.shutdown({ workflowCompletionTimeoutMS: DRAIN_MS }).catch(nothing)
  await within(ending, 2 * DRAIN_MS)
  await connections.end()
  await within(ending, DRAIN_MS)
}

async function launchFor(place: DbosPlace, key: string): Promise<Launched> {
  const dbos = await loadDbos()
  requireNone(dbos)
  register(dbos)
  const connections = await patiently(place, () => launchOnce(dbos, place))
  return { key, dbos, connections, takers: new Map(), stopTidying: tidying(dbos, place) }
}

function requireNone(dbos: Dbos): void {
  if (dbos.isInitialized()) throw new StoreError('store', launched === undefined ? LAUNCHED : ONE_QUEUE)
}

const LAUNCHED =
  'This program has launched DBOS itself, and DBOS is one per process. Run the workers of Legate in a process of their own: legate worker --queue.'

async function launchOnce(dbos: Dbos, place: DbosPlace): Promise<Connections> {
  const limits = { workerConcurrency: AT_ONCE, minPollingIntervalMs: POLL_MS }
  const after = () => dbos.registerQueue(place.queue, { ...limits, onConflict: 'never_update' })
  try {
    return await begin(dbos, place, { runMigrations: false, after })
  } catch (error) {
    if (isLostWithin(error)) throw error
    // The tables are missing, or of an older version of DBOS.
    return locked(place, () => begin(dbos, place, { ...WITH_TABLES, after }))
  }
}

/** Tries again while the database does not answer, as long as the store waits for it. */
async function patiently<T>(place: DbosPlace, launch: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + place.busyMs
  for (let tries = 0; ; tries++) {
    try {
      return await launch()
    } catch (error) {
      if (!isLostWithin(error) || performance.now() >= giveUpAt) throw notLaunched(place, error)
      await sleep(Math.min(1_000, 20 * 2 ** tries))
    }
  }
}

function notLaunched({ tables }: DbosPlace, error: unknown): Error {
  if (isLegateError(error)) return error as Error
  const what = `DBOS does not start on the schema ${tables}`
  const said = messageOf(error)
  if (!isLostWithin(error)) return new StoreError('store', `${what}: ${said}`, { cause: error })
  const message = `${what}: the database does not answer (${said}). Check that it runs and can be reached.`
  return new StoreError('store_busy', message, { cause: error })
}

interface Beginning {
  readonly runMigrations: boolean
  /** The parts of a launch while DBOS runs. */
  readonly after?: () => Promise<unknown>
}

const WITH_TABLES: Beginning = { runMigrations: true }

/** Launches DBOS with connections of its own. Where that fails, it is shut down and they are ended. */
async function begin(dbos: Dbos, place: DbosPlace, { runMigrations, after }: Beginning): Promise<Connections> {
  const connections = await connectionsAt(place)
  dbos.setConfig({
    name: APPLICATION,
    applicationVersion: VERSION,
    executorID: `${hostname()}-${process.pid}-${randomUUID()}`,
    systemDatabasePool: connections.pool as NonNullable<Parameters<Dbos['setConfig']>[0]['systemDatabasePool']>,
    systemDatabaseSchemaName: place.tables,
    useListenNotify: false,
    listenQueues: [place.queue],
    logger: SILENT,
    runMigrations,
  })
  const launching = dbos.launch().then(after)
  try {
    const mostMs = runMigrations ? TABLES_MS : Math.min(LAUNCH_MS, Math.max(LEAST_MS, place.busyMs))
    const isLaunched = await within(
      launching.then(() => true),
      mostMs,
    )
    if (isLaunched !== true) throw new Error(`timeout: no answer in ${mostMs / 1_000} s`)
    return connections
  } catch (error) {
    launching.catch(nothing)
    await connections.end()
    await end(dbos, connections)
    throw error
  }
}

const nothing = (): void => undefined
/** Errors of DBOS delay wakes, and the sweep finds their work: rows say how a run is. */
const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/**
 * Holds the lock of the tables meanwhile. It is tried for again and again: a statement that waits for it would be waited for by
 * the indexes that DBOS makes.
 */
async function locked<T>(place: DbosPlace, work: () => Promise<T>): Promise<T> {
  const name = [`legate dbos ${place.tables}`]
  return place.session(async (query) => {
    const giveUpAt = performance.now() + LOCK_MS
    while ((await query('SELECT pg_try_advisory_lock(hashtext($1))', name))[0]?.[0] !== true) {
      if (performance.now() > giveUpAt) throw new StoreError('store_busy', lockedFor(place))
      await sleep(100)
    }
    try {
      return await work()
    } finally {
      await query('SELECT pg_advisory_unlock(hashtext($1))', name)
    }
  })
}

function lockedFor({ tables }: DbosPlace): string {
  return `Another process has been making the tables of DBOS in the schema ${tables} for a minute. Try again.`
}

let isRegistered = false

/** DBOS keeps what was registered when it is shut down. */
function register(dbos: Dbos): void {
  if (isRegistered) return
  isRegistered = true
  dbos.registerWorkflow(wake, { name: WAKE })
}

/** Offers a wake to each taker of this process until one has left nothing to do. */
async function wake(store: unknown, rootId: unknown, at: number | null): Promise<void> {
  // Rows of the queue lie in a database that others may write to.
  if (typeof store !== 'string' || typeof rootId !== 'string') return refuseWake()
  for (const [taker, own] of launched?.takers ?? []) {
    try {
      if (own === store && (await taker.wake(unescaped(rootId), at))) return
    } catch (error) {
      taker.report(error)
    }
  }
}

/** The sweep finds what it was about: nothing is lost with it. */
function refuseWake(): void {
  const message = `The queue of DBOS has a wake that no commit has left: it names no tree. Look who else writes to ${APPLICATION}.`
  const warning = new StoreError('store', message)
  for (const [taker] of launched?.takers ?? []) taker.report(warning)
}

async function loadDbos(): Promise<Dbos> {
  requireVersion(installedVersion())
  try {
    return (await import('@dbos-inc/dbos-sdk')).DBOS
  } catch (cause) {
    throw new StoreError('store', `Wakes through DBOS need its package: ${INSTALL}`, { cause })
  }
}

const INSTALL = 'npm install @dbos-inc/dbos-sdk@~5.3'

/** Refuses another version than the one whose function commits call. An unknown one is judged by its tables. */
export function requireVersion(found: string | undefined): void {
  if (found === undefined || /^5\.3\./.test(found)) return
  const message = `Wakes through DBOS need version 5.3 of its package, and ${found} is installed: ${INSTALL}`
  throw new StoreError('store', message)
}

/** Undefined where the package is missing, or a bundler has hidden it. */
function installedVersion(): string | undefined {
  try {
    const load = createRequire(import.meta.url)
    const main = load.resolve('@dbos-inc/dbos-sdk')
    return (load(main.replace(/dbos-sdk[\\/].*$/, 'dbos-sdk/package.json')) as { version?: string }).version
  } catch {
    return undefined
  }
}

/** Removes wakes that are over, now and then. Each process does so at moments of its own. */
function tidying(dbos: Dbos, place: DbosPlace): () => Promise<void> {
  const { keepMs } = place
  let working: Promise<void> = Promise.resolve()
  let last = Date.now()
  const everyMs = Math.min(TIDY_MS, Math.max(100, keepMs)) * (0.75 + Math.random() / 2)
  const tidy = async () => {
    const now = Date.now()
    await removeEnded(dbos, keepMs)
    for (const ageMs of [keepMs, 6 * keepMs]) {
      await removeNeedless(dbos, place, { startTime: moment(last - ageMs), endTime: moment(now - ageMs) })
    }
    last = now
  }
  const timer = setInterval(() => {
    working = working.then(tidy).catch(nothing)
  }, everyMs).unref()
  return () => {
    clearInterval(timer)
    return working
  }
}

const LIST = { workflowName: WAKE, limit: PAGE, loadOutput: false } as const

/** Ended wakes go, and those that a process had taken before it died. */
async function removeEnded(dbos: Dbos, keepMs: number): Promise<void> {
  const ended = { completedBefore: moment(Date.now() - keepMs) }
  const lost = { status: 'PENDING' as const, dequeuedBefore: moment(Date.now() - Math.max(keepMs, LOST_MS)) }
  for (const over of [ended, lost]) {
    for (let found = PAGE; found === PAGE; ) {
      const list = await dbos.listWorkflows({ ...LIST, ...over, loadInput: false })
      found = list.length
      if (found > 0) await dbos.deleteWorkflows(list.map(({ workflowID }) => workflowID))
    }
  }
}

/** Where nothing of its tree is open any more, as after most runs, a delayed wake need not come. Each is looked at twice. */
async function removeNeedless(
  dbos: Dbos,
  place: DbosPlace,
  made: { readonly startTime: string; readonly endTime: string },
): Promise<void> {
  for (let offset = 0, found = PAGE; found === PAGE; ) {
    const list = await dbos.listWorkflows({ ...LIST, ...made, status: 'DELAYED', offset, loadInput: true })
    found = list.length
    const own = list.filter(({ input }) => input?.[0] === storeName(place))
    const ended = await place.ended(own.map(({ input }) => String(input?.[1])))
    const needless = own.filter(({ input }) => ended.has(String(input?.[1])))
    if (needless.length > 0) await dbos.deleteWorkflows(needless.map(({ workflowID }) => workflowID))
    offset += found - needless.length
  }
}

function moment(at: number): string {
  return new Date(at).toISOString()
}

const MOST = 4
/** A transaction that its process does not go on with holds locks for so long. */
const IDLE_MS = 60_000

/** The connections that DBOS works with: the user's pool, or a pool of its own. */
export interface Connections {
  readonly pool: object
  /** Ends them, also those that may never answer again; twice does no harm. A user's pool stays as it is. */
  end(): Promise<void>
}

/**
 * The pool that DBOS would make for itself waits without end for a connection that the other side has forgotten: nobody could
 * give up a launch.
 */
async function connectionsAt({ url, pool }: DbosPlace): Promise<Connections> {
  if (pool !== undefined) return { pool, end: async () => undefined }
  const clients = new Set<PostgresClient>()
  const own = await newPool(url ?? '', MOST, {
    application_name: 'legate dbos',
    onConnect: async (client: PostgresClient) => {
      clients.add(client)
      await client.query({ text: `SET idle_in_transaction_session_timeout = ${IDLE_MS}` })
    },
  })
  own.on('error', () => undefined)
  own.on('remove', (client) => clients.delete(client))
  let ended: Promise<void> | undefined
  const end = () => {
    ended ??= own.end()
    for (const client of clients) client.connection?.stream?.destroy()
    return ended
  }
  return { pool: own, end }
}
