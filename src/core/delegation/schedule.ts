import { type AnyAgent, isAgent } from '../agent/definition/agent.ts'
import { InputError, messageOf } from '../base/error.ts'
import {
  anything,
  flag,
  int,
  listOf,
  number,
  type OptionRule,
  type OptionRules,
  readOptions,
  text,
} from '../base/options.ts'
import { EVERYTHING, type Grant } from '../grant/grant.ts'
import { addUsage, NO_USAGE, type Usage } from '../graph/content.ts'
import type { RunOutcome } from '../graph/outcome.ts'

/** One task of a schedule. */
export interface ScheduledTask {
  /** Its name in results and in `dependencies` of others. */
  readonly id: string
  /** The prompt. A function receives the results of the dependencies, by id. */
  readonly prompt: string | ((results: ReadonlyMap<string, TaskResult>) => string)
  /** The agent that does the task. Default: the agent of the schedule. */
  readonly agent?: AnyAgent
  /** A few words for those who watch. */
  readonly description?: string
  /** Tasks with a higher priority start first. Default 0. */
  readonly priority?: number
  /** Ids of tasks that must complete before this one starts. */
  readonly dependencies?: readonly string[]
  /** How long one try may take. Default: that of the schedule. */
  readonly timeoutMs?: number
  /** Names of tools; `*` matches anything. */
  readonly allowedTools?: readonly string[]
  /** Names of tools that it may not use. */
  readonly deniedTools?: readonly string[]
}

export type TaskStatus = 'completed' | 'failed' | 'cancelled' | 'skipped'

export interface TaskResult {
  readonly id: string
  readonly status: TaskStatus
  readonly text: string
  /** Why the task did not complete; null if it did. */
  readonly reason: string | null
  /** How often the task was retried. */
  readonly retries: number
  readonly durationMs: number
  /** The outcome of the last try; null if the task never started. */
  readonly outcome: RunOutcome | null
}

const agentRule: OptionRule = (value) => (isAgent(value) ? null : 'an agent')

const TASK: OptionRules<ScheduledTask> = {
  id: anything,
  prompt: (value) =>
    typeof value === 'string' || typeof value === 'function' ? null : 'a text, or a function of the results',
  agent: agentRule,
  description: text,
  priority: number(),
  dependencies: listOf(text, 'ids'),
  timeoutMs: number(0),
  allowedTools: listOf(text, 'names'),
  deniedTools: listOf(text, 'names'),
}

/** Refuses tasks that could never all run: a duplicate id, an unknown dependency, or a cycle. */
function checkTasks(tasks: readonly ScheduledTask[]): void {
  const known = new Map<string, ScheduledTask>()
  for (const task of tasks) {
    if (typeof task.id !== 'string' || task.id === '') refuse('a task needs an id that is not empty.')
    if (known.has(task.id)) refuse(`two tasks have the id "${task.id}". Rename one.`)
    const where = `scheduleTasks(): the task "${task.id}"`
    if (readOptions(where, task, TASK).prompt === undefined)
      refuse(`the task "${task.id}" has no prompt: say what is asked.`)
    known.set(task.id, task)
  }
  for (const { id, dependencies = [] } of tasks) {
    const missing = dependencies.find((other) => !known.has(other))
    if (missing !== undefined) refuse(`the task "${id}" depends on "${missing}", which there is not.`)
  }
  const circle = circleIn(known)
  if (circle !== undefined) refuse(`tasks depend on each other in a circle: ${circle.join(' -> ')}.`)
}

/** Finds the ids of a cycle; the first one is repeated at the end. */
function circleIn(tasks: ReadonlyMap<string, ScheduledTask>): readonly string[] | undefined {
  const done = new Set<string>()
  for (const start of tasks.keys()) {
    const trail: string[] = []
    const open: { readonly id: string; readonly rest: string[] }[] = [entry(start, tasks)]
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      if (trail.length < open.length) trail.push(top.id)
      const next = top.rest.shift()
      if (next === undefined) {
        done.add(top.id)
        open.pop()
        trail.pop()
      } else if (trail.includes(next)) return [...trail.slice(trail.indexOf(next)), next]
      else if (!done.has(next)) open.push(entry(next, tasks))
    }
  }
  return undefined
}

function entry(id: string, tasks: ReadonlyMap<string, ScheduledTask>): { id: string; rest: string[] } {
  return { id, rest: [...(tasks.get(id)?.dependencies ?? [])] }
}

function refuse(message: string): never {
  throw new InputError('invalid_input', `scheduleTasks(): ${message}`)
}

