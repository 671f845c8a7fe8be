// DBOS in this process: launched for the workers of one queue, and to make its tables.
//
// Owns:      the one DBOS of the process, who takes its wakes, and the removal of wakes that are over.
// Called by: `engine/dbos`, when a worker starts and when the tables of DBOS are missing.
// Must stay true:
//   - A wake catches everything and is short: it looks at its tree, claims, hands over and returns.
//   - One process at a time makes the tables: DBOS does not lock them.

import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../base/error.ts'
import { unescaped } from '../../store/postgres/escape.ts'
import type { WakeTaker } from '../../store/store.ts'
import { APPLICATION, type DbosPlace, storeName, VERSION, WAKE } from './place.ts'

type Dbos = typeof import('@dbos-inc/dbos-sdk').DBOS

const POLL_MS = 50
/** Wakes that one process takes at once. They are short; what is above goes to other processes. */
const AT_ONCE = 64
const CONNECTIONS = 4
/** How often wakes that are over are removed, and how many at a time. */
const TIDY_MS = 60_000
const PAGE = 1_000
/** A wake that takes longer was lost with its process. */
const LOST_MS = 60_000
/** How long a process waits for another one that makes the tables. */
const LOCK_MS = 60_000
const DRAIN_MS = 2_000

/** DBOS is one per process. */
interface Launched {
  readonly key: string
  readonly dbos: Dbos
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
    if (dbos.isInitialized()) throw new StoreError('store', LAUNCHED)
    await locked(place, () => begin(dbos, place, { runMigrations: true }))
    await dbos.shutdown()
  })
}

async function leave(taker: WakeTaker): Promise<void> {
  if (launched?.takers.delete(taker) !== true || launched.takers.size > 0) return
  const { dbos, stopTidying } = launched
  launched = undefined
  await stopTidying()
  await dbos.shutdown({ workflowCompletionTimeoutMS: DRAIN_MS })
}

async function launchFor(place: DbosPlace, key: string): Promise<Launched> {
  const dbos = await loadDbos()
  if (dbos.isInitialized()) throw new StoreError('store', LAUNCHED)
  register(dbos)
  try {
    await begin(dbos, place, { runMigrations: false })
  } catch {
    // The tables are missing, or of an older version of DBOS.
    await locked(place, () => begin(dbos, place, { runMigrations: true }))
  }
  const limits = { workerConcurrency: AT_ONCE, minPollingIntervalMs: POLL_MS }
  await dbos.registerQueue(place.queue, { ...limits, onConflict: 'never_update' })
  return { key, dbos, takers: new Map(), stopTidying: tidying(dbos, place) }
}

const LAUNCHED =
  'This program has launched DBOS itself, and DBOS is one per process. Run the workers of Legate in a process of their own: legate worker --queue.'

async function begin(dbos: Dbos, place: DbosPlace, { runMigrations }: { runMigrations: boolean }): Promise<void> {
  dbos.setConfig({
    name: APPLICATION,
    applicationVersion: VERSION,
    executorID: `${hostname()}-${process.pid}-${randomUUID()}`,
    ...(place.pool === undefined
      ? { systemDatabaseUrl: withoutSchema(place.url ?? '') }
      : { systemDatabasePool: place.pool as NonNullable<Parameters<Dbos['setConfig']>[0]['systemDatabasePool']> }),
    systemDatabaseSchemaName: place.tables,
    systemDatabasePoolSize: CONNECTIONS,
    useListenNotify: false,
    listenQueues: [place.queue],
    logger: SILENT,
    runMigrations,
  })
  try {
    await dbos.launch()
  } catch (error) {
    await dbos.shutdown().catch(() => undefined)
    const said = error instanceof Error ? error.message : String(error)
    throw new StoreError('store', `DBOS does not start on the schema ${place.tables}: ${said}`, { cause: error })
  }
}

/** DBOS passes an address on to the driver, which does not know the schema of a store. */
function withoutSchema(address: string): string {
  if (!URL.canParse(address)) return address
  const url = new URL(address)
  url.searchParams.delete('schema')
  return url.href
}

const nothing = (): void => undefined
/** Errors of DBOS delay wakes, and the sweep finds their work: rows say how a run is. */
const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/**
 * Holds the lock of the tables meanwhile. It is tried for again and again: a statement that waits for it would be waited for by
 * the indexes that DBOS makes.
 */
async function locked(place: DbosPlace, work: () => Promise<void>): Promise<void> {
  const name = [`legate dbos ${place.tables}`]
  await place.session(async (query) => {
    const giveUpAt = performance.now() + LOCK_MS
    while ((await query('SELECT pg_try_advisory_lock(hashtext($1))', name))[0]?.[0] !== true) {
      if (performance.now() > giveUpAt) throw new StoreError('store_busy', lockedFor(place))
      await sleep(100)
    }
    try {
      await work()
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
async function wake(store: string, rootId: string, at: number | null): Promise<void> {
  for (const [taker, own] of launched?.takers ?? []) {
    try {
      if (own === store && (await taker.wake(unescaped(rootId), at))) return
    } catch (error) {
      taker.report(error)
    }
  }
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

interface MadeBetween {
  readonly startTime: string
  readonly endTime: string
}

/** Where nothing of its tree is open any more, as after most runs, a delayed wake need not come. Each is looked at twice. */
async function removeNeedless(dbos: Dbos, place: DbosPlace, made: MadeBetween): Promise<void> {
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
