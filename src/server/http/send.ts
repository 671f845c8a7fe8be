import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { nodeSink, webSink } from '../stream/sink.ts'
import type { Streams } from '../stream/streams.ts'
import { type Answered, ownerOf } from './service.ts'

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
}

/** A reader of a long body that takes nothing for this long is gone. */
const SILENT_MS = 60_000

/** Writes an answer to a response of Node. */
export async function sendToNode(answer: Answered, response: ServerResponse, streams: Streams): Promise<void> {
  const { stream, lines, identity } = answer
  if (stream !== undefined && identity !== undefined) {
    response.writeHead(answer.status, { ...answer.headers, ...STREAM_HEADERS })
    response.flushHeaders()
    await streams.begin(ownerOf(identity), stream, (events) => nodeSink(response, events))
  } else if (lines !== undefined) {
    response.writeHead(answer.status, { 'content-type': 'application/x-ndjson', ...answer.headers })
    whenTaken(response, answer.sent ?? (() => undefined))
    await pipeline(Readable.from(withBreaks(lines)), response)
  } else {
    const { text, type } = bodyOf(answer)
    const length = text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) }
    response.writeHead(answer.status, { ...type, ...length, ...answer.headers })
    if (answer.sent !== undefined) whenTaken(response, answer.sent)
    response.end(text)
  }
}

/** Calls it when all of the answer was taken, or its reader is gone: silent for too long, too. */
function whenTaken(response: ServerResponse, sent: () => void): void {
  response.once('close', sent)
  response.setTimeout(SILENT_MS, () => response.destroy())
  if (response.destroyed) sent()
}

/** Makes a `Response` of an answer, for other hosts. */
export function toResponse(answer: Answered, streams: Streams): Response {
  const { stream, lines, identity, status } = answer
  if (stream !== undefined && identity !== undefined) {
    const parts: { body?: ReadableStream<Uint8Array> } = {}
    streams
      .begin(ownerOf(identity), stream, (events) => {
        const { sink, body } = webSink(events)
        parts.body = body
        return sink
      })
      .catch(() => undefined)
    return new Response(parts.body ?? null, { status, headers: { ...answer.headers, ...STREAM_HEADERS } })
  }
  if (lines !== undefined) {
    const given = Readable.from(withBreaks(lines))
    if (answer.sent !== undefined) given.once('close', answer.sent)
    const body = Readable.toWeb(given) as ReadableStream<Uint8Array>
    return new Response(body, { status, headers: { 'content-type': 'application/x-ndjson', ...answer.headers } })
  }
  const { text, type } = bodyOf(answer)
  if (answer.sent !== undefined && text !== undefined) {
    const parts = piecesOf(Buffer.from(text), answer.sent)
    return new Response(parts, { status, headers: { ...type, ...answer.headers } })
  }
  const body = typeof text === 'string' || text == null ? text : new Uint8Array(text)
  return new Response(body ?? null, { status, headers: { ...type, ...answer.headers } })
}

function bodyOf({ json, text, bytes }: Answered): {
  readonly text?: string | Buffer
  readonly type: Readonly<Record<string, string>>
} {
  if (bytes !== undefined) return { text: bytes, type: { 'content-type': 'text/plain; charset=utf-8' } }
  if (text !== undefined) return { text, type: { 'content-type': 'text/plain; charset=utf-8' } }
  if (json === undefined) return { type: {} }
  return { text: JSON.stringify(json), type: { 'content-type': 'application/json' } }
}

async function* withBreaks(lines: AsyncIterable<string>): AsyncGenerator<Buffer> {
  for await (const line of lines) yield Buffer.from(`${line}\n`)
}

const PIECE = 262_144

/** A long body piece by piece. `sent` is called after the last piece, or when its reader leaves or takes nothing for long. */
function piecesOf(bytes: Buffer, sent: () => void): ReadableStream<Uint8Array> {
  let at = 0
  let timer = setTimeout(sent, SILENT_MS).unref()
  const over = () => {
    clearTimeout(timer)
    sent()
  }
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      clearTimeout(timer)
      if (at >= bytes.length) {
        controller.close()
        return over()
      }
      timer = setTimeout(sent, SILENT_MS).unref()
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + PIECE)))
      at += PIECE
    },
    cancel: over,
  })
}
