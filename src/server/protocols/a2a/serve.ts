// A2A over HTTP, without a network: one request in, an answer or a stream out. Who asks was found out before.

import type { StreamResponse, TaskPushNotificationConfig } from '@a2a-js/sdk'
import type { Json } from '../../../index.ts'
import { type A2aCaller, type A2aSdk, loadSdk, RowsHandler } from './handler.ts'
import { OLDER_VERSION, olderTransport, speaksOlder } from './older.ts'
import { A2A_VERSION } from './wire.ts'

/** An answer in JSON, or a stream of texts that are JSON. */
export type A2aAnswer =
  | { readonly status: number; readonly json: unknown }
  | { readonly status: number; readonly stream: AsyncGenerator<string> }

/** The operations of the binding HTTP+JSON. */
export type RestOperation = keyof typeof REST

/** A request of the binding HTTP+JSON: its body, its query and the ids of its path as one object. */
export interface RestRequest {
  readonly operation: RestOperation
  readonly params: { readonly [key: string]: Json | undefined }
}

export class A2aEndpoint {
  private sdk: Promise<A2aSdk> | undefined

  private load(): Promise<A2aSdk> {
    this.sdk ??= loadSdk().catch((error: unknown) => {
      this.sdk = undefined
      throw error
    })
    return this.sdk
  }

  /** Answers a message of JSON-RPC. */
  async rpc(version: string | null, body: Json, caller: A2aCaller): Promise<A2aAnswer> {
    const sdk = await this.load()
    const { id, method, fault } = readEnvelope(body)
    if (fault !== undefined) return { status: 200, json: { jsonrpc: '2.0', id, error: fault } }
    const handler = new RowsHandler(sdk, caller)
    const spoken = await transportFor(sdk, handler, { version, method })
    const refuse = (error: unknown) => ({ jsonrpc: '2.0', id, error: spoken?.errorOf(error) })
    if (spoken === undefined) {
      const error = sdk.errors.toJsonRpcError(versionError(sdk, version))
      return { status: 200, json: { jsonrpc: '2.0', id, error } }
    }
    const answer = await spoken.transport.handle(body as Record<string, unknown>, spoken.context)
    if (handler.refused !== undefined) throw handler.refused
    if (!(Symbol.asyncIterator in answer)) return { status: 200, json: answer }
    return this.stream(handler, rpcFrames(answer, refuse, caller), (error) => {
      return { status: 200, json: refuse(error) }
    })
  }

  /** Answers a request of the binding HTTP+JSON. */
  async rest(version: string | null, { operation, params }: RestRequest, caller: A2aCaller): Promise<A2aAnswer> {
    const sdk = await this.load()
    const handler = new RowsHandler(sdk, caller)
    const refuse = (error: unknown): A2aAnswer => {
      if (handler.refused !== undefined) throw handler.refused
      const status = sdk.errors.restStatusFor(error)
      return { status, json: sdk.errors.toRestErrorBody(error, status) }
    }
    if (!isServed(version)) return refuse(versionError(sdk, version))
    try {
      const answer = await REST[operation]({ sdk, handler, params })
      if (!isStream(answer)) return { status: answer === null ? 204 : 200, json: answer }
      return await this.stream(handler, restFrames(sdk, answer, caller), refuse)
    } catch (error) {
      return refuse(error)
    }
  }

  /** An error before the first item is an answer of its own. */
  private async stream(
    handler: RowsHandler,
    frames: AsyncGenerator<string>,
    refuse: (error: unknown) => A2aAnswer,
  ): Promise<A2aAnswer> {
    try {
      const first = await frames.next()
      return { status: 200, stream: withFirst(first, frames) }
    } catch (error) {
      if (handler.refused !== undefined) throw handler.refused
      return refuse(error)
    }
  }
}

interface RpcRequest {
  readonly version: string | null
  readonly method: string
}

/** The transport of JSON-RPC for the version that a request speaks; undefined where it is not served. */
async function transportFor(sdk: A2aSdk, handler: RowsHandler, { version, method }: RpcRequest) {
  const contextOf = (requestedVersion: string) => new sdk.server.ServerCallContext({ requestedVersion })
  if (speaksOlder(version, method)) return { ...(await olderTransport(handler)), context: contextOf(OLDER_VERSION) }
  if (!isServed(version)) return undefined
  const transport = new sdk.server.JsonRpcTransportHandler(handler)
  return { transport, errorOf: (error: unknown) => sdk.errors.toJsonRpcError(error), context: contextOf(A2A_VERSION) }
}

function isServed(version: string | null): boolean {
  return version === A2A_VERSION
}

