// Figures of the server in the text form of OpenMetrics.

import { performance } from 'node:perf_hooks'
import type { Runtime } from '../../index.ts'
import type { CourierCounts } from '../hooks/courier.ts'

/** The bounds of the times of requests, in seconds. */
const BOUNDS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]
const STATES = ['open', 'failed', 'uncertain'] as const
const MOST_COUNTED = 1_000
const UP_TO = `counted up to ${MOST_COUNTED}`

/** An answer that is counted. */
export interface CountedAnswer {
  readonly method: string
  /** The path of the table; empty where the request reached no route. */
  readonly route: string
  readonly status: number
  readonly ms: number
}

/** The figures of the page beside requests. */
export interface FigureSources {
  readonly runtime: Runtime
  readonly streams: number
  readonly courier: CourierCounts
  /** How many webhooks there are, and how many of them get nothing more. */
  readonly webhooks: () => Promise<{ readonly enabled: number; readonly disabled: number }>
  /** True where this process does the upkeep of the store. */
  readonly isUpkeeper: boolean
}

/** Counts answers by route and status, and their times. */
export class Counters {
  private readonly answers: Map<string, number> = new Map()
  private readonly buckets: number[] = BOUNDS.map(() => 0)
  private count = 0
  private seconds = 0

  answered({ method, route, status, ms }: CountedAnswer): void {
    const seconds = ms / 1_000
    // A method may be any word: only those of routes are told.
    const labels = `{method="${route === '' ? '' : method}",route="${route}",status="${status}"}`
    this.answers.set(labels, (this.answers.get(labels) ?? 0) + 1)
    this.count++
    this.seconds += seconds
    for (const [at, bound] of BOUNDS.entries()) if (seconds <= bound) this.buckets[at] = (this.buckets[at] ?? 0) + 1
  }

  /** The page. Figures of the store are read when somebody asks. */
  async page(sources: FigureSources): Promise<string> {
    return [
      ...counter('legate_http_answers', 'Answers by route and status.', [...this.answers].sort()),
      ...this.times(),
      ...gauge('legate_streams', 'Open streams.', [['', sources.streams]]),
      ...(await storeFigures(sources.runtime)),
      ...(await engineFigures(sources.runtime)),
      ...(await webhookFigures(sources)),
      ...processFigures(),
      '# EOF',
      '',
    ].join('\n')
  }

  private times(): readonly string[] {
    const name = 'legate_http_seconds'
    const buckets = BOUNDS.map((bound, at) => `${name}_bucket{le="${bound}"} ${this.buckets[at] ?? 0}`)
    return [
      `# TYPE ${name} histogram`,
      `# HELP ${name} Time until an answer begins.`,
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.count}`,
      `${name}_sum ${this.seconds}`,
      `${name}_count ${this.count}`,
    ]
  }
}

async function storeFigures({ store }: Runtime): Promise<string[]> {
  const began = performance.now()
  const turns = await store.openTurns(MOST_COUNTED)
  const readSeconds = (performance.now() - began) / 1_000
  const trees = await Promise.all(STATES.map((state) => store.roots({ state, limit: MOST_COUNTED })))
  const awaiting = await store.awaiting({ limit: MOST_COUNTED })
  const timed = await store.timed({ limit: MOST_COUNTED })
  return [
    ...gauge('legate_runs', `Runs of all depths that have not ended, by state, ${UP_TO}.`, [
      ['{state="running"}', turns.filter(({ state }) => state === 'running').length],
      ['{state="queued"}', turns.filter(({ state }) => state === 'queued').length],
    ]),
    ...gauge(
      'legate_trees',
      `Trees by the state of their latest run, ${UP_TO}.`,
      STATES.map((state, at) => [`{state="${state}"}`, trees[at]?.length ?? 0]),
    ),
    ...gauge('legate_approvals', `Nodes that wait for a person, ${UP_TO}.`, [['', awaiting.length]]),
    ...gauge('legate_nodes_timed', `Nodes that wait for a moment, ${UP_TO}.`, [['', timed.length]]),
    ...gauge('legate_store_read_seconds', 'Time of one read of the store, just now.', [['', readSeconds]]),
  ]
}

async function engineFigures(runtime: Runtime): Promise<string[]> {
  const { store } = runtime
  const processes = await runtime.processes()
  const claims = await Promise.all(processes.map(({ id }) => store.claimedBy(id, MOST_COUNTED)))
  const running = claims.reduce((sum, { length }) => sum + length, 0)
  const alive = processes.filter(({ isAlive }) => isAlive).length
  return [
    ...gauge('legate_processes', 'Processes that run nodes of the store.', [['', alive]]),
    ...gauge('legate_processes_gone', 'Processes that are gone and left work behind.', [
      ['', processes.filter(({ isAlive }, at) => !isAlive && claims[at]?.length !== 0).length],
    ]),
    ...gauge('legate_nodes_running', 'Nodes that a process works on.', [['', running]]),
  ]
}

async function webhookFigures({ webhooks, courier, isUpkeeper }: FigureSources): Promise<string[]> {
  const { enabled, disabled } = await webhooks()
  return [
    ...gauge('legate_webhooks', 'Webhooks.', [
      ['{state="enabled"}', enabled],
      ['{state="disabled"}', disabled],
    ]),
    ...gauge('legate_webhook_deliveries_waiting', 'Deliveries that this process is to make.', [['', courier.waiting]]),
    ...counter('legate_webhook_deliveries', 'Tries of this process to deliver, by what came of them.', [
      ['{result="delivered"}', courier.delivered],
      ['{result="failed"}', courier.failed],
    ]),
    ...counter('legate_webhooks_disabled', 'Webhooks that this process has disabled.', [['', courier.disabled]]),
    ...gauge('legate_upkeep', '1 where this process sends webhooks and deletes what is old.', [
      ['', Number(isUpkeeper)],
    ]),
  ]
}

function processFigures(): string[] {
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  const { utilization } = performance.eventLoopUtilization()
  return [
    ...gauge('process_resident_memory_bytes', 'Memory of the server.', [['', rss]]),
    ...gauge('legate_heap_used_bytes', 'Memory of its objects.', [['', heapUsed]]),
    ...counter('process_cpu_seconds', 'Time of processors that it used.', [['', (user + system) / 1e6]]),
    ...gauge('legate_event_loop_utilization', 'Share of its time in which it was busy, from 0 to 1.', [
      ['', utilization],
    ]),
    ...gauge('process_start_time_seconds', 'When it began.', [['', performance.timeOrigin / 1_000]]),
  ]
}

type Line = readonly [labels: string, value: number]

function counter(name: string, help: string, lines: readonly Line[]): readonly string[] {
  return [
    `# TYPE ${name} counter`,
    `# HELP ${name} ${help}`,
    ...lines.map(([labels, value]) => `${name}_total${labels} ${value}`),
  ]
}

function gauge(name: string, help: string, lines: readonly Line[]): readonly string[] {
  return [
    `# TYPE ${name} gauge`,
    `# HELP ${name} ${help}`,
    ...lines.map(([labels, value]) => `${name}${labels} ${value}`),
  ]
}