export interface ScheduleOptions {
  /** The agent of tasks that name none. */
  readonly agent?: AnyAgent
  /** How many tasks run at the same time. Default 5. */
  readonly maxConcurrency?: number
  /** Time limit of each try. Default 5 minutes. */
  readonly timeoutMs?: number
  /** How often a task is retried after a failure that may pass. Default 3. */
  readonly maxRetries?: number
  /** Wait before a retry. Default 1 s. */
  readonly retryDelayMs?: number
  /** Skips all tasks that have not started once one fails. Default false. */
  readonly stopOnFirstError?: boolean
  /** Approximate length limit of the merged summary; four characters count as one token. Default 2000. */
  readonly summaryMaxTokens?: number
}

export interface ScheduleProgress {
  readonly total: number
  readonly completed: number
  readonly failed: number
  readonly running: number
  readonly pending: number
  readonly skipped: number
  readonly cancelled: number
  readonly currentTasks: readonly string[]
  /** The share of all tasks that have ended; it never decreases. */
  readonly percentage: number
}

export type ScheduleEvent =
  | { readonly type: 'started'; readonly total: number }
  | { readonly type: 'taskStarted'; readonly taskId: string }
  | { readonly type: 'taskCompleted'; readonly taskId: string; readonly durationMs: number }
  | { readonly type: 'taskFailed'; readonly taskId: string; readonly error: string }
  | { readonly type: 'taskRetry'; readonly taskId: string; readonly retryCount: number }
  | { readonly type: 'taskSkipped'; readonly taskId: string; readonly reason: string }
  | ({ readonly type: 'progress' } & ScheduleProgress)
  | { readonly type: 'completed'; readonly success: boolean; readonly durationMs: number }
  | { readonly type: 'cancelled' }

export interface ScheduleResult {
  /** Did every task complete? */
  readonly success: boolean
  /** The results in the order of the tasks. */
  readonly results: readonly TaskResult[]
  readonly counts: Readonly<Record<TaskResult['status'] | 'total', number>>
  readonly summary: string
  readonly usage: Usage
  readonly durationMs: number
}

/** A running schedule: its events and its result. */
export interface Schedule extends AsyncIterable<ScheduleEvent> {
  readonly result: Promise<ScheduleResult>
  /** Stops the running tasks and skips those that have not started. */
  cancel(reason?: string): void
}

/** The runtime that starts the agents. Inside a tool the tasks become children of the running call. */
export interface TaskRunner {
  run(
    agent: AnyAgent,
    input: never,
    options: { readonly grant?: Omit<Grant, 'delegate'> },
  ): { readonly result: Promise<RunOutcome>; cancel(reason?: string): Promise<void> }
}

/**
 * Runs tasks as far as their dependencies and the concurrency limit allow, the highest priority first. No task is lost:
 * one that depends on a failed task is skipped, with the reason. Throws an InputError for tasks that could never all
 * run. This process keeps the order; each task is a run of its own, recorded like any other.
 */
export function scheduleTasks(
  runtime: TaskRunner,
  tasks: readonly ScheduledTask[],
  options: ScheduleOptions = {},
): Schedule {
  readOptions('scheduleTasks(runtime, tasks, options)', options, OPTIONS)
  checkTasks(tasks)
  for (const { id, agent } of tasks) {
    if ((agent ?? options.agent) === undefined) {
      throw new InputError(
        'invalid_input',
        `scheduleTasks(): the task "${id}" has no agent: give it one, or { agent }.`,
      )
    }
  }
  const work = new RunningSchedule(runtime, tasks, options)
  const result = work.finish()
  // Callers that only read the events need not handle the rejection.
  result.catch(() => undefined)
  return { result, cancel: (reason) => work.cancel(reason), [Symbol.asyncIterator]: () => work.events() }
}

const OPTIONS: OptionRules<ScheduleOptions> = {
  agent: agentRule,
  maxConcurrency: int(1),
  timeoutMs: number(0),
  maxRetries: int(0),
  retryDelayMs: number(0),
  stopOnFirstError: flag,
  summaryMaxTokens: int(0),
}

const SECOND = 1_000
const DEFAULTS = { maxConcurrency: 5, timeoutMs: 300 * SECOND, maxRetries: 3, retryDelayMs: SECOND } as const

class RunningSchedule {
  private readonly runtime: TaskRunner
  private readonly tasks: readonly ScheduledTask[]
  private readonly options: ScheduleOptions & typeof DEFAULTS
  private readonly results: Map<string, TaskResult> = new Map()
  private readonly running: Map<string, { cancel(reason?: string): unknown }> = new Map()
  private readonly told: ScheduleEvent[] = []
  private readonly startedAt = performance.now()
  private waiting: (() => void)[] = []
  private over: ((result: ScheduleResult) => void) | undefined
  private cancelReason: string | undefined

  constructor(runtime: TaskRunner, tasks: readonly ScheduledTask[], options: ScheduleOptions) {
    this.runtime = runtime
    this.tasks = tasks
    this.options = { ...DEFAULTS, ...options } as ScheduleOptions & typeof DEFAULTS
  }

