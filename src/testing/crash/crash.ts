// Crash tests: runs a program in worker processes, kills them as `kill -9` does, restarts them, and checks the rows.
//
// Owns: one case, with its folder, its workers and its evidence.
// Called by: crash tests; `aftermath` judges the evidence by the laws L1 to L9 of `laws.ts`.
//
// Must stay true:
// - Files are judged on a copy while workers are still to come, and a database is only read: the next worker must find them untouched.
// - The log of acknowledgements survives the kill, because the test holds the file open.
// - No worker outlives the test process.

import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { InputError, messageOf } from '../../core/base/error.ts'
import {
  int,
  listOf,
  mostAlike,
  type OptionRule,
  type OptionRules,
  positive,
  readOptions,
  record,
  text,
} from '../../core/base/options.ts'
import { isPostgresUrl } from '../../stores/postgres/index.ts'
import { type Aftermath, aftermath, checkStanding, type Evidence } from './aftermath.ts'
import { type CrashStore, rowsOf, type WorkerOrders } from './crash-worker.ts'
import { FAILPOINTS, type KillPoint, LOG, readLines } from './failpoints.ts'
import type { OutsideCounter } from './outside-counter.ts'
import { dropRows } from './stored-rows.ts'
import { type WorkerExit, WorkerProcess } from './worker-process.ts'

/** When to kill a worker: at a point it passes, or some time after it has started or become ready. */
export type Kill = KillPoint | KillMoment

export interface KillMoment {
  /** How long after that moment it is killed. */
  readonly afterMs: number
  /** The moment from which the time counts. Default: `ready`. */
  readonly from?: 'start' | 'ready'
}

export interface CrashOptions {
  /** A file that Node can run and that calls `crashWorker`. */
  readonly program: string
  /** A counter whose effects are checked too (L5). */
  readonly counter?: OutsideCounter
  /** The role that the program is started in: `workerRole()` gives it there. */
  readonly role?: string
  /**
   * The store of the workers: `sqlite` (the default), `json`, which only one worker at a time may have open, or the address of a
   * PostgreSQL database. There each case makes a schema of its own, and drops it when nothing was wrong.
   */
  readonly store?: CrashStore
  /** Flags of Node for the workers. */
  readonly nodeOptions?: readonly string[]
  /** How long one worker may live. Default 30 s. */
  readonly timeoutMs?: number
  /** How many workers may be started in all. Default 20. */
  readonly maxWorkers?: number
}

function isPlace(value: unknown): boolean {
  return value === 'sqlite' || value === 'json' || (typeof value === 'string' && isPostgresUrl(value))
}

const kindOrAddress: OptionRule = (value) =>
  isPlace(value) ? null : '"sqlite", "json" or the address of a PostgreSQL database'

const CRASH: OptionRules<CrashOptions> = {
  program: text,
  counter: record,
  role: text,
  store: kindOrAddress,
  nodeOptions: listOf(text, 'flags'),
  timeoutMs: positive,
  maxWorkers: int(1),
}

/**
 * Runs a program in a worker process, kills and restarts it once per kill, then restarts it until a worker ends by
 * itself. After that nothing may be lost, doubled or left open. Throws with a list of all violations.
 */
export async function crash(options: CrashOptions, kills: readonly Kill[]): Promise<Aftermath> {
  for (const kill of kills) if ('point' in kill) readOptions('crash(): a kill', kill, POINT)
  const test = new CrashCase(options)
  for (const kill of kills) if (!(await test.runAndKill(kill))) break
  await test.runToEnd()
  await test.checkPassed(kills)
  return test.conclude()
}

const POINT: OptionRules<KillPoint> = { point: text, hit: int(1) }

/** The values that one worker gets beside the options of its case. */
export interface WorkerGiven {
  /** The point at which it is killed. */
  readonly killAt?: KillPoint
  /** Its role. Default: the role of the case. */
  readonly role?: string
  /** Another address of the same database: a way to it that the test can cut. */
  readonly store?: `postgres://${string}`
  /** Another program on the same rows, such as the next version of yours. Default: the program of the case. */
  readonly program?: string
}

/** One database and its workers, one after the other or several at once. */
export class CrashCase {
  readonly folder: string
  private readonly options: CrashOptions
  private readonly workers: WorkerProcess[] = []
  private readonly exits: WorkerExit[] = []

  constructor(options: CrashOptions) {
    this.options = readOptions('crash()', options, CRASH)
    if (!existsSync(options.program)) {
      throw new InputError('invalid_input', `crash(): there is no program ${JSON.stringify(options.program)}.`)
    }
    this.folder = mkdtempSync(join(tmpdir(), 'legate-crash-'))
  }

