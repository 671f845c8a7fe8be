import type { EventOf } from '../core/agent/definition/hooks.ts'
import { type Json, parseJson } from '../core/base/json.ts'
import type { RunEvent } from '../core/graph/event.ts'

export type BoardStatus = 'Pending' | 'Running' | 'Completed' | 'Failed'

/** A subagent as a task dashboard shows it. */
export interface TaskInfo {
  readonly id: string
  readonly status: BoardStatus
  readonly duration_secs: number | null
  readonly current_output: string
  readonly task_type: string
  readonly task_name: string
  readonly task_metadata: string
  readonly error: string | null
  readonly result_data: Json
}

/** The events of a task dashboard, in the format that programs for goose and Aster read. */
export type TaskEvent =
  | {
      readonly type: 'task_execution'
      readonly subtype: 'line_output'
      readonly task_id: string
      readonly output: string
    }
  | {
      readonly type: 'task_execution'
      readonly subtype: 'tasks_update'
      readonly stats: TaskStats
      readonly tasks: readonly TaskInfo[]
    }
  | {
      readonly type: 'task_execution'
      readonly subtype: 'tasks_complete'
      readonly stats: TaskTotals
      readonly failed_tasks: readonly FailedTask[]
    }

export interface TaskStats {
  readonly total: number
  readonly pending: number
  readonly running: number
  readonly completed: number
  readonly failed: number
}

export interface TaskTotals {
  readonly total: number
  readonly completed: number
  readonly failed: number
  /** In percent; 0 if there was none. */
  readonly success_rate: number
}

export interface FailedTask {
  readonly id: string
  readonly name: string
  readonly error: string | null
}

interface Task extends TaskInfo {
  readonly startedAt: number
}

/** Follows the events of a run and reports its subagents: their lines, the state of all, and the end of the last. */
export class TaskBoard {
  private readonly tasks: Map<string, Task> = new Map()

  /** Returns the dashboard events that follow from an event; often none. */
  tell(event: RunEvent): readonly TaskEvent[] {
    switch (event.type) {
      case 'delegation-start':
        return this.start(event)
      case 'delegation-end':
        return this.end(event)
      case 'run-queued':
        return this.change(event.runId, { status: 'Pending' })
      case 'run-start':
        return this.change(event.runId, { status: 'Running' })
      case 'run-end':
        return this.change(event.runId, { error: event.outcome.error?.message ?? null })
      case 'text-delta':
        return this.lines(event)
      default:
        return NOTHING
    }
  }

  private start({ childRunId: id, agent, tool, at }: EventOf<'delegation-start'>): readonly TaskEvent[] {
    this.tasks.set(id, { ...FRESH, id, task_type: tool, task_name: agent, startedAt: at })
    return [this.update()]
  }

  private end({ childRunId: id, status, at }: EventOf<'delegation-end'>): readonly TaskEvent[] {
    const task = this.tasks.get(id)
    if (task === undefined) return NOTHING
    const isDone = status === 'completed'
    this.tasks.set(id, {
      ...task,
      status: isDone ? 'Completed' : 'Failed',
      duration_secs: (at - task.startedAt) / 1_000,
      error: isDone ? null : (task.error ?? status),
    })
    const { pending, running } = statsOf(this.infos())
    return pending + running === 0 ? [this.update(), this.complete()] : [this.update()]
  }

  /** Reports a change of status. */
  private change(id: string, patch: Partial<Pick<TaskInfo, 'status' | 'error'>>): readonly TaskEvent[] {
    const task = this.tasks.get(id)
    if (task === undefined) return NOTHING
    const changed = { ...task, ...patch }
    this.tasks.set(id, changed)
    return changed.status === task.status ? NOTHING : [this.update()]
  }

  private lines({ runId, text, cumulative }: EventOf<'text-delta'>): readonly TaskEvent[] {
    const task = this.tasks.get(runId)
    if (task === undefined || cumulative) return NOTHING
    const parts = (task.current_output + text).split('\n')
    this.tasks.set(runId, { ...task, current_output: parts.at(-1) ?? '' })
    return parts.slice(0, -1).map((output) => {
      return { type: 'task_execution', subtype: 'line_output', task_id: runId, output }
    })
  }

  private infos(): readonly TaskInfo[] {
    return [...this.tasks.values()].map(({ startedAt: _, ...info }) => info)
  }

  private update(): TaskEvent {
    const tasks = this.infos()
    return { type: 'task_execution', subtype: 'tasks_update', stats: statsOf(tasks), tasks }
  }

  private complete(): TaskEvent {
    const tasks = this.infos()
    const { total, completed, failed } = statsOf(tasks)
    const failed_tasks = tasks
      .filter(({ status }) => status === 'Failed')
      .map(({ id, task_name, error }) => ({ id, name: task_name, error }))
    const stats = { total, completed, failed, success_rate: total === 0 ? 0 : (100 * completed) / total }
    return { type: 'task_execution', subtype: 'tasks_complete', stats, failed_tasks }
  }
}

const FRESH = {
  status: 'Running',
  duration_secs: null,
  current_output: '',
  task_metadata: '',
  error: null,
  result_data: null,
} as const

const NOTHING: readonly TaskEvent[] = []
const SUBTYPES: readonly unknown[] = ['line_output', 'tasks_update', 'tasks_complete']

/** Parses a line of JSON; undefined if it is not an event. */
export function readTaskEvent(text: string): TaskEvent | undefined {
  const parsed = parseJson(text)
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null || Array.isArray(parsed.value)) {
    return undefined
  }
  const { type, subtype } = parsed.value as { readonly [key: string]: Json }
  const isKnown = type === 'task_execution' && SUBTYPES.includes(subtype)
  return isKnown ? (parsed.value as unknown as TaskEvent) : undefined
}

function statsOf(tasks: readonly Pick<TaskInfo, 'status'>[]): TaskStats {
  const count = (status: BoardStatus) => tasks.filter((task) => task.status === status).length
  return {
    total: tasks.length,
    pending: count('Pending'),
    running: count('Running'),
    completed: count('Completed'),
    failed: count('Failed'),
  }
}

/** A tool call of a subagent, as an MCP logging notification that programs for goose understand. */
export interface SubagentNotice {
  readonly level: 'info'
  readonly logger: string
  readonly data: {
    readonly type: 'subagent_tool_request'
    readonly subagent_id: string
    readonly tool_call: { readonly name: string; readonly arguments: Json }
  }
}

/** Makes the notification of an event; undefined for anything but tool calls of subagents. */
export function subagentNotice(event: RunEvent): SubagentNotice | undefined {
  if (event.type !== 'tool-call' || event.path.length < 2) return undefined
  const { conversationId: id, call } = event
  return {
    level: 'info',
    logger: `subagent:${id}`,
    data: { type: 'subagent_tool_request', subagent_id: id, tool_call: { name: call.name, arguments: call.input } },
  }
}

/** Formats it as one line: `[subagent:16] text_editor | developer`. */
export function subagentLine({ data }: SubagentNotice): string {
  const [extension = '', ...rest] = data.tool_call.name.split('__')
  const tool = rest.length === 0 ? extension : `${rest.join('__')} | ${extension}`
  return `[subagent:${shortOf(data.subagent_id)}] ${tool}`
}

/** The number of a goose task; the short form of one of our ids. */
function shortOf(id: string): string {
  return id.includes('_') ? id.slice(id.lastIndexOf('_') + 1) : id.slice(-8)
}
