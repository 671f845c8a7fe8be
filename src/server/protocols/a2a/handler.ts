// The operations of A2A over rows: what `DefaultRequestHandler` of the SDK does with a task store, without one.
//
// Must stay true:
//   - Everything goes through the tasks of one principal and one agent.
//   - Of an error that is not ours nothing is told but that there was one.

import type {
  AgentCard,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import type { A2ARequestHandler } from '@a2a-js/sdk/server'
import type { RunTree } from '../../../doors/rows.ts'
import { isLegateError, type Json } from '../../../index.ts'
import { malformed } from './read.ts'
import type { AgentTasks, FollowedTask, PeerMessage } from './tasks.ts'
import { type A2aMessage, A2aRefusal, type A2aTask, type A2aUpdate, isTerminal, taskNotFound } from './wire.ts'

import type { PushConfig, PushStore } from './write.ts'

/** One caller of one agent. */
export interface A2aCaller {
  readonly tasks: AgentTasks
  readonly push: PushStore
  readonly card: Json
  /** The place of the caller in a trace, from the head of its request. */
  readonly traceparent: string | undefined
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal
  /** Throws where the caller may not begin a run now. */
  readonly beforeStart: () => void
  /** Hears of errors that the caller is not told of. */
  readonly report: (error: unknown) => void
}

export class RowsHandler implements A2ARequestHandler {
  /** An error that is the server's to answer: the caller lacks a scope, or asks too often. */
  refused: unknown
  private readonly sdk: A2aSdk
  private readonly caller: A2aCaller

  constructor(sdk: A2aSdk, caller: A2aCaller) {
    this.sdk = sdk
    this.caller = caller
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.sdk.core.AgentCard.fromJSON(this.caller.card)
  }

  /** Cards say that there is none. */
  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    throw this.errorOf(new A2aRefusal('UnsupportedOperationError', 'There is no extended card: the card says so.'))
  }

  sendMessage(params: SendMessageRequest): Promise<Task> {
    return this.answer(async () => {
      const { historyLength, returnImmediately = false } = params.configuration ?? {}
      const followed = await this.send(params)
      if (!returnImmediately) await this.caller.tasks.settle(followed, this.caller.signal)
      return this.taskOf(await this.caller.tasks.get(followed.run.id, { historyLength }))
    })
  }

  async *sendMessageStream(params: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const { historyLength } = params.configuration ?? {}
    const followed = await this.answer(() => this.send(params))
    yield* this.updates(this.caller.tasks.streamSent(followed, this.caller.signal, { historyLength }))
  }

  private async send(params: SendMessageRequest): Promise<FollowedTask> {
    const sent = this.readSent(params)
    const asked = params.configuration?.taskPushNotificationConfig
    const config = asked === undefined ? undefined : readConfig(asked)
    if (config !== undefined) await this.caller.push.check(config)
    const since = Date.now()
    if ((sent.message.taskId ?? '') === '') this.caller.beforeStart()
    const followed = await this.caller.tasks.send(sent)
    if (config !== undefined) await this.caller.push.make(followed.run.id, config, since)
    return followed
  }

  private readSent({ message, metadata }: SendMessageRequest): PeerMessage {
    if (message === undefined) throw malformed('The request has no message.')
    const read = this.sdk.core.Message.toJSON(message) as A2aMessage
    if (read.role === ('ROLE_AGENT' as string)) throw malformed('A message to an agent has the role ROLE_USER.')
    const traced: unknown = metadata?.['traceparent'] ?? message.metadata?.['traceparent'] ?? this.caller.traceparent
    // A list that is empty is left out of the JSON form.
    const whole = { ...read, messageId: read.messageId ?? '', parts: read.parts ?? [] }
    return { message: whole, traceparent: typeof traced === 'string' ? traced : undefined }
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.answer(async () => this.taskOf(await this.caller.tasks.get(id, { historyLength })))
  }

  listTasks(params: ListTasksRequest): Promise<ListTasksResponse> {
    return this.answer(async () => {
      const { contextId, pageSize, pageToken, historyLength, includeArtifacts = false } = params
      const state = params.status === 0 ? '' : this.sdk.core.taskStateToJSON(params.status)
      const after = params.statusTimestampAfter ?? ''
      const query = { contextId, state, pageSize, pageToken, historyLength, includeArtifacts, after }
      const page = await listTasks(this.caller.tasks, query)
      return { ...page, tasks: page.tasks.map((task) => this.taskOf(task)) }
    })
  }

  cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    return this.answer(async () => this.taskOf(await this.caller.tasks.cancel(id)))
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const followed = await this.answer(async () => {
      const { status } = await this.caller.tasks.get(id, { historyLength: 0, artifacts: false })
      if (isTerminal(status.state))
        throw new A2aRefusal('UnsupportedOperationError', 'The task is over: read it with GetTask.')
      return { run: await this.caller.tasks.runtime.attach(id), after: 0 }
    })
    yield* this.updates(this.caller.tasks.watch(followed, { signal: this.caller.signal, isWhole: true }))
  }

  createTaskPushNotificationConfig(params: TaskPushNotificationConfig): Promise<TaskPushNotificationConfig> {
    return this.answer(async () => {
      const { taskId } = params
      this.caller.tasks.runtime.require('start')
      await this.caller.tasks.look(taskId)
      return configOf(taskId, await this.caller.push.make(taskId, readConfig(params)))
    })
  }

  getTaskPushNotificationConfig(params: GetTaskPushNotificationConfigRequest): Promise<TaskPushNotificationConfig> {
    return this.answer(async () => {
      const found = (await this.configs(params.taskId)).find(({ id }) => id === params.id)
      if (found === undefined) throw taskNotFound()
      return found
    })
  }

  listTaskPushNotificationConfigs(
    params: ListTaskPushNotificationConfigsRequest,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    return this.answer(async () => ({ configs: await this.configs(params.taskId), nextPageToken: '' }))
  }

  deleteTaskPushNotificationConfig({ taskId, id }: DeleteTaskPushNotificationConfigRequest): Promise<void> {
    return this.answer(async () => {
      this.caller.tasks.runtime.require('start')
      await this.caller.tasks.look(taskId)
      await this.caller.push.remove(taskId, id)
    })
  }

  private async configs(taskId: string): Promise<TaskPushNotificationConfig[]> {
    await this.caller.tasks.look(taskId)
    return (await this.caller.push.list(taskId)).map((config) => configOf(taskId, config))
  }

  private async *updates(items: AsyncGenerator<A2aUpdate>): AsyncGenerator<StreamResponse, void, undefined> {
    try {
      for await (const item of items) yield this.sdk.core.StreamResponse.fromJSON(item)
    } catch (error) {
      throw this.errorOf(error)
    }
  }

  private taskOf(task: A2aTask): Task {
    return this.sdk.core.Task.fromJSON(task)
  }

  private async answer<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw this.errorOf(error)
    }
  }

  /** The error of the SDK that a thrown value is. */
  private errorOf(error: unknown): unknown {
    const { errors } = this.sdk
    if (error instanceof A2aRefusal) return new errors[error.kind](error.message)
    if (isLegateError(error, 'not_found') || isLegateError(error, 'deleted')) return this.errorOf(taskNotFound())
    if (isLegateError(error) && TOLD.has(error.code)) return new errors.RequestMalformedError(error.message)
    this.refused ??= error
    return error
  }
}