  get database(): string {
    return rowsOf({ folder: this.folder, store: this.options.store ?? 'sqlite' })
  }

  /** Starts a worker. */
  start(given: WorkerGiven = {}): WorkerProcess {
    const { program, counter, nodeOptions = [], timeoutMs = 30_000, maxWorkers = 20 } = this.options
    if (this.workers.length >= maxWorkers)
      throw this.failure(`${maxWorkers} workers were started and none came to an end`)
    const orders: WorkerOrders = {
      folder: this.folder,
      role: given.role ?? this.options.role ?? '',
      counter: counter?.address ?? null,
      killAt: given.killAt ?? null,
      store: given.store ?? this.options.store ?? 'sqlite',
    }
    const argument = JSON.stringify(orders)
    const start = { program: given.program ?? program, argument, log: this.log, nodeOptions, timeoutMs }
    const worker = new WorkerProcess(start)
    this.workers.push(worker)
    return worker
  }

  /** Returns true if the worker was killed, false if it ended by itself before. */
  async runAndKill(kill: Kill): Promise<boolean> {
    const { signal } =
      'point' in kill ? await this.ended(this.start({ killAt: kill })) : await this.kill(this.start(), kill)
    await this.checkStanding()
    return signal === 'SIGKILL'
  }

  /** Kills a worker at a moment; it may have ended by itself before. */
  async kill(worker: WorkerProcess, { afterMs, from = 'ready' }: KillMoment): Promise<WorkerExit> {
    if (from === 'ready') await worker.hears('ready')
    await sleep(afterMs)
    worker.signal('SIGKILL')
    return this.ended(worker)
  }

  /** Checks the rows that killed workers left. Files are copied first: the next worker must find them untouched. */
  async checkStanding(): Promise<void> {
    const { database } = this
    const lines = readLines(this.log)
    if (isPostgresUrl(database)) return this.named(() => checkStanding({ database, lines }))
    if (!existsSync(database)) return
    const copy = mkdtempSync(join(tmpdir(), 'legate-crash-copy-'))
    try {
      cpSync(this.folder, copy, { recursive: true })
      await this.named(() => checkStanding({ database: join(copy, basename(database)), lines }))
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }

  /** Starts workers until one ends by itself. */
  async runToEnd(): Promise<void> {
    for (;;) {
      const { signal } = await this.ended(this.start())
      if (signal === null) return
    }
  }

  /** Throws for a point that does not exist: no failpoint, and nothing that a worker passed. It would kill nobody. */
  async checkPassed(kills: readonly Kill[]): Promise<void> {
    const passed = readLines(this.log).flatMap((line) => (line.type === 'pass' ? line.point : []))
    const there = new Set<string>([...FAILPOINTS, ...passed])
    const [point] = kills.flatMap((kill) => ('point' in kill && !there.has(kill.point) ? kill.point : []))
    if (point === undefined) return
    await this.drop()
    const alike = mostAlike(point, [...there], 5).join(', ')
    throw new InputError('invalid_input', `crash(): no worker passes a point "${point}". There are ${alike}.`)
  }

  async ended(worker: WorkerProcess): Promise<WorkerExit> {
    const exit = await worker.ended
    if (!this.exits.some(({ pid }) => pid === exit.pid)) this.exits.push(exit)
    if (exit.isOverdue) throw this.failure(`the worker ${exit.pid} did not end in time\n${exit.errors}`)
    return exit
  }

  /** Collects the evidence. */
  evidence(): Evidence {
    const { counter } = this.options
    return {
      folder: this.folder,
      database: this.database,
      lines: readLines(this.log),
      exits: this.exits,
      effects: counter?.effects(this.folder) ?? null,
    }
  }

  /** Checks everything after all workers are gone, and removes the case. */
  async conclude(): Promise<Aftermath> {
    const found = await aftermath(this.evidence())
    await this.drop()
    return found
  }

  /** Kills running workers and removes the rows. */
  async drop(): Promise<void> {
    for (const worker of this.workers) worker.signal('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
    await dropRows(this.database)
  }

  private get log(): string {
    return join(this.folder, LOG)
  }

  private async named(check: () => Promise<void>): Promise<void> {
    try {
      await check()
    } catch (error) {
      throw this.failure(messageOf(error))
    }
  }

  private failure(message: string): Error {
    return new Error(`${message}. Its files are in ${this.folder}.`)
  }
}
