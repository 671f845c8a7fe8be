// One caller over MCP: the runtime as it may use it, and the calls that follow its runs.
//
// Must stay true:
//   - It reaches rows only through the principal's runtime (I12).
//   - What waits for a person is put to the caller only if its principal has the scope `approve`.
//   - A call that the caller leaves cancels its run; a run that has become a task goes on.

import type { WhyReason } from '../../../doors/rows.ts'
import {
  ConflictError,
  DeniedError,
  type Id,
  type Json,
  type JsonSchema,
  NotFoundError,
  type Run,
  type RunEvent,
  type RunOutcome,
  type ScopedRuntime,
} from '../../../index.ts'
import type { McpCall, McpOptions } from './offer.ts'
import { inputRequests, type McpPending, NOT_WHOLE, pendingText, readAnswers } from './pending.ts'
import { hasForms, hasTasks } from './read.ts'
import { type AnswerShape, newTask, outcomeResult, runningResult } from './write.ts'

/** Who calls, and how agents are offered to him. */
export interface McpCaller {
  readonly runtime: ScopedRuntime
  readonly options: McpOptions
  /** Throws where the caller may not begin a run now. */
  readonly beforeStart?: () => void
}

/** How a call waits for its run. */
export interface CallWait {
  readonly call: McpCall
  readonly shape: AnswerShape
  readonly waitMs: number
  /** True: a caller who leaves cancels the run, because it was made for this call. */
  readonly isOwn: boolean
}

export class Peer {
  readonly runtime: ScopedRuntime
  readonly options: McpOptions
  private readonly parts: McpCaller

  constructor(parts: McpCaller) {
    this.parts = parts
    this.runtime = parts.runtime
    this.options = parts.options
  }

  /** Starts a run. Resolves when it is recorded. */
  async start(agent: string, input: unknown, session: string | undefined): Promise<Run> {
    this.parts.beforeStart?.()
    const run = this.runtime.run(agent, input, session === undefined ? {} : sessionOption(session))
    const events = run[Symbol.asyncIterator]()
    await events.next()
    await events.return?.()
    return run
  }

  /** The things in a run that wait for a person and that this caller may answer. */
  async pending(runId: Id): Promise<readonly McpPending[]> {
    if (!this.runtime.may('approve')) return []
    const approvals = await this.runtime.approvals({ runId })
    const questions = await this.runtime.questions({ runId })
    return [
      ...approvals.map((of) => ({ kind: 'approval', of }) as const),
      ...questions.map((of) => ({ kind: 'question', of }) as const),
    ]
  }

  private async hasAsks(runId: Id): Promise<boolean> {
    return (await this.pending(runId)).length > 0
  }

  /** Does the run wait for a person now, whoever may answer? */
  private async waits(runId: Id): Promise<boolean> {
    const { reasons } = await this.runtime.why(runId)
    return reasons.some(({ code }) => code === 'approval' || code === 'question')
  }

  /** Takes the answers that a client's person gave to what waits in a run. False: he left a form without a word. */
  async answer(runId: Id, { client, answers }: Pick<McpCall, 'client' | 'answers'>): Promise<boolean> {
    if (!this.canAsk(client)) return true
    const { words, isLeft } = readAnswers(await this.pending(runId), answers)
    for (const { nodeId, word } of words) {
      await this.runtime.answer(nodeId, word).catch((error: unknown) => {
        // Somebody was faster: the run shows it.
        if (!ConflictError.isInstance(error)) throw error
      })
    }
    return !isLeft
  }

  /** Takes the answers of a further round of a call, and waits on. Who left a form is not asked again: the round ends. */
  async goOn(run: Run, waiting: CallWait): Promise<object> {
    return (await this.answer(run.id, waiting.call)) ? this.wait(run, waiting) : this.standing(run, waiting.shape)
  }

  /** The requests for a client's person, by key. */
  requests(pending: readonly McpPending[]): Record<string, object> {
    return inputRequests(pending, { mayAlways: this.runtime.may('approve:always'), notWhole: this.notWhole })
  }

  /** May this client be asked? */
  canAsk(client: McpCall['client']): boolean {
    return this.runtime.may('approve') && hasForms(client)
  }

