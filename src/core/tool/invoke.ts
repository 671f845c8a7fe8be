// The one door through which a tool's code runs (I8). `delegation/run/task` calls it for each task of a tool, live or
// on replay; `tool/permit` decides, and `tool/result` turns the value into the node's end.
//
// Stays true, in this order:
// - The call is allowed by name, its arguments fit the schema, its needs and the tool's own approval are decided, and
//   only then does the code run. A person who must be asked first is asked before anything has happened.
// - The values that were decided are the values that the code gets (I11).
// - Every failure ends the node with text for the model. A call that may have had its effect ends `uncertain` (I4).
// - A node that another process took is left alone: undefined, and no end.

import { toJson } from '../base/json.ts'
import { mostAlike } from '../base/options.ts'
import { describeIssues } from '../base/schema/schema.ts'
import type { Work } from '../engine/engine.ts'
import { toolRequest } from '../grant/request.ts'
import type { Node, Turn } from '../graph/rows.ts'
import type { Model, ToolSchema } from '../model/model.ts'
import type { ApprovalRequest } from '../rules/turn/approval-of.ts'
import { interruptedEnd } from '../rules/turn/end-node.ts'
import type { CurrentCall } from './current.ts'
import { approvalModeFor, type Permission, permit, type Requester, refuseCall, withArgumentsOf } from './permit.ts'
import { errorEnd, failedWith, readToolValue, shownEnd, type ToolEnd, valueEnd } from './result.ts'
import { KILL_AFTER_MS } from './run-process.ts'
import { type CodeResult, type Tape, type Watch, watchedContext } from './tape.ts'
import type { Tool } from './tool.ts'
import type { ToolEntry, Toolkit } from './toolkit.ts'

/** The parts of a running node that its tool call needs. */
export interface Invocation extends Requester {
  readonly turn: Turn
  readonly model: Model | null
  readonly toolkit: Toolkit
  readonly work: Work
  readonly home: {
    /** `causeOf` words the cause of a failure without secrets. */
    readonly settings: { readonly causeOf: (error: unknown) => string }
    /** `tape` is set where runs are recorded or replayed. */
    readonly live: { readonly tape: Tape | null }
  }
}

/** A person must be asked first: nothing has run. */
export type PendingPermission = Extract<Permission, { verdict: 'ask' }>

/**
 * The one place where a tool runs (I8). Every failure becomes a result that the model can act on. Undefined when
 * another process took the node: that process writes its end.
 */
export async function invoke(
  run: Invocation,
  entry: ToolEntry | undefined,
  current: CurrentCall,
): Promise<ToolEnd | PendingPermission | undefined> {
  const call = run.node.input.call
  if (call === undefined) return errorEnd('This task has no call.')
  const tool = entry?.tool
  if (!tool) return errorEnd(unknownTool(call.name, offeredBy(run)))
  if (call.invalid !== undefined) return errorEnd(`The arguments of ${call.name} are not JSON: ${call.invalid}`)
  const input = toJson(call.input)
  if (!input.ok) return errorEnd(`The arguments of ${call.name} are not JSON: ${input.error}`)
  const permission = entry.needsGrant ? permit(run, toolRequest(call.name, entry.version), input.value) : undefined
  if (permission?.verdict === 'deny') return denied(call.name, permission.reason)
  const checked = await tool.input.validate(input.value)
  if (!checked.ok) return errorEnd(`The arguments of ${call.name} are wrong. ${describeIssues(checked.issues)}`)
  const asks = await approvalModeFor(tool, checked.value, run.node)
  if (permission?.verdict === 'ask') return withSchema({ ...permission.ask, required: asks === 'required' }, entry)
  const refused = refuseCall(run, tool, { name: call.name, input: checked.value, asked: input.value, asks })
  if (refused?.verdict === 'deny') return denied(call.name, refused.reason)
  if (refused !== undefined) return withSchema(refused.ask, entry)
  if (isStopped(run)) return notBegun(run)
  const execution = { tool, current, input: checked.value }
  const { tape } = run.home.live
  if (tape === null || entry.isOwn === true) return endOf(run, await execute(run, execution))
  const { node, work } = run
  const running = { node, work, current, name: call.name, input: input.value }
  return endOf(run, await tape.run(running, (watch) => execute(run, execution, watch)))
}

