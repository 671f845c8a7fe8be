import type { Transport } from '@modelcontextprotocol/client'
import { ToolError } from '../../base/error.ts'
import { parseJson } from '../../base/json.ts'
import { type HostRequest, hostRequest } from '../../grant/request.ts'
import { MOST_MESSAGE_BYTES, MOST_MESSAGE_DEPTH } from './options.ts'
import { unreadAnswer, usableMessage } from './usable-message.ts'

/** How long to wait for an answer on another way after its stream broke. */
const RESUME_MS = 2_000

/**
 * A server over HTTP. It limits the size and depth of messages. It calls `onLost` when a request will get no answer
 * because its stream broke.
 */
export async function httpTransport(
  /** The address, and the decided host: no other is reached. */
  request: HostRequest,
  headers: Readonly<Record<string, string>>,
  onLost: (reason: string) => void,
): Promise<Transport & { terminateSession(): Promise<void> }> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const open = new Set<unknown>()
  const broken = (id: unknown, reason: string) => {
    if (!open.has(id)) return
    setTimeout(() => open.has(id) && onLost(reason), RESUME_MS).unref()
  }
  const transport = new StreamableHTTPClientTransport(new URL(request.url), {
    requestInit: { headers: { ...headers } },
    fetch: (to, init) => boundedFetch(to, init, { open, broken, host: request.name }),
    reconnectionOptions: {
      initialReconnectionDelay: 200,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 3,
    },
  })
  transport.onmessage = (message: object) => {
    if ('id' in message) open.delete(message.id)
  }
  return transport as Transport & { terminateSession(): Promise<void> }
}

interface Watch {
  /** Requests without an answer so far. */
  readonly open: Set<unknown>
  readonly broken: (id: unknown, reason: string) => void
  readonly host: string
}

async function boundedFetch(to: string | URL, init: RequestInit | undefined, watch: Watch): Promise<Response> {
  if (hostRequest(to).name !== watch.host) throw new ToolError('tool', 'the server sent us to another host')
  const id = requestId(init)
  if (id !== undefined) watch.open.add(id)
  try {
    const response = await fetch(to, { ...init, redirect: 'manual' })
    const { body, status } = response
    if (body === null || NO_BODY.has(status)) return response
    const type = response.headers.get('content-type') ?? ''
    if (type.includes('text/event-stream')) {
      const over = (reason: string) => id !== undefined && watch.broken(id, reason)
      return replaced(response, bounded(body, { isEvents: true, over }).pipeThrough(usableEvents()))
    }
    const text = await new Response(bounded(body, { isEvents: false, over: () => undefined })).text()
    if (id !== undefined) watch.open.delete(id)
    return replaced(response, type.includes('json') && response.ok ? usableJson(text) : text)
  } catch (error) {
    watch.open.delete(id)
    throw error
  }
}

const NO_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304])

/** Drops the length and encoding headers, because the body has been decoded. */
function replaced({ status, statusText, headers }: Response, body: string | ReadableStream<Uint8Array>): Response {
  const kept = new Headers(headers)
  kept.delete('content-length')
  kept.delete('content-encoding')
  return new Response(body, { status, statusText, headers: kept })
}

function usableJson(text: string): string {
  const parsed = parseJson(text, { maxBytes: MOST_MESSAGE_BYTES, maxDepth: MOST_MESSAGE_DEPTH })
  if (!parsed.ok) throw new ToolError('tool', `the server sent no usable JSON: ${parsed.error}`)
  const message = usableMessage(parsed.value)
  return message === parsed.value || message === null ? text : JSON.stringify(message)
}

/** Turns a stream of events into one whose answers the library can read. It passes an event on when it is complete. */
function usableEvents(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let rest = ''
  return new TransformStream({
    transform(chunk, controller) {
      // An end may span two chunks, so the last characters of the rest are searched again.
      const from = Math.max(0, rest.length - 3)
      rest += decoder.decode(chunk, { stream: true })
      EVENT_END.lastIndex = from
      let begin = 0
      let whole = ''
      for (let end = EVENT_END.exec(rest); end !== null; end = EVENT_END.exec(rest)) {
        whole += `${usableEvent(rest.slice(begin, end.index))}${end[0]}`
        begin = EVENT_END.lastIndex
      }
      rest = rest.slice(begin)
      if (whole !== '') controller.enqueue(encoder.encode(whole))
    },
    flush(controller) {
      controller.enqueue(encoder.encode(rest + decoder.decode()))
    },
  })
}

const EVENT_END = /\r?\n\r?\n|\r\r/g

function usableEvent(event: string): string {
  if (!event.includes('data:')) return event
  const lines = event.split(/\r\n|\n|\r/)
  const isData = (line: string) => line.startsWith('data:')
  const data = lines
    .filter(isData)
    .map((line) => line.slice('data:'.length).trim())
    .join('\n')
  if (data === '') return event
  const parsed = parseJson(data, { maxBytes: MOST_MESSAGE_BYTES, maxDepth: MOST_MESSAGE_DEPTH })
  const message = parsed.ok ? usableMessage(parsed.value) : unreadAnswer(data, parsed.error)
  if (message === null || (parsed.ok && message === parsed.value)) return event
  return [...lines.filter((line) => !isData(line)), `data: ${JSON.stringify(message)}`].join('\n')
}

/** Our requests have numbers; the library's own, such as `server/discover`, have names. */
function requestId(init: RequestInit | undefined): number | undefined {
  if (init?.method !== 'POST' || typeof init.body !== 'string') return undefined
  const parsed = parseJson(init.body)
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return undefined
  const id = 'method' in parsed.value && 'id' in parsed.value ? parsed.value['id'] : undefined
  return typeof id === 'number' ? id : undefined
}

interface Bounds {
  /** True for events: each may be as long as a message, and the stream has no end. */
  readonly isEvents: boolean
  readonly over: (reason: string) => void
}

function bounded(body: ReadableStream<Uint8Array>, { isEvents, over }: Bounds): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const size = new EventSize()
  return new ReadableStream({
    async pull(controller) {
      try {
        if (isEvents) await othersTurn()
        const { done, value } = await reader.read()
        if (done) {
          controller.close()
          return over('the server ended the connection in the middle of an answer')
        }
        if (size.after(value, isEvents) > MOST_MESSAGE_BYTES) {
          const words = `the server sent a message of more than ${MOST_MESSAGE_BYTES / 1e6} MB`
          over(words)
          controller.error(new ToolError('tool', words))
          return await reader.cancel()
        }
        controller.enqueue(value)
      } catch (error) {
        controller.error(error)
        over('the connection broke in the middle of an answer')
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

/** Lets others work between two chunks: a server may send events faster than we can read them. */
function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Counts the bytes since the last empty line, or in all. */
class EventSize {
  private size = 0
  private isLineEmpty = true

  after(chunk: Uint8Array, isEvents: boolean): number {
    if (!isEvents) {
      this.size += chunk.length
      return this.size
    }
    let most = 0
    for (const byte of chunk) {
      this.size++
      if (byte === LINE_END && this.isLineEmpty) this.size = 0
      if (byte !== RETURN) this.isLineEmpty = byte === LINE_END
      if (this.size > most) most = this.size
    }
    return most
  }
}

const LINE_END = 0x0a
const RETURN = 0x0d