  /** Waits for a run, and gives a result of `tools/call`: its answer, a request for input, a task, or where it stands. */
  async wait(run: Run, waiting: CallWait): Promise<object> {
    const { call, shape, waitMs, isOwn } = waiting
    if (waitMs === 0 && hasTasks(call.client)) return newTask(run.id)
    const canAsk = this.canAsk(call.client)
    let count = 0
    const followed = await followUntilPending(run, {
      waitMs,
      signal: call.signal,
      heard: (event) => {
        if (event.type === 'warning') call.log('warning', event.message).catch(() => undefined)
        const message = progressText(event)
        if (message !== undefined) call.progress(++count, { message }).catch(() => undefined)
      },
      asked: () => (canAsk ? this.hasAsks(run.id) : this.waits(run.id)),
    })
    if (followed.how === 'left' && isOwn) await this.cancel(run.id)
    if (followed.how === 'ended') return outcomeResult(followed.outcome, shape)
    return this.unfinished(run, followed, waiting)
  }

  private async unfinished(run: Run, { how }: Followed, { call, shape }: CallWait): Promise<object> {
    const pending = how === 'asks' && this.canAsk(call.client) ? await this.pending(run.id) : []
    if (pending.length > 0) {
      const requestState = await call.sign({ runId: run.id })
      return { resultType: 'input_required', inputRequests: this.requests(pending), requestState }
    }
    return hasTasks(call.client) ? newTask(run.id) : this.standing(run, shape)
  }

  /** A result that says where a run stands which goes on without the call. */
  private async standing(run: Run, shape: AnswerShape): Promise<object> {
    const { id: runId, conversationId } = run
    return runningResult({ runId, conversationId }, await this.whyText(runId), shape)
  }

  /** Says why a run does not go on, how a person can answer elsewhere, and what waits in it for this caller's word. */
  async whyText(runId: Id): Promise<string> {
    const { reasons } = await this.runtime.why(runId)
    const pending = (await this.pending(runId)).map(
      (one) => `node_id ${one.of.nodeId}, seen ${one.of.seen}: ${pendingText(one, this.notWhole)}`,
    )
    return [...reasons.flatMap((reason) => this.reasonLines(reason)), ...pending].join('\n')
  }

  /** Says in a line or two why a run does not go on; empty where nothing is known. */
  async statusText(runId: Id): Promise<string> {
    const { reasons } = await this.runtime.why(runId)
    return reasons[0] === undefined ? '' : this.reasonLines(reasons[0]).join('\n')
  }

  /** A command that a person types in a terminal has a line of its own: clients show the line to the person. */
  private reasonLines({ code, text, advice }: WhyReason): string[] {
    const isForPeople = code === 'approval' || code === 'question'
    const answer = isForPeople && advice !== null ? [`A person answers in a terminal: ${this.completed(advice)}`] : []
    return [asSentence(text), ...answer]
  }

  /** Says where a request can be allowed that is not shown whole. */
  get notWhole(): string {
    return this.completed(NOT_WHOLE)
  }

  private completed(text: string): string {
    return this.options.commands?.(text) ?? text
  }

  private async cancel(runId: Id): Promise<void> {
    await this.runtime.cancel(runId, 'The caller left.').catch((error: unknown) => {
      // Who may start but not cancel leaves it running.
      if (!DeniedError.isInstance(error)) throw error
    })
  }

  /** How the answers of an agent are shown. */
  async shapeOf(agent: string): Promise<AnswerShape> {
    const found = (await this.runtime.agents()).find(({ name }) => name === agent)
    return found === undefined ? WORDS : shapeOf(found)
  }
}

const WORDS: AnswerShape = { output: 'none', namesSession: false }

/** Only an agent that takes messages goes on in a session. */
export function shapeOf(agent: { readonly input: JsonSchema | null; readonly output: JsonSchema | null }): AnswerShape {
  const { input, output } = agent
  const kind = output === null ? 'none' : isObjectSchema(output) ? 'object' : 'value'
  return { output: kind, namesSession: input === null }
}

