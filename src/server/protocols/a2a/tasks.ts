// The tasks of one agent, as one principal may see and use them.
//
// Owns:      what each operation of A2A does to rows: begin or answer, wait, read, list, cancel.
// Called by: the request handler, whatever the binding.
// Must stay true:
//   - It reaches rows only through the principal's runtime (I12). A task of another owner or another agent is an unknown task.
//   - What waits for a person is shown to the peer only with the scope `approve`; without it the task is at work.
//   - A message that arrives again begins nothing twice. A peer that leaves stops nothing.

import { onAbort } from '../../../core/base/abort.ts'
import { sha256 } from '../../../core/base/hash.ts'
import { isId } from '../../../core/base/id.ts'
import { canonicalJson } from '../../../core/base/json.ts'
import { isTraceparent } from '../../../core/base/traceparent.ts'
import type { RunTree } from '../../../doors/rows.ts'
import { type Id, isLegateError, type Json, type Run, type RunEvent, type ScopedRuntime } from '../../../index.ts'
import { type A2aPending, readPeerAnswers } from './pending.ts'
import { malformed, messageInput } from './read.ts'
import {
  type A2aMessage,
  type A2aPlace,
  A2aRefusal,
  type A2aTask,
  type A2aUpdate,
  isTerminal,
  taskNotFound,
} from './wire.ts'
import {
  artifactsOf,
  endUpdates,
  historyOf,
  metadataOf,
  pendingStatus,
  type SaidLine,
  statusOf,
  updateOf,
} from './write.ts'

/** A message with what the request says beside it. */
export interface PeerMessage {
  readonly message: A2aMessage
  readonly traceparent: string | undefined
}

/** How much of a task to show. */
export interface TaskView {
  /** The most messages of its history; undefined: all. */
  readonly historyLength?: number | undefined
  /** False: without its artifacts. Default true. */
  readonly artifacts?: boolean
}

/** A task that was begun or answered: follow it from this place. */
export interface FollowedTask {
  readonly run: Run
  readonly after: number
}

const MOST_LINES = 1_000
/** The attribute of a run that holds the id of the message that began it, as the peer sent it. */
const MESSAGE_ID = 'a2a.messageId'
const CANCEL_WAIT_MS = 5_000

export class AgentTasks {
  readonly runtime: ScopedRuntime
  private readonly agent: string

  constructor(runtime: ScopedRuntime, agent: string) {
    this.runtime = runtime
    this.agent = agent
  }

  /** Begins a task with a message, or gives the answers of one to a task that waits for them. */
  async send({ message, traceparent }: PeerMessage): Promise<FollowedTask> {
    this.runtime.require('read')
    const { taskId = '', contextId = '' } = message
    if (message.messageId === '') throw malformed('The message needs a messageId.')
    if (taskId !== '') return this.answer(taskId, message)
    if (contextId !== '') await this.requireContext(contextId)
    const input = messageInput(message, (await this.info()).input !== null)
    const run = this.runtime.run(this.agent, input, {
      key: keyOf(this.agent, message),
      ...(contextId === '' ? {} : { conversationId: contextId }),
      ...(isTraceparent(traceparent) ? { traceparent } : {}),
      attributes: { [MESSAGE_ID]: message.messageId },
    })
    await recorded(run)
    return { run, after: 0 }
  }

  private async info() {
    const found = (await this.runtime.agents()).find(({ name }) => name === this.agent)
    if (found === undefined) throw taskNotFound()
    return found
  }

  private async requireContext(contextId: string): Promise<void> {
    const isKnown = isId(contextId) && (await this.conversationAgent(contextId)) === this.agent
    if (!isKnown) throw malformed('There is no such context. Leave contextId out to begin one.')
  }

  private async conversationAgent(contextId: Id): Promise<string | undefined> {
    const tree = await unlessMissing(this.runtime.tree(contextId, { limitTurns: 1 }))
    return tree?.agent
  }

