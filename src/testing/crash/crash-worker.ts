import { basename, join } from 'node:path'
import { parseOwnJson } from '../../core/base/json.ts'
import { code, readOptions, record } from '../../core/base/options.ts'
import type { RuntimeOptions } from '../../core/runtime/options.ts'
import { createRuntime, type Runtime } from '../../core/runtime/runtime.ts'
import type { Store } from '../../core/store/store.ts'
import { jsonStore } from '../../stores/json/index.ts'
import { isPostgresUrl, postgresStore } from '../../stores/postgres/index.ts'
import { sqliteStore } from '../../stores/sqlite/index.ts'
import {
  type Failpoints,
  failpoints,
  type KillPoint,
  withAcknowledgements,
  withFailpoints,
  writeLine,
} from './failpoints.ts'
import { countOutside } from './outside-counter.ts'

/** The program of a worker process. The file that calls `crashWorker` is the program of a crash test. */
export interface CrashProgram {
  readonly options: Omit<RuntimeOptions, 'store'>
  /**
   * Called in every worker, new or restarted, after `resume`: reads the rows, does the remaining work, and returns when
   * all of it is done. Then the runtime is closed, and the process must end by itself.
   */
  drive(worker: CrashWorker): Promise<void>
}

export interface CrashWorker {
  readonly runtime: Runtime
  readonly store: Store
}

/** The orders for a new worker; its only argument. */
export interface WorkerOrders {
  readonly folder: string
  readonly role: string
  readonly counter: string | null
  readonly killAt: KillPoint | null
  readonly store: CrashStore
}

/** The kind of store that workers use, or the address of a PostgreSQL database, where each case has a schema of its own. */
export type CrashStore = 'sqlite' | 'json' | `postgres://${string}`

/** Where the rows of a case are: a file or a folder in its folder, or a schema that has its name. */
export function rowsOf({ folder, store }: Pick<WorkerOrders, 'folder' | 'store'>): string {
  if (store === 'sqlite') return join(folder, 'rows.db')
  return store === 'json' ? join(folder, 'rows') : schemaOf(store, basename(folder))
}

function schemaOf(address: string, name: string): string {
  const url = new URL(address)
  url.searchParams.set('schema', name)
  return url.href
}

/** Runs a program as one of the processes of a crash test. */
export async function crashWorker(program: CrashProgram): Promise<void> {
  const { options, drive } = readOptions('crashWorker()', program, { options: record, drive: code })
  const store = withFailpoints(withAcknowledgements(openRows()), points())
  const runtime = createRuntime({ ...options, store })
  tellTest('ready')
  await runtime.resume()
  await drive({ runtime, store })
  await runtime.close()
}

function openRows(): Store {
  const place = rowsOf(orders())
  if (isPostgresUrl(place)) return postgresStore(place)
  return orders().store === 'sqlite' ? sqliteStore(place) : jsonStore({ folder: place, compactBytes: 20_000 })
}

/** Returns the role that the test gave this worker. */
export function workerRole(): string {
  return orders().role
}

/** Sends the test a text that it can wait for. */
export function tellTest(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Passes a point defined by the program, where the test can kill the worker. */
export function passPoint(point: string): void {
  points().pass(point)
}

/** Makes the outside counter count an effect of this worker. */
export async function countEffect(name: string, key: string): Promise<void> {
  const { counter, folder } = orders()
  if (counter === null) throw new Error('this test has no outside counter')
  await countOutside(counter, { group: folder, key, name })
}

let known: WorkerOrders | undefined

function orders(): WorkerOrders {
  known ??= parseOwnJson(process.argv[2] ?? '') as WorkerOrders
  return known
}

let passing: Failpoints | undefined

function points(): Failpoints {
  passing ??= failpoints({
    killAt: orders().killAt ?? undefined,
    passed: (point, hit) => writeLine({ type: 'pass', pid: process.pid, point, hit }),
  })
  return passing
}
