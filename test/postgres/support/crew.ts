import { setTimeout as sleep } from 'node:timers/promises'
import { CrashCase, type OutsideCounter, type WorkerExit, type WorkerGiven, type WorkerProcess } from 'legate/testing'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { unpackEvents } from '../../../src/core/store/codec/event-text.ts'
import { longText } from '../../../src/core/store/codec/short-text.ts'
import { brokenExits, leftBehind } from '../../../src/testing/crash/laws.ts'
import { withRows } from '../../../src/testing/crash/stored-rows.ts'
import { programFile } from '../../crash/support/program.ts'
import { CREW, type CrewRole } from './crew-role.ts'
import { type HistoryLine, type StoredCommit, wrongInHistory } from './history.ts'

type Address = `postgres://${string}`

/** What the processes of a case did, and all that is wrong with it. */
export interface CrewFindings {
  readonly trees: number
  readonly kills: number
  readonly acknowledged: number
  readonly reads: number
  readonly events: number
  readonly uncertain: number
  /** How long each cancelled tree took to end. */
  readonly cancels: readonly number[]
  readonly wrong: readonly string[]
}

/** Several processes of `programs/crew` on one database. */
export class CrewCase {
  readonly crash: CrashCase
  private readonly common: CrewRole
  private readonly workers: WorkerProcess[] = []

  constructor(options: { readonly counter: OutsideCounter; readonly url: string }, role: Partial<CrewRole> = {}) {
    const { counter, url } = options
    const program = programFile('crew')
    const limits = { timeoutMs: 3_600_000, maxWorkers: 100_000 }
    this.crash = new CrashCase({ program, counter, store: url as Address, ...limits })
    this.common = { ...CREW, ...role }
    // Also where the test has failed: its files stay then, its processes do not.
    onTestFinished(() => {
      for (const worker of this.workers) worker.signal('SIGKILL')
    })
  }

  /** Starts a process, which may reach the database by a way of its own. */
  start(role: Partial<CrewRole> = {}, port?: number): WorkerProcess {
    return this.begin(role, port === undefined ? {} : { store: this.by(port) })
  }

  /** Starts a process of a later version of the package. */
  startLater(program: string): WorkerProcess {
    return this.begin({}, { program })
  }

  private begin(role: Partial<CrewRole>, given: WorkerGiven): WorkerProcess {
    const worker = this.crash.start({ ...given, role: JSON.stringify({ ...this.common, ...role }) })
    this.workers.push(worker)
    return worker
  }

  /** Waits until so many processes say that they live. */
  async untilAlive(processes: number): Promise<void> {
    const count = () =>
      withSchema(this.crash.database, ({ client, schema }) => client.query(`SELECT id FROM ${schema}.engines`))
    // Before the first of them there is no table.
    const alive = async () => (await count().catch(() => undefined))?.rows.length ?? 0
    while ((await alive()) < processes) await sleep(50)
  }

  /** Waits until so many jobs have ended. A process that fails meanwhile ends the waiting. */
  async untilEnded(jobs: number, workers: readonly WorkerProcess[]): Promise<void> {
    const failed = new Set<WorkerExit>()
    for (const worker of workers) {
      worker.ended.then(
        (exit) => exit.code !== 0 && failed.add(exit),
        () => undefined,
      )
    }
    while (this.ended() < jobs) {
      await sleep(20)
      for (const { pid, errors } of failed) throw new Error(`the worker ${pid} has failed: ${errors}`)
    }
  }

  /** How many jobs somebody has seen end. */
  ended(): number {
    return new Set(this.crash.evidence().lines.flatMap((line) => endedRoot(line) ?? [])).size
  }

  /** Waits until all of them have ended by themselves, and looks at everything. */
  async check(workers: readonly WorkerProcess[]): Promise<CrewFindings> {
    for (const worker of workers) await this.crash.ended(worker)
    const { folder, database, lines, exits, effects } = this.crash.evidence()
    const left = leftBehind({ folder, database })
    const chain = await readChain(database)
    return withRows(database, async ({ trees, wrongStore, leftOpen }) => {
      const wrong = [
        ...wrongInHistory({ lines: lines as readonly HistoryLine[], chain, trees, effects: effects ?? [] }),
        ...(await wrongStore()),
        ...(await leftOpen()),
        ...left,
        ...brokenExits(exits),
        ...(trees.length === this.common.jobs ? [] : [`${trees.length} trees for ${this.common.jobs} jobs`]),
      ]
      const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
      return {
        trees: trees.length,
        kills: exits.filter(({ signal }) => signal === 'SIGKILL').length,
        ...countLines(lines as readonly HistoryLine[]),
        events: trees.reduce((sum, { events }) => sum + events.length, 0),
        uncertain: nodes.filter(({ state }) => state === 'uncertain').length,
        wrong,
      }
    })
  }

  private by(port: number): Address {
    const url = new URL(this.crash.database)
    url.port = String(port)
    return url.href as Address
  }
}

/** The root whose end a commit told. */
function endedRoot(line: HistoryLine): string | undefined {
  if (line.type !== 'commit' || line.rootId === null) return undefined
  const { rootId, events } = line
  return events.some(({ body, path }) => body.type === 'run-end' && path.length === 1) ? rootId : undefined
}

function countLines(lines: readonly HistoryLine[]): Pick<CrewFindings, 'acknowledged' | 'reads' | 'cancels'> {
  return {
    acknowledged: lines.filter((line) => line.type === 'commit' && line.rootId !== null).length,
    reads: lines.filter(({ type }) => type === 'read').length,
    cancels: lines.flatMap((line) => (line.type === 'cancel' ? [line.ms] : [])),
  }
}

/** The chains of all trees, from the table itself. */
async function readChain(database: string): Promise<StoredCommit[]> {
  return withSchema(database, async ({ client, schema }) => {
    const found = await client.query<Omit<StoredCommit, 'count'> & { readonly events: string }>(
      `SELECT ${schema}.id_text(root_id) AS "rootId", c.n, id, kind, c.seq, events
      FROM ${schema}.commits c JOIN ${schema}.trees USING (t) ORDER BY root_id, n`,
    )
    return found.rows.map(({ events, ...commit }) => ({
      ...commit,
      count: unpackEvents(longText(events, [commit.rootId]), commit.seq).length,
    }))
  })
}

/** Looks into the tables themselves. */
async function withSchema<T>(
  database: string,
  use: (tables: { readonly client: pg.Client; readonly schema: string }) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  try {
    return await use({ client, schema: client.escapeIdentifier(new URL(database).searchParams.get('schema') ?? '') })
  } finally {
    await client.end()
  }
}

/** The findings in one line, without what is wrong. */
export function told({ trees, acknowledged, reads, events, uncertain }: CrewFindings): string {
  const counts = [trees, acknowledged, reads, events].map((count) => count.toLocaleString('en-US'))
  const [runs, commits, read, stored] = counts
  return `${runs} trees, ${commits} acknowledged commits, ${read} reads, ${stored} events, 0 lost, 0 doubled, 0 left open, ${uncertain} uncertain (all reported)`
}

/** The value below which this share of the times lies. */
export function quantile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
}