function versionError({ errors }: A2aSdk, version: string | null): Error {
  const asked = version === null || version === '' ? '0.3, because the header A2A-Version is missing' : version
  return new errors.VersionNotSupportedError(`This server speaks A2A ${A2A_VERSION}, not ${asked}.`)
}

interface Envelope {
  readonly id: string | number | null
  readonly method: string
  readonly fault?: { readonly code: number; readonly message: string }
}

const INVALID_REQUEST = -32_600

function readEnvelope(body: Json): Envelope {
  const { jsonrpc, method, id = null } = Object(body) as Readonly<Record<string, unknown>>
  const isNamed = id === null || typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id))
  const isValid = isNamed && jsonrpc === '2.0' && typeof method === 'string' && method !== ''
  const known = isNamed ? (id as Envelope['id']) : null
  if (isValid) return { id: known, method }
  return { id: known, method: '', fault: { code: INVALID_REQUEST, message: 'This is no request of JSON-RPC 2.0.' } }
}

/** The items of a stream as texts. An error in the middle is its last item. */
async function* rpcFrames(
  items: AsyncGenerator<unknown, void, undefined>,
  /** An error as the answer of its version. */
  refuse: (error: unknown) => object,
  caller: A2aCaller,
): AsyncGenerator<string> {
  let isBegun = false
  try {
    for await (const item of items) {
      yield JSON.stringify(item)
      isBegun = true
    }
  } catch (error) {
    if (!isBegun) throw error
    caller.report(error)
    yield JSON.stringify(refuse(BROKEN))
  }
}

const BROKEN = new Error('The stream broke off.')

async function* restFrames(
  { core }: A2aSdk,
  items: AsyncGenerator<StreamResponse, void, undefined>,
  { report }: A2aCaller,
): AsyncGenerator<string> {
  let isBegun = false
  try {
    for await (const item of items) {
      yield JSON.stringify(core.StreamResponse.toJSON(item))
      isBegun = true
    }
  } catch (error) {
    if (!isBegun) throw error
    report(error)
  }
}

async function* withFirst(first: IteratorResult<string>, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    if (first.done !== true) yield first.value
    yield* rest
  } finally {
    await rest.return(undefined)
  }
}

function isStream(answer: unknown): answer is AsyncGenerator<StreamResponse, void, undefined> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
}

interface RestCall {
  readonly sdk: A2aSdk
  readonly handler: RowsHandler
  readonly params: RestRequest['params']
}

type RestAnswer = unknown

/** Each operation: from its parameters to its answer in JSON, or to a stream. */
const REST = {
  send: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    return { task: core.Task.toJSON(await handler.sendMessage(core.SendMessageRequest.fromJSON(params))) }
  },
  stream: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    return handler.sendMessageStream(core.SendMessageRequest.fromJSON(params))
  },
  get: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    return core.Task.toJSON(await handler.getTask(core.GetTaskRequest.fromJSON(params)))
  },
  list: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    const page = await handler.listTasks(core.ListTasksRequest.fromJSON(params))
    const { tasks, ...rest } = page
    return { ...rest, tasks: tasks.map((task) => core.Task.toJSON(task)) }
  },
  cancel: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    return core.Task.toJSON(await handler.cancelTask(core.CancelTaskRequest.fromJSON(params)))
  },
  subscribe: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    return handler.resubscribe(core.SubscribeToTaskRequest.fromJSON(params))
  },
  makePush: async ({ sdk, handler, params }: RestCall): Promise<RestAnswer> => {
    const config = sdk.core.TaskPushNotificationConfig.fromJSON(params)
    return configJson(sdk, await handler.createTaskPushNotificationConfig(config))
  },
  getPush: async ({ sdk, handler, params }: RestCall): Promise<RestAnswer> => {
    const asked = sdk.core.GetTaskPushNotificationConfigRequest.fromJSON(params)
    return configJson(sdk, await handler.getTaskPushNotificationConfig(asked))
  },
  listPush: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    const asked = core.ListTaskPushNotificationConfigsRequest.fromJSON(params)
    return core.ListTaskPushNotificationConfigsResponse.toJSON(await handler.listTaskPushNotificationConfigs(asked))
  },
  deletePush: async ({ sdk: { core }, handler, params }: RestCall): Promise<RestAnswer> => {
    await handler.deleteTaskPushNotificationConfig(core.DeleteTaskPushNotificationConfigRequest.fromJSON(params))
    return null
  },
  extendedCard: async ({ handler }: RestCall): Promise<RestAnswer> => handler.getAuthenticatedExtendedAgentCard(),
}

function configJson({ core }: A2aSdk, config: TaskPushNotificationConfig): RestAnswer {
  return core.TaskPushNotificationConfig.toJSON(config)
}