  private async answer(taskId: string, message: A2aMessage): Promise<FollowedTask> {
    const look = await this.look(taskId)
    const { contextId = '' } = message
    if (contextId !== '' && contextId !== look.conversationId) throw malformed('The task belongs to another context.')
    const pending = await this.pending(look)
    if (pending.length === 0) {
      const why = look.state === 'ended' ? 'The task is over.' : 'The task waits for no message.'
      throw new A2aRefusal('UnsupportedOperationError', `${why} Begin another one in its context.`)
    }
    const answers = readPeerAnswers(message, pending)
    const says = await Promise.all(answers.map(({ nodeId, word }) => this.runtime.checkAnswer(nodeId, word)))
    for (const say of says) await say()
    return { run: await this.runtime.attach(taskId), after: look.lastSeq }
  }

  /** A run of this agent at the root of a tree; foreign and unknown ones are refused alike. */
  async look(taskId: string) {
    const look = isId(taskId) ? await unlessMissing(this.runtime.look(taskId)) : undefined
    if (look === undefined || look.agent !== this.agent || look.tool !== null) throw taskNotFound()
    return look
  }

  /** The approvals and questions of a run that wait for the peer. */
  private async pending({ runId, state }: RunTree): Promise<readonly A2aPending[]> {
    if (state === 'ended' || !this.runtime.may('approve')) return []
    const approvals = await this.runtime.approvals({ runId })
    const questions = await this.runtime.questions({ runId })
    return [
      ...approvals.map((of) => ({ kind: 'approval', of }) as const),
      ...questions.map((of) => ({ kind: 'question', of }) as const),
    ]
  }

  async get(taskId: string, view: TaskView = {}): Promise<A2aTask> {
    return this.shown(await this.look(taskId), view)
  }

  private async shown(run: RunTree, { historyLength, artifacts = true }: TaskView): Promise<A2aTask> {
    const { runId, conversationId } = run
    const isEnded = run.outcome !== null && artifacts
    return {
      id: runId,
      contextId: conversationId,
      status: statusOf(run, await this.pending(run)),
      artifacts: isEnded ? artifactsOf(await (await this.runtime.attach(runId)).result) : [],
      history: historyLength === 0 ? [] : (await this.history(run)).slice(-(historyLength ?? MOST_LINES)),
      metadata: metadataOf(run),
    }
  }

  private async history({ runId, conversationId }: RunTree) {
    const { nodes } = await this.runtime.nodes(runId, { from: 0, limit: MOST_LINES })
    const { attributes } = await this.runtime.look(runId)
    const sent = attributes?.[MESSAGE_ID]
    const lines = nodes.flatMap(({ id, ordinal, kind, input, output, endedAt }): SaidLine[] => {
      const messageId = ordinal === 0 && typeof sent === 'string' ? sent : id
      if (kind === 'user_message') return [{ messageId, isPeer: true, content: input.content ?? '' }]
      if (kind !== 'agent_message' || endedAt === null) return []
      return [{ messageId: id, isPeer: false, content: output.content ?? '' }]
    })
    return historyOf({ taskId: runId, contextId: conversationId }, lines)
  }

  /** Waits until a task is over or waits for the peer, or the peer leaves. */
  async settle(followed: FollowedTask, signal: AbortSignal): Promise<void> {
    for await (const _ of this.follow(followed, { signal, isWhole: false })) if (signal.aborted) return
  }

  /** The stream of a message that was sent: the task, then what happens to it until it is over or waits for the peer. */
  async *streamSent({ run, after }: FollowedTask, signal: AbortSignal, view: TaskView): AsyncGenerator<A2aUpdate> {
    const watching = { signal, isWhole: false }
    if (after > 0) return yield* this.watch({ run, after }, watching, view)
    const look = await this.look(run.id)
    const task = await this.shown({ ...look, state: 'queued', outcome: null }, { ...view, artifacts: false })
    const status = { state: 'TASK_STATE_SUBMITTED', timestamp: task.status.timestamp } as const
    yield { task: { ...task, status } }
    yield* this.follow({ run, after: 0 }, watching)
  }

  /** The stream of a task: the task as it is, then what happens to it. */
  async *watch(followed: FollowedTask, { signal, isWhole }: TaskWatch, view: TaskView = {}): AsyncGenerator<A2aUpdate> {
    const look = await this.look(followed.run.id)
    const task = await this.shown(look, view)
    yield { task }
    if (isTerminal(task.status.state)) return
    if (!isWhole && task.status.state === 'TASK_STATE_INPUT_REQUIRED') return
    yield* this.follow({ run: followed.run, after: look.lastSeq }, { signal, isWhole })
  }

