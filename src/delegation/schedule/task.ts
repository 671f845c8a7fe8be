import { type AnyAgent, isAgent } from '../../agent/agent.ts'
import { InputError } from '../../base/error.ts'
import { anything, listOf, number, type Rule, type Rules, readOptions, text } from '../../base/options.ts'
import type { RunOutcome } from '../../conversation/run.ts'

/** One piece of work of a schedule. */
export interface ScheduledTask {
  readonly id: string
  /** What is asked; a function is given the results of what it depends on, by their ids. */
  readonly prompt: string | ((results: ReadonlyMap<string, TaskResult>) => string)
  /** Default: that of the schedule. */
  readonly agent?: AnyAgent
  readonly description?: string
  /** Higher ones start first. Default 0. */
  readonly priority?: number
  /** Ids of tasks that must have completed before it starts. */
  readonly dependencies?: readonly string[]
  readonly timeoutMs?: number
  /** Names of tools, `*` standing for anything. */
  readonly allowedTools?: readonly string[]
  readonly deniedTools?: readonly string[]
}

export type TaskStatus = 'completed' | 'failed' | 'cancelled' | 'skipped'

export interface TaskResult {
  readonly id: string
  readonly status: TaskStatus
  readonly text: string
  /** Why it did not complete; null when it did. */
  readonly reason: string | null
  /** How often it was tried again. */
  readonly retries: number
  readonly durationMs: number
  /** Of its last try; null when it was never started. */
  readonly outcome: RunOutcome | null
}

export const agentRule: Rule = (value) => (isAgent(value) ? null : 'an agent')

const TASK: Rules<ScheduledTask> = {
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

/** Refuses tasks that could never all run: an id that is there twice or not at all, or a circle. */
export function checkTasks(tasks: readonly ScheduledTask[]): void {
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

/** The ids of a circle, its first again at the end. */
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