function withSchema(ask: ApprovalRequest, { schema }: ToolEntry): PendingPermission {
  return { verdict: 'ask', ask: withArgumentsOf(ask, schema) }
}

interface Execution {
  readonly tool: Tool
  readonly current: CurrentCall
  readonly input: unknown
}

async function execute(run: Invocation, { tool, current, input }: Execution, watch?: Watch): Promise<CodeResult> {
  try {
    const started = current.inside((context) => tool.execute(input, watchedContext(context, watch)))
    const value = isPromise(started) ? await orStopped(started, run.work) : started
    return await readToolValue(tool, value)
  } catch (error) {
    return failed(error, run)
  }
}

function failed(error: unknown, { work, home }: Invocation): CodeResult {
  switch (work.stopCause) {
    case 'lost':
    case 'shutdown':
      return { stopped: 'lost' }
    case 'cancel':
    case 'timeout':
      return { stopped: work.stopCause }
    default:
      return { error: `Error: ${home.settings.causeOf(error)}` }
  }
}

function endOf({ node }: Invocation, given: CodeResult): ToolEnd | undefined {
  if ('value' in given) {
    return given.shown === undefined ? valueEnd(given.value, node.id) : shownEnd(given.value, given.shown, node.id)
  }
  if ('error' in given) return failedWith(given.error, node.id)
  if ('interrupted' in given) return { ...interruptedEnd(node, given.interrupted), body: null }
  if (given.stopped === 'lost') return undefined
  if (given.stopped === 'timeout') return timedOut(node)
  return { ...interruptedEnd(node, 'The run was asked to stop.'), body: null }
}

function denied(name: string, reason: string): ToolEnd {
  return errorEnd(`${name} is not allowed here: ${reason}.`)
}

/** The tools that the model of the call was offered. */
function offeredBy({
  toolkit,
  layers,
  turn,
  model,
  conversation: { groups, depth },
}: Invocation): readonly ToolSchema[] {
  const mayDelegate = depth < turn.limits.depth
  return toolkit.offer(layers, { context: [], mayDelegate, groups, depth, model: () => model?.id ?? '' })
}

function unknownTool(name: string, known: readonly ToolSchema[]): string {
  const names = known.map((schema) => schema.name)
  const alike = mostAlike(name, names, MOST_NAMED)
  const left = names.length - alike.length
  const others =
    left === 0 ? `There are: ${names.join(', ')}.` : `Most alike are: ${alike.join(', ')}, of ${names.length}.`
  return `There is no tool ${shortName(name)}. ${names.length === 0 ? 'There are no tools here.' : others}`
}

const MOST_NAMED = 10
const LONGEST_NAME = 80

function shortName(name: string): string {
  const shown = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME).toWellFormed()}…` : name
  return JSON.stringify(shown)
}

function isStopped({ work: { stopCause }, home: { live } }: Invocation): boolean {
  return stopCause !== null && !(stopCause === 'timeout' && live.tape?.isPlayed === true)
}

export const TOO_LATE = 'Error: the call took too long before it began. It had no effect.'

/** The end of a call that was stopped before its code ran: nothing can have happened. */
function notBegun({ work }: Invocation): ToolEnd | undefined {
  if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return undefined
  if (work.stopCause === 'timeout') return errorEnd(TOO_LATE)
  return { state: 'stopped', failure: { code: 'stopped', message: 'The run was asked to stop.' }, body: null }
}

/** A call that timed out may still have had its effect, so it is uncertain. */
function timedOut(task: Node): ToolEnd {
  const message = `the call took longer than ${task.timeoutMs} ms and was stopped.`
  if (task.effect !== 'effectful') return errorEnd(`Error: ${message}`)
  const content = `Error: ${message} It may or may not have taken effect: check before you call it again.`
  return { ...interruptedEnd(task, message), output: { content, isError: true }, body: null }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** How long a stopped tool may take to clean up, so that everything it runs and holds ends with its call. */
const STOP_MS = KILL_AFTER_MS + 150

/**
 * Waits for the value of code. Rejects when the node is asked to stop and its code has ended, or ignores the request.
 */
export function orStopped<T>(value: PromiseLike<T>, work: Work): Promise<T> {
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
