import { toJson } from '../base/json.ts'
import { describeIssues } from '../base/schema.ts'
import type { Work } from '../engine/engine.ts'
import { interruptedEnd } from '../graph/end-node.ts'
import type { Node } from '../graph/rows.ts'
import type { ToolSchema } from '../model/model.ts'
import type { CurrentCall } from './current.ts'
import { type Asker, type Permission, permit, permitCall } from './permit.ts'
import { errorEnd, type ToolEnd, toolEnd } from './result.ts'
import { KILL_AFTER_MS } from './run-process.ts'
import type { ToolEntry, Toolkit } from './toolkit.ts'

/** What of a running node its tool call needs. */
export interface Invocation extends Asker {
  readonly toolkit: Toolkit
  readonly work: Work
  /** Says what may be told of a failure. */
  readonly home: { readonly causeOf: (error: unknown) => string }
}

/** A person must be asked first: nothing has run. */
export type Asked = Extract<Permission, { verdict: 'ask' }>

/**
 * The one place where a tool runs (I8). Whatever goes wrong is a result the model can act on. Undefined when the node
 * was taken from this process: then others write its end.
 */
export async function invoke(
  run: Invocation,
  entry: ToolEntry | undefined,
  current: CurrentCall,
): Promise<ToolEnd | Asked | undefined> {
  const call = run.node.input.call
  if (call === undefined) return errorEnd('This task has no call.')
  const tool = entry?.tool
  if (!tool) return errorEnd(unknownTool(call.name, run.toolkit.allowed(run.layers, run.conversation.groups)))
  if (call.invalid !== undefined) return errorEnd(`The arguments of ${call.name} are not JSON: ${call.invalid}`)
  const input = toJson(call.input)
  if (!input.ok) return errorEnd(`The arguments of ${call.name} are not JSON: ${input.error}`)
  const permission = entry.needsGrant
    ? permit(run, { domain: 'tool', name: call.name, version: entry.version }, input.value)
    : undefined
  if (permission?.verdict === 'deny') return denied(call.name, permission.reason)
  const checked = await tool.input.validate(input.value)
  if (!checked.ok) return errorEnd(`The arguments of ${call.name} are wrong. ${describeIssues(checked.issues)}`)
  if (permission?.verdict === 'ask') {
    return { verdict: 'ask', ask: { ...permission.ask, required: tool.approval === 'required' } }
  }
  const needs = permitCall(run, tool, { name: call.name, input: checked.value, asked: input.value })
  if (needs.verdict === 'deny') return denied(call.name, needs.reason)
  if (needs.verdict === 'ask') return needs
  if (run.work.stopCause !== null) return notBegun(run)
  try {
    const started = current.inside((context) => tool.execute(checked.value, context))
    const value = isPromise(started) ? await orStopped(started, run.work) : started
    return await toolEnd(tool, value, run.node.id)
  } catch (error) {
    return failedEnd(error, run)
  }
}

function denied(name: string, reason: string): ToolEnd {
  return errorEnd(`${name} is not allowed here: ${reason}.`)
}

function unknownTool(name: string, known: readonly ToolSchema[]): string {
  const names = known.map((schema) => schema.name).join(', ')
  const others = names === '' ? 'There are no tools here.' : `There are: ${names}.`
  return `There is no tool ${JSON.stringify(name)}. ${others}`
}

/** Asked to stop before its code ran: nothing can have happened. */
function notBegun({ work }: Invocation): ToolEnd | undefined {
  if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return undefined
  if (work.stopCause === 'timeout') return errorEnd('Error: the call took too long before it began. It had no effect.')
  return { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' }, body: null }
}

function failedEnd(error: unknown, { node, work, home }: Invocation): ToolEnd | undefined {
  switch (work.stopCause) {
    case 'lost':
    case 'shutdown':
      return undefined
    case 'cancel':
      return { ...interruptedEnd(node, 'The run was asked to stop.'), body: null }
    case 'timeout':
      return timedOut(node)
    default:
      return errorEnd(`Error: ${home.causeOf(error)}`)
  }
}

/** A call that may have had its effect all the same is uncertain. */
function timedOut(task: Node): ToolEnd {
  const message = `the call took longer than ${task.timeoutMs} ms and was stopped.`
  if (task.effect !== 'effectful') return errorEnd(`Error: ${message}`)
  const content = `Error: ${message} It may or may not have taken effect: check before you call it again.`
  return { ...interruptedEnd(task, message), output: { content, isError: true }, body: null }
}

/** How long a tool that was asked to stop may take to do so: what it runs and holds has ended when its call has. */
const STOP_MS = KILL_AFTER_MS + 150

/** The tool's value; or a rejection when the node is asked to stop and its code has, or does not hear of it. */
function orStopped<T>(value: PromiseLike<T>, work: Work): Promise<T> {
  return new Promise((resolve, reject) => {
    const { signal } = work
    let waiting: NodeJS.Timeout | undefined
    const giveUp = () => reject(signal.reason)
    const stop = () => {
      const isOurs = work.stopCause === 'cancel' || work.stopCause === 'timeout'
      if (!isOurs) return giveUp()
      waiting = setTimeout(giveUp, STOP_MS)
    }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    Promise.resolve(value)
      .then((given) => (signal.aborted ? giveUp() : resolve(given)), reject)
      .finally(() => {
        clearTimeout(waiting)
        signal.removeEventListener('abort', stop)
      })
  })
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
