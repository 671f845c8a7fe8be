import { messageOf } from '../base/error.ts'
import { describeIssues } from '../base/schema.ts'
import type { Work } from '../engine/engine.ts'
import { type Decision, decide } from '../grant/decide.ts'
import type { Layer } from '../grant/grant.ts'
import type { Node } from '../graph/rows.ts'
import { asCurrentCall, type CurrentCall } from './current.ts'
import { errorEnd, type ToolEnd, toolEnd } from './result.ts'
import type { Tool, ToolContext } from './tool.ts'

export interface Invocation {
  readonly task: Node
  readonly tool: Tool | undefined
  /** What may be called instead, for the model that asked for a tool that is not there. */
  readonly known: readonly string[]
  readonly layers: readonly Layer[]
  readonly work: Work
  readonly call: CurrentCall
  readonly context: ToolContext
}

/**
 * The one place where a tool runs (I8). Whatever goes wrong is a result the model can act on. Undefined when the node
 * was taken from this process: then others write its end.
 */
export async function invoke(invocation: Invocation): Promise<ToolEnd | undefined> {
  const { task, tool, layers } = invocation
  const call = task.input.call
  if (call === undefined) return errorEnd('This task has no call.')
  if (tool === undefined) return errorEnd(unknownTool(call.name, invocation.known))
  if (call.invalid !== undefined) return errorEnd(`The arguments of ${call.name} are not JSON: ${call.invalid}`)
  const decision = decide(layers, 'tool', call.name)
  if (!isAllowed(decision, task)) return errorEnd(`${call.name} is not allowed here: ${decision.reason}.`)
  const checked = await tool.input.validate(call.input)
  if (!checked.ok) return errorEnd(`The arguments of ${call.name} are wrong. ${describeIssues(checked.issues)}`)
  return run(tool, checked.value, invocation)
}

function isAllowed(decision: Decision, task: Node): boolean {
  if (decision.verdict === 'ask') return task.metadata['approvedBy'] !== undefined
  return decision.verdict === 'allow'
}

function unknownTool(name: string, known: readonly string[]): string {
  const others = known.length === 0 ? 'There are no tools here.' : `There are: ${known.join(', ')}.`
  return `There is no tool ${JSON.stringify(name)}. ${others}`
}

async function run(tool: Tool, input: unknown, invocation: Invocation): Promise<ToolEnd | undefined> {
  const { task, work, context } = invocation
  try {
    const started = asCurrentCall(invocation.call, () => tool.execute(input, context))
    const value = isPromise(started) ? await orStopped(started, work) : started
    return await toolEnd(tool, value, task.id)
  } catch (error) {
    return failedEnd(error, invocation)
  }
}

function failedEnd(error: unknown, { task, work }: Invocation): ToolEnd | undefined {
  switch (work.stopCause) {
    case 'lost':
    case 'shutdown':
      return undefined
    case 'cancel':
      return { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' }, body: null }
    case 'timeout':
      return errorEnd(timedOut(task))
    default:
      return errorEnd(`Error: ${messageOf(error)}`)
  }
}

function timedOut(task: Node): string {
  const said = `Error: the call took longer than ${task.timeoutMs} ms and was stopped.`
  if (task.effect !== 'effectful') return said
  return `${said} It may or may not have taken effect: check before you call it again.`
}

/** The tool's value, or a rejection as soon as the node is asked to stop: a tool that ignores its signal is not waited for. */
function orStopped<T>(value: Promise<T>, work: Work): Promise<T> {
  return new Promise((resolve, reject) => {
    const { signal } = work
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    value.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
