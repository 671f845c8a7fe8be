import type { ServerResponse } from 'node:http'

/** Where the bytes of a stream go. */
export interface Sink {
  /** Bytes that were written and not yet taken. */
  readonly unsent: number
  /** Gives false when more was written than the other side takes at once. */
  write(bytes: Buffer): boolean
  end(): void
  /** Gives up at once what was not taken. */
  destroy(): void
}

/** Calls by which a sink reports on its other side. */
export interface SinkEvents {
  /** All that was written has been taken. */
  readonly drained: () => void
  /** Nobody reads any more. */
  readonly closed: () => void
}

/**
 * Writes straight to a response of Node: a third of the cost of a web stream. Where the response goes out in chunks, and no
 * other one stands before it, each piece is one write to the socket, made once for all readers that get the same.
 */
export function nodeSink(response: ServerResponse, events: SinkEvents): Sink {
  response.once('close', events.closed)
  response.on('error', () => response.destroy())
  const { socket } = response
  const out = socket !== null && response.chunkedEncoding ? socket : response
  out.on('drain', events.drained)
  response.once('close', () => out.off('drain', events.drained))
  return {
    get unsent() {
      return out.writableLength
    },
    write: (bytes) => {
      if (response.writableEnded || response.destroyed) return true
      return out.write(out === response ? bytes : chunkOf(bytes))
    },
    end: () => response.end(),
    destroy: () => response.destroy(),
  }
}

const LINE_BREAK = Buffer.from('\r\n')
let lastBytes: Buffer | undefined
let lastChunk: Buffer = LINE_BREAK

/** A piece of a body as HTTP/1.1 sends it. The one that was made last is kept: many readers get it one after the other. */
function chunkOf(bytes: Buffer): Buffer {
  if (bytes === lastBytes) return lastChunk
  lastBytes = bytes
  lastChunk = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, LINE_BREAK])
  return lastChunk
}

/** For hosts that take a `Response`: a web stream, and the sink that fills it. */
export function webSink(events: SinkEvents): { readonly sink: Sink; readonly body: ReadableStream<Uint8Array> } {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let isOver = false
  const body = new ReadableStream<Uint8Array>(
    {
      start: (given) => {
        controller = given
      },
      pull: () => events.drained(),
      cancel: () => {
        isOver = true
        events.closed()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: WEB_ROOM }),
  )
  const finish = (close: () => void) => {
    if (isOver) return
    isOver = true
    close()
    events.closed()
  }
  const sink: Sink = {
    get unsent() {
      return Math.max(0, WEB_ROOM - (controller?.desiredSize ?? WEB_ROOM))
    },
    write: (bytes) => {
      if (isOver || controller === undefined) return true
      controller.enqueue(bytes)
      return (controller.desiredSize ?? 1) > 0
    },
    end: () => finish(() => controller?.close()),
    destroy: () => finish(() => controller?.error(new Error('The stream was closed.'))),
  }
  return { sink, body }
}

/** Bytes that a web stream holds before its reader counts as behind. */
const WEB_ROOM = 65_536