  /** The updates of a run, to its end or, where it is not followed whole, until it waits for the peer. */
  private async *follow({ run, after }: FollowedTask, { signal, isWhole }: TaskWatch): AsyncGenerator<A2aUpdate> {
    const place: A2aPlace = { taskId: run.id, contextId: run.conversationId }
    const look = await this.look(run.id)
    const isAsking = !isWhole && after > 0 && (await this.pending(look)).length > 0
    if (isAsking) return
    for await (const event of untilAborted(run.events({ after }), signal)) {
      if (event.type === 'run-end' && event.runId === run.id)
        return yield* endUpdates(place, await run.result, event.at)
      const update = updateOf(event, place)
      if (update !== undefined) yield update
      const pending = isAsk(event) ? await this.pending(look) : []
      if (pending.length === 0) continue
      yield { statusUpdate: { ...place, status: pendingStatus(place, pending) } }
      if (!isWhole) return
    }
  }

  /** Asks a run to stop, and waits a moment for it. */
  async cancel(taskId: string): Promise<A2aTask> {
    this.runtime.require('cancel')
    const look = await this.look(taskId)
    if (look.state === 'ended') throw new A2aRefusal('TaskNotCancelableError', 'The task is over.')
    await this.runtime.cancel(taskId, 'The caller cancelled the task.')
    const run = await this.runtime.attach(taskId)
    await Promise.race([run.result, pause(CANCEL_WAIT_MS)])
    return this.get(taskId)
  }

  /** All runs of this agent in conversations of the principal, the newest 1,000 conversations of them. */
  async runs(contextId: string): Promise<readonly RunTree[]> {
    if (contextId !== '') {
      const isOwn = isId(contextId) && (await this.conversationAgent(contextId)) === this.agent
      return isOwn ? (await this.runtime.tree(contextId, { limitTurns: MOST_TURNS })).runs : []
    }
    const found: RunTree[] = []
    const { principal } = this.runtime
    const conversations = await this.runtime.conversations({
      owner: principal.id,
      agent: this.agent,
      limit: MOST_CONTEXTS,
    })
    for (const { id } of conversations) {
      const tree = await unlessMissing(this.runtime.tree(id, { limitTurns: MOST_TURNS }))
      found.push(...(tree?.runs ?? []))
    }
    return found
  }

  /** The task of a run that `runs` gave. */
  task(run: RunTree, view: TaskView): Promise<A2aTask> {
    return this.shown(run, view)
  }
}

const MOST_CONTEXTS = 1_000
const MOST_TURNS = 100

/** How a task is followed. */
export interface TaskWatch {
  readonly signal: AbortSignal
  /** True: to its end, also while it waits for the peer. */
  readonly isWhole: boolean
}

/** A message that comes again is the same start. Peers that use an id twice for other words begin another task. */
function keyOf(agent: string, { messageId, contextId = '', parts }: A2aMessage): string {
  return JSON.stringify(['a2a', agent, contextId, messageId, sha256(canonicalJson(parts as unknown as Json))])
}

function isAsk(event: RunEvent): boolean {
  return event.type === 'approval-request' || (event.type === 'question' && event.to === 'person')
}

async function recorded(run: Run): Promise<void> {
  const events = run[Symbol.asyncIterator]()
  await events.next()
  await events.return?.()
}

async function* untilAborted<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const source = items[Symbol.asyncIterator]()
  let forget: (() => void) | undefined
  const left = new Promise<{ readonly done: true; readonly value: undefined }>((resolve) => {
    forget = onAbort(signal, () => resolve({ done: true, value: undefined }))
  })
  try {
    for (;;) {
      const { done, value } = await Promise.race([source.next(), left])
      if (done === true || value === undefined) return
      yield value
    }
  } finally {
    forget?.()
    source.return?.().catch(() => undefined)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}

async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found
  } catch (error) {
    if (isLegateError(error, 'not_found') || isLegateError(error, 'deleted')) return undefined
    throw error
  }
}