  finish(): Promise<ScheduleResult> {
    return new Promise((resolve) => {
      this.over = resolve
      this.emit({ type: 'started', total: this.tasks.length })
      this.look()
    })
  }

  cancel(reason = 'The schedule was cancelled.'): void {
    if (this.over === undefined || this.cancelReason !== undefined) return
    this.cancelReason = reason
    this.emit({ type: 'cancelled' })
    for (const { cancel } of this.running.values()) cancel(reason)
    this.look()
  }

  async *events(): AsyncGenerator<ScheduleEvent> {
    for (let at = 0; ; at++) {
      while (at >= this.told.length) {
        if (this.over === undefined) return
        await new Promise<void>((resolve) => this.waiting.push(resolve))
      }
      const event = this.told[at]
      if (event !== undefined) yield event
    }
  }

  /** Starts every task that may run, skips those that no longer can, and ends the schedule when none is left. */
  private look(): void {
    for (let skipped = this.skipOne(); skipped; skipped = this.skipOne());
    const ready = this.tasks.filter((task) => this.isReady(task)).sort(byPriority)
    for (const task of ready.slice(0, this.options.maxConcurrency - this.running.size)) this.start(task)
    if (this.results.size === this.tasks.length) this.end()
  }

  private isReady({ id, dependencies = [] }: ScheduledTask): boolean {
    if (this.running.has(id) || this.results.has(id)) return false
    return dependencies.every((other) => this.results.get(other)?.status === 'completed')
  }

  private skipOne(): boolean {
    const task = this.tasks.find(
      (one) => !this.running.has(one.id) && !this.results.has(one.id) && this.whyNot(one) !== undefined,
    )
    if (task === undefined) return false
    const reason = this.whyNot(task) ?? ''
    this.emit({ type: 'taskSkipped', taskId: task.id, reason })
    this.keep({ id: task.id, status: 'skipped', text: '', reason, retries: 0, durationMs: 0, outcome: null })
    return true
  }

  private whyNot({ dependencies = [] }: ScheduledTask): string | undefined {
    if (this.cancelReason !== undefined) return this.cancelReason
    const missed = dependencies.find((other) => (this.results.get(other)?.status ?? 'completed') !== 'completed')
    if (missed !== undefined) return `"${missed}", which it depends on, is ${this.results.get(missed)?.status}.`
    const failed = [...this.results.values()].find(({ status }) => status === 'failed')
    if (this.options.stopOnFirstError && failed !== undefined) return `"${failed.id}" failed.`
    return undefined
  }

  private start(task: ScheduledTask): void {
    this.running.set(task.id, { cancel: () => undefined })
    this.emit({ type: 'taskStarted', taskId: task.id })
    this.emit(this.progress())
    this.run(task).then(
      (result) => this.ended(result),
      () => undefined,
    )
  }

  private ended(result: TaskResult): void {
    const { id: taskId, status, durationMs, reason } = result
    this.running.delete(taskId)
    if (status === 'completed') this.emit({ type: 'taskCompleted', taskId, durationMs })
    else this.emit({ type: 'taskFailed', taskId, error: reason ?? status })
    this.keep(result)
    this.look()
  }

  /** Runs a task until it completes or no retry is left. Never rejects. */
  private async run(task: ScheduledTask): Promise<TaskResult> {
    const began = performance.now()
    for (let retries = 0; ; retries++) {
      const { outcome, reason } = await this.tryOnce(task)
      const result = {
        id: task.id,
        retries,
        durationMs: Math.round(performance.now() - began),
        outcome,
        text: outcome?.text ?? '',
      }
      if (outcome?.status === 'completed') return { ...result, status: 'completed', reason: null }
      if (this.cancelReason !== undefined) return { ...result, status: 'cancelled', reason: this.cancelReason }
      const mayPass = outcome?.retryable === true && outcome.status !== 'cancelled'
      if (!mayPass || retries >= this.options.maxRetries) return { ...result, status: 'failed', reason }
      this.emit({ type: 'taskRetry', taskId: task.id, retryCount: retries + 1 })
      await this.pause(task.id)
    }
  }