/** Errors that say what is wrong with a request. */
const TOLD: ReadonlySet<string> = new Set(['invalid_input', 'conflict', 'unserialisable'])

function readConfig({ id, url, token, authentication }: TaskPushNotificationConfig): PushConfig {
  if (url === '') throw malformed('A push notification needs a url.')
  if (id.length > 200) throw malformed('The id of a push notification has at most 200 characters.')
  return { id, url, token, authentication: authentication ?? null }
}

function configOf(taskId: string, { id, url, token, authentication }: PushConfig): TaskPushNotificationConfig {
  return { tenant: '', taskId, id, url, token, authentication: authentication ?? undefined }
}

/** The parts of `@a2a-js/sdk` that serving needs. */
export interface A2aSdk {
  readonly core: typeof import('@a2a-js/sdk')
  readonly errors: typeof import('@a2a-js/sdk/errors')
  readonly server: typeof import('@a2a-js/sdk/server')
}

/** Loads the package: with the first request, not before. */
export async function loadSdk(): Promise<A2aSdk> {
  const [core, errors, server] = await Promise.all([
    import('@a2a-js/sdk'),
    import('@a2a-js/sdk/errors'),
    import('@a2a-js/sdk/server'),
  ])
  return { core, errors, server }
}

/** Which tasks a peer wants. */
export interface TaskListQuery {
  /** Empty: of all contexts. */
  readonly contextId: string
  /** A state; empty: all. */
  readonly state: string
  readonly pageSize: number | undefined
  readonly pageToken: string
  readonly historyLength: number | undefined
  readonly includeArtifacts: boolean
  /** Only tasks whose status is newer; empty: all. */
  readonly after: string
}

