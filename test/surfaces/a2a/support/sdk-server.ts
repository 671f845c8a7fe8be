import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { AgentCard, type Message, Task, type TaskState } from '@a2a-js/sdk'
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  ServerCallContext,
} from '@a2a-js/sdk/server'

/** A server with the SDK's own request handler: as other people's agents are made. */
export class SdkServer {
  url = ''
  /** The messages that arrived, as the agent saw them. */
  readonly messages: Message[] = []
  readonly methods: string[] = []
  readonly headers: IncomingMessage['headers'][] = []
  readonly cancelled: string[] = []
  description = 'Does what the first word says.'
  /** The address that the card leads to; empty: its own. */
  leadsTo = ''
  /** Called before and after each request is served. */
  around: (method: string, when: 'before' | 'after') => unknown = () => undefined
  /** Lets a task of `hold` end. */
  release: () => void = () => undefined
  private readonly held: Promise<void> = new Promise((resolve) => {
    this.release = resolve
  })
  private readonly stops: Map<string, () => void> = new Map()
  private readonly http = createServer((request, response) => {
    this.answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  private readonly transport: JsonRpcTransportHandler

  constructor() {
    const executor: AgentExecutor = {
      execute: (context, bus) => this.execute(context, bus),
      cancelTask: async (taskId) => {
        this.cancelled.push(taskId)
        this.stops.get(taskId)?.()
      },
    }
    this.transport = new JsonRpcTransportHandler(
      new DefaultRequestHandler(this.card(), new InMemoryTaskStore(), executor),
    )
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.http.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
    this.http.closeAllConnections()
    await new Promise((resolve) => this.http.close(resolve))
  }

  private card(): AgentCard {
    const url = this.leadsTo === '' ? `${this.url}/rpc` : this.leadsTo
    return AgentCard.fromJSON({
      name: 'remote',
      description: this.description,
      version: '1',
      supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      capabilities: { streaming: true },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [],
    })
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') return void response.end(JSON.stringify(AgentCard.toJSON(this.card())))
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>
    const method = String(body['method'])
    this.methods.push(method)
    if ((await this.around(method, 'before')) === 'gone') return void response.destroy()
    this.headers.push(request.headers)
    const context = new ServerCallContext({ requestedVersion: String(request.headers['a2a-version']) })
    const answer = await this.transport.handle(body, context)
    await this.around(method, 'after')
    if (!(Symbol.asyncIterator in answer)) return void response.end(JSON.stringify(answer))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for await (const item of answer) response.write(`data: ${JSON.stringify(item)}\n\n`)
    response.end()
  }

  private async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { userMessage, taskId, contextId, task } = context
    this.messages.push(userMessage)
    const place = { taskId, contextId }
    const given = userMessage.parts[0]?.content
    const text = given?.$case === 'text' ? given.value : ''
    bus.publish(AgentEvent.task(task ?? begun(context)))
    const status = (state: keyof typeof TaskState, said = '') => bus.publish(statusEvent(place, state, said))
    const artifact = (part: object) => bus.publish(artifactEvent(place, part))
    if (task !== undefined) {
      artifact({ text: `You said ${text}.` })
      status('TASK_STATE_COMPLETED')
    } else if (text.startsWith('ask')) status('TASK_STATE_INPUT_REQUIRED', 'Which city?')
    else if (text.startsWith('fail')) status('TASK_STATE_FAILED', 'It cannot be done.')
    else if (text.startsWith('hold')) {
      status('TASK_STATE_WORKING', 'Thinking hard.')
      const stopped = new Promise<void>((resolve) => this.stops.set(taskId, resolve))
      const isStopped = await Promise.race([this.held.then(() => false), stopped.then(() => true)])
      if (!isStopped) artifact({ text: 'Held and done.' })
      status(isStopped ? 'TASK_STATE_CANCELED' : 'TASK_STATE_COMPLETED')
    } else {
      artifact(given?.$case === 'data' ? { data: { got: given.value } } : { text: `Echo: ${text}` })
      status('TASK_STATE_COMPLETED')
    }
    bus.finished()
  }
}

interface Place {
  readonly taskId: string
  readonly contextId: string
}

function begun({ taskId, contextId, userMessage }: RequestContext): Task {
  const task = Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_SUBMITTED', timestamp: now() } })
  return { ...task, history: [userMessage] }
}

function statusEvent({ taskId, contextId }: Place, state: keyof typeof TaskState, said: string) {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', parts: [{ text: said }], taskId, contextId }
  const task = Task.fromJSON({ status: { state, timestamp: now(), ...(said === '' ? {} : { message }) } })
  return AgentEvent.statusUpdate({ taskId, contextId, status: task.status, metadata: undefined })
}

function artifactEvent({ taskId, contextId }: Place, part: object) {
  const { artifacts } = Task.fromJSON({ artifacts: [{ artifactId: 'a', name: 'a', parts: [part] }] })
  return AgentEvent.artifactUpdate({
    taskId,
    contextId,
    artifact: artifacts[0],
    append: false,
    lastChunk: true,
    metadata: undefined,
  })
}

function now(): string {
  return new Date().toISOString()
}