  private async tryOnce(task: ScheduledTask): Promise<{ outcome: RunOutcome | null; reason: string }> {
    const { prompt, agent = this.options.agent as AnyAgent, timeoutMs = this.options.timeoutMs } = task
    try {
      const input = typeof prompt === 'string' ? prompt : prompt(this.results)
      const run = this.runtime.run(agent, input as never, grantOf(task))
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        run.cancel(`The task took longer than ${timeoutMs} ms.`).catch(() => undefined)
      }, timeoutMs)
      this.running.set(task.id, { cancel: (reason) => run.cancel(reason).catch(() => undefined) })
      if (this.cancelReason !== undefined) run.cancel(this.cancelReason).catch(() => undefined)
      const outcome = await run.result.finally(() => clearTimeout(timer))
      const late = isLate && outcome.status === 'cancelled'
      return {
        outcome: late ? { ...outcome, status: 'timed_out' } : outcome,
        reason: outcome.error?.message ?? outcome.status,
      }
    } catch (error) {
      return { outcome: null, reason: messageOf(error) }
    }
  }

  private pause(taskId: string): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.options.retryDelayMs)
      this.running.set(taskId, {
        cancel: () => {
          clearTimeout(timer)
          resolve()
        },
      })
    })
  }

  private keep(result: TaskResult): void {
    this.results.set(result.id, result)
    this.emit(this.progress())
  }

  private progress(): ScheduleEvent {
    const counts = this.counts()
    const { total, completed, failed, skipped, cancelled } = counts
    const over = completed + failed + skipped + cancelled
    const running = this.running.size
    const percentage = total === 0 ? 100 : Math.round((100 * over) / total)
    const pending = total - over - running
    const currentTasks = [...this.running.keys()]
    return {
      type: 'progress',
      total,
      completed,
      failed,
      running,
      pending,
      skipped,
      cancelled,
      currentTasks,
      percentage,
    }
  }

  private counts(): ScheduleResult['counts'] {
    const counts = { total: this.tasks.length, completed: 0, failed: 0, cancelled: 0, skipped: 0 }
    for (const { status } of this.results.values()) counts[status]++
    return counts
  }

  private end(): void {
    const { over } = this
    if (over === undefined) return
    const results = this.tasks.flatMap(({ id }) => this.results.get(id) ?? [])
    const counts = this.counts()
    const success = counts.completed === counts.total
    const durationMs = Math.round(performance.now() - this.startedAt)
    const usage = results.reduce((sum, { outcome }) => addUsage(sum, outcome?.usage ?? NO_USAGE), NO_USAGE)
    const summary = mergedSummary(results, { tokens: this.options.summaryMaxTokens ?? 2_000, usage, durationMs })
    if (this.cancelReason === undefined) this.emit({ type: 'completed', success, durationMs })
    this.over = undefined
    over({ success, results, counts, summary, usage, durationMs })
    this.wake()
  }

  private emit(event: ScheduleEvent): void {
    this.told.push(event)
    this.wake()
  }

  private wake(): void {
    const { waiting } = this
    this.waiting = []
    for (const resume of waiting) resume()
  }
}

function byPriority(a: ScheduledTask, b: ScheduledTask): number {
  return (b.priority ?? 0) - (a.priority ?? 0)
}

/** Turns the tool lists of a task into a grant, which binds the run and everything below it. */
function grantOf({ allowedTools, deniedTools = [] }: ScheduledTask): { readonly grant?: Omit<Grant, 'delegate'> } {
  if (allowedTools === undefined && deniedTools.length === 0) return {}
  const others = EVERYTHING.filter((rule) => !rule.startsWith('tool:'))
  const allowed = (allowedTools ?? ['*']).map((name) => `tool:${name}`)
  return { grant: { use: [...others, ...allowed], deny: deniedTools.map((name) => `tool:${name}`) } }
}

/** Characters that count as one token, roughly. */
const TOKEN_CHARS = 4

/** Merges the results of all tasks into one text: each gets an equal share of the length and a line with its status. */
function mergedSummary(
  results: readonly TaskResult[],
  { tokens, usage, durationMs }: { readonly tokens: number; readonly usage: Usage; readonly durationMs: number },
): string {
  const statistics = statisticsOf(results, usage, durationMs)
  const room = Math.max(0, tokens * TOKEN_CHARS - statistics.length - 2)
  const share = results.length === 0 ? 0 : Math.floor(room / results.length) - 2
  const parts = results.map((result) => cut(partOf(result), Math.max(0, share)))
  return [...parts, statistics].filter((part) => part !== '').join('\n\n')
}

function partOf({ id, status, text, reason }: TaskResult): string {
  if (status === 'completed') return `✓ ${id}: ${text}`
  return `✗ ${id} (${status}): ${reason ?? ''}${text === '' ? '' : `\n${text}`}`
}

function statisticsOf(results: readonly TaskResult[], usage: Usage, durationMs: number): string {
  const of = (status: TaskResult['status']) => results.filter((result) => result.status === status).length
  const others = (['failed', 'cancelled', 'skipped'] as const).map((status) => `${of(status)} ${status}`)
  const spent = `${usage.inputTokens + usage.outputTokens} tokens, ${(durationMs / 1_000).toFixed(1)} s`
  return `${of('completed')} of ${results.length} tasks completed, ${others.join(', ')}; ${spent}.`
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}…`
}