/** Does a schema take objects only? */
export function isObjectSchema(schema: JsonSchema): boolean {
  return (schema as { readonly type?: unknown }).type === 'object'
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** An id that we gave names a conversation of the caller; any other text is his own name for one. */
function sessionOption(session: string): { readonly conversationId: Id } | { readonly conversationKey: string } {
  return ID.test(session) ? { conversationId: session } : { conversationKey: `mcp:${session}` }
}

/** The run that a signed state names. */
export function runIn(state: Json | undefined): Id | undefined {
  const { runId } = Object(state ?? null) as { readonly runId?: unknown }
  return typeof runId === 'string' ? runId : undefined
}

/** A run of the caller by an id that a client sent; unknown and foreign ones are refused alike. */
export async function attachRun({ runtime }: Peer, runId: unknown): Promise<Run> {
  if (typeof runId === 'string' && ID.test(runId)) return runtime.attach(runId)
  throw new NotFoundError('not_found', 'There is no such run.')
}

/** The words of a reason may go on after a name and a colon; here they stand alone. */
function asSentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** How following a run came to its end. */
export type Followed =
  | { readonly how: 'ended'; readonly outcome: RunOutcome }
  /** `asked` said so. */
  | { readonly how: 'asks' }
  | { readonly how: 'late' }
  | { readonly how: 'left' }

export interface RunFollowOptions {
  readonly waitMs: number
  readonly signal: AbortSignal
  /** Hears every event. */
  readonly heard: (event: RunEvent) => void
  /** Does the run wait for the person at the other end now? Asked when an event says that it waits for one. */
  readonly asked: () => Promise<boolean>
}

/** Follows a run until it ends, waits for the caller, the time is over, or the caller leaves. The run goes on in every case. */
async function followUntilPending(run: Run, options: RunFollowOptions): Promise<Followed> {
  const { waitMs, signal } = options
  const events = run[Symbol.asyncIterator]()
  const clock = startClock(waitMs, signal)
  try {
    for (;;) {
      const next = await Promise.race([events.next(), clock.over])
      if ('how' in next) return next
      if (next.done === true) return { how: 'ended', outcome: await run.result }
      options.heard(next.value)
      if (maybeAsks(next.value) && (await options.asked())) return { how: 'asks' }
    }
  } finally {
    clock.stop()
    events.return?.().catch(() => undefined)
  }
}

function maybeAsks(event: RunEvent): boolean {
  return event.type === 'approval-request' || (event.type === 'question' && event.to === 'person')
}

function startClock(ms: number, signal: AbortSignal) {
  let stop: () => void = () => undefined
  const over = new Promise<Followed>((resolve) => {
    const timer = setTimeout(() => resolve({ how: 'late' }), ms)
    const leave = () => resolve({ how: 'left' })
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave, { once: true })
    stop = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', leave)
    }
  })
  return { over, stop }
}

/** Says in a line what an event means to somebody who waits; undefined for events that are not worth one. */
function progressText(event: RunEvent): string | undefined {
  const said = SAYS[event.type]?.(event as never)
  return said === undefined ? undefined : `${event.path.join(' > ')}: ${said}`
}

type Says = { readonly [Type in RunEvent['type']]?: (event: Extract<RunEvent, { type: Type }>) => string }

const SAYS: Says = {
  'run-queued': () => 'waits its turn',
  'run-start': () => 'begins',
  'tool-call': ({ call }) => `calls ${call.name}`,
  'tool-result': ({ tool, isError }) => `${tool} ${isError ? 'failed' : 'is done'}`,
  'delegation-start': ({ agent }) => `asks ${agent}`,
  'delegation-end': ({ agent, status }) => `${agent} ended ${status}`,
  'approval-request': ({ request }) => `waits for a person to allow ${request}`,
  'approval-answer': ({ allowed, by }) => `${by} ${allowed ? 'allowed' : 'denied'} it`,
  question: ({ to }) => `waits for an answer of ${to === 'host' ? 'its host' : 'a person'}`,
  retry: ({ attempt }) => `tries again (try ${attempt})`,
  progress: ({ message }) => message,
  warning: ({ message }) => message,
}
