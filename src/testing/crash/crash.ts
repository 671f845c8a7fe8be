import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../base/error.ts'
import { type Aftermath, aftermath, checkStanding, type Evidence } from './aftermath.ts'
import { type CrashStore, ROWS, type WorkerOrders } from './crash-worker.ts'
import { type KillPoint, LOG, readLines } from './failpoints.ts'
import type { OutsideCounter } from './outside-counter.ts'
import { type WorkerExit, WorkerProcess } from './worker-process.ts'

/** When a worker is killed: at a point it passes, or so long after it was started, or ready to work. */
export type Kill = KillPoint | KillMoment

export interface KillMoment {
  /** How long after that moment it is killed. */
  readonly afterMs: number
  /** Default: `ready`. */
  readonly from?: 'start' | 'ready'
}

export interface CrashOptions {
  /** A file that Node can run and that calls `crashWorker`. */
  readonly program: string
  /** What the outside counter counted is checked too (L5). */
  readonly counter?: OutsideCounter
  /** The role that the program is started in: `workerRole()` gives it there. */
  readonly role?: string
  /** What the workers keep their rows in. Default: `sqlite`. One worker at a time may have a `json` store open. */
  readonly store?: CrashStore
  /** Flags of Node for the workers. */
  readonly nodeOptions?: readonly string[]
  /** How long one worker may live. Default 30 s. */
  readonly timeoutMs?: number
  /** How often a worker may be started in all. Default 20. */
  readonly maxWorkers?: number
}

/**
 * Runs a program in a worker process, kills it, starts it again, once per kill, and then until a worker has ended by
 * itself; then nothing may be lost, doubled or left open. Throws with everything that is.
 */
export async function crash(options: CrashOptions, kills: readonly Kill[]): Promise<Aftermath> {
  const test = new CrashCase(options)
  for (const kill of kills) if (!(await test.runAndKill(kill))) break
  await test.runToEnd()
  return test.conclude()
}

/** One database and the workers that run on it, one after the other or several at once. */
export class CrashCase {
  readonly folder: string
  private readonly options: CrashOptions
  private readonly workers: WorkerProcess[] = []
  private readonly exits: WorkerExit[] = []

  constructor(options: CrashOptions) {
    this.options = options
    this.folder = mkdtempSync(join(tmpdir(), 'legate-crash-'))
  }

  get database(): string {
    return join(this.folder, ROWS[this.options.store ?? 'sqlite'])
  }

  start(given: { readonly killAt?: KillPoint; readonly role?: string } = {}): WorkerProcess {
    const { program, counter, nodeOptions = [], timeoutMs = 30_000, maxWorkers = 20 } = this.options
    if (this.workers.length >= maxWorkers)
      throw this.failure(`${maxWorkers} workers were started and none came to an end`)
    const orders: WorkerOrders = {
      folder: this.folder,
      role: given.role ?? this.options.role ?? '',
      counter: counter?.address ?? null,
      killAt: given.killAt ?? null,
      store: this.options.store ?? 'sqlite',
    }
    const argument = JSON.stringify(orders)
    const worker = new WorkerProcess({ program, argument, log: this.log, nodeOptions, timeoutMs })
    this.workers.push(worker)
    return worker
  }

  /** True when the worker was killed; false when it ended by itself before that. */
  async runAndKill(kill: Kill): Promise<boolean> {
    const { signal } =
      'point' in kill ? await this.ended(this.start({ killAt: kill })) : await this.kill(this.start(), kill)
    this.checkStanding()
    return signal === 'SIGKILL'
  }

  /** Kills a worker at a moment; it may have ended by itself before. */
  async kill(worker: WorkerProcess, { afterMs, from = 'ready' }: KillMoment): Promise<WorkerExit> {
    if (from === 'ready') await worker.hears('ready')
    await sleep(afterMs)
    worker.signal('SIGKILL')
    return this.ended(worker)
  }

  /** Checks what the killed have left, on a copy: the next worker must find the files as they were. */
  checkStanding(): void {
    if (!existsSync(this.database)) return
    const copy = mkdtempSync(join(tmpdir(), 'legate-crash-copy-'))
    try {
      cpSync(this.folder, copy, { recursive: true })
      checkStanding({ database: join(copy, basename(this.database)), lines: readLines(this.log) })
    } catch (error) {
      throw this.failure(messageOf(error))
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }

  /** Starts workers until one has ended by itself. */
  async runToEnd(): Promise<void> {
    for (;;) {
      const { signal } = await this.ended(this.start())
      if (signal === null) return
    }
  }

  async ended(worker: WorkerProcess): Promise<WorkerExit> {
    const exit = await worker.ended
    if (!this.exits.some(({ pid }) => pid === exit.pid)) this.exits.push(exit)
    if (exit.isOverdue) throw this.failure(`the worker ${exit.pid} did not end in time\n${exit.errors}`)
    return exit
  }

  /** What there is to judge by. */
  evidence(): Evidence {
    const { counter } = this.options
    return {
      database: this.database,
      lines: readLines(this.log),
      exits: this.exits,
      effects: counter?.effects(this.folder) ?? null,
    }
  }

  /** Checks everything, when all workers are gone, and throws the case away. */
  conclude(): Aftermath {
    const found = aftermath(this.evidence())
    this.drop()
    return found
  }

  /** Kills what still runs and removes the files. */
  drop(): void {
    for (const worker of this.workers) worker.signal('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }

  private get log(): string {
    return join(this.folder, LOG)
  }

  private failure(message: string): Error {
    return new Error(`${message}. Its files are in ${this.folder}.`)
  }
}
