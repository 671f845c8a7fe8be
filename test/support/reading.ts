import { createRuntime, type Run, type RunEvent, type Runtime, type RuntimeOptions } from 'legate'
import type { ModelRequest } from 'legate/models'
import type { Node } from 'legate/rows'
import { onTestFinished } from 'vitest'
import { localStore } from './rows.ts'

/** A runtime that is closed when the test ends. */
export function openRuntime(options: RuntimeOptions = {}): Runtime {
  const runtime = createRuntime(options)
  onTestFinished(() => runtime.close())
  return runtime
}

type ToolMessage = Extract<ModelRequest['messages'][number], { role: 'tool' }>

/** The tool results a model was shown, in the order it was shown them. */
export function resultsIn(request: ModelRequest | undefined): ToolMessage[] {
  return (request?.messages ?? []).filter((message) => message.role === 'tool')
}

/** What a model was shown as the text of its only tool result. */
export function resultIn(request: ModelRequest | undefined): string {
  const [only, ...others] = resultsIn(request)
  if (only === undefined || others.length > 0) throw new Error(`The request shows ${others.length + 1} tool results.`)
  return typeof only.content === 'string' ? only.content : JSON.stringify(only.content)
}

export function toolNamesIn(request: ModelRequest | undefined): string[] {
  return (request?.tools ?? []).map(({ name }) => name)
}

export function rolesIn(request: ModelRequest | undefined): string[] {
  return (request?.messages ?? []).map(({ role }) => role)
}

export async function eventsOf(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

export function isDurable(event: RunEvent): boolean {
  return Number.isInteger(event.seq)
}

/** The events of one type. */
export function only<Type extends RunEvent['type']>(
  events: readonly RunEvent[],
  type: Type,
): Extract<RunEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type)
}

export function tasksOf(runtime: Runtime, run: Pick<Run, 'id'>): Node[] {
  return localStore(runtime)
    .nodesOf(run.id)
    .filter(({ kind }) => kind === 'task')
}

/** The node of the only tool call of a run. */
export function taskOf(runtime: Runtime, run: Pick<Run, 'id'>): Node {
  const [task, ...others] = tasksOf(runtime, run)
  if (task === undefined || others.length > 0) throw new Error(`The run has ${others.length + 1} tasks.`)
  return task
}