export interface TaskPage {
  readonly tasks: readonly A2aTask[]
  readonly nextPageToken: string
  readonly pageSize: number
  readonly totalSize: number
}

const PAGE = 50
const MOST = 100

/** A page of tasks, the newest status first. */
async function listTasks(tasks: AgentTasks, query: TaskListQuery): Promise<TaskPage> {
  const { pageSize = PAGE, historyLength = 0, includeArtifacts } = query
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MOST) {
    throw malformed(`pageSize is a whole number from 1 to ${MOST}.`)
  }
  const [from, after] = [cursorIn(query.pageToken), momentIn(query.after)]
  const all = await tasks.runs(query.contextId)
  const bare = await Promise.all(all.map((run) => placed(tasks, run)))
  const wanted = bare.filter(({ at, state }) => at >= after && (query.state === '' || state === query.state))
  wanted.sort((a, b) => b.at - a.at || (a.run.runId < b.run.runId ? 1 : -1))
  const rest =
    from === null ? wanted : wanted.filter(({ at, run }) => at < from.at || (at === from.at && run.runId < from.id))
  const page = rest.slice(0, pageSize)
  const last = rest.length > pageSize ? page.at(-1) : undefined
  return {
    tasks: await Promise.all(page.map(({ run }) => tasks.task(run, { historyLength, artifacts: includeArtifacts }))),
    nextPageToken: last === undefined ? '' : tokenOf(last),
    pageSize: page.length,
    totalSize: wanted.length,
  }
}

interface PlacedTask {
  readonly run: RunTree
  readonly state: string
  readonly at: number
}

async function placed(tasks: AgentTasks, run: RunTree): Promise<PlacedTask> {
  const { state, timestamp } = (await tasks.task(run, { historyLength: 0, artifacts: false })).status
  return { run, state, at: Date.parse(timestamp) }
}

function tokenOf({ at, run }: PlacedTask): string {
  return Buffer.from(`${at} ${run.runId}`).toString('base64url')
}

function cursorIn(token: string): { readonly at: number; readonly id: string } | null {
  if (token === '') return null
  const [, at, id = ''] = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(Buffer.from(token, 'base64url').toString()) ?? []
  if (at === undefined) throw malformed('The pageToken is not one of ours.')
  return { at: Number(at), id }
}

function momentIn(text: string): number {
  const at = text === '' ? 0 : Date.parse(text)
  if (Number.isNaN(at)) throw malformed('statusTimestampAfter is no time.')
  return at
}
