// Bodies of requests: how they must come, how large they may be and how long they may take.
//
// Stays true:
// - No more than the limit is ever held, whatever a caller announces.
// - A body that does not come in time is given up, also where the host has no clock for it.

import { parseJson, parseOwnJson } from '../../core/base/json.ts'
import type { Json } from '../../index.ts'
import { Problem } from '../http/problem/problem.ts'

export interface BodyLimits {
  readonly maxBytes: number
  readonly timeoutMs: number
}

/** An answer before the whole body has come ends the connection: nobody waits for the rest. */
const CLOSE = { connection: 'close' }

/** Refuses a body that cannot be meant, before any of it is read. */
export function checkBodyHead(headers: Headers, types: readonly string[], maxBytes: number): void {
  const [type = ''] = (headers.get('content-type') ?? '').split(';')
  if (!types.includes(type.trim().toLowerCase())) {
    throw new Problem('unsupported_type', `The body must be ${types.join(' or ')}.`, CLOSE)
  }
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding !== 'identity') {
    throw new Problem('unsupported_type', 'The body must not be compressed.', CLOSE)
  }
  const length = headers.get('content-length')
  if (length !== null && !(Number(length) <= maxBytes)) throw tooLarge(maxBytes)
}

/** The body is not JSON, or is nested too deep. */
export class UnreadableBody extends Problem {}

/** A body that was read. */
export interface JsonBody {
  /** With U+FFFD for each half of a character. */
  readonly value: Json
  /** As it was sent, to be checked: halves of characters are still there. */
  readonly sent: Json
}

/** Reads a body as JSON, nested at most 64 levels deep. No body is an empty object. */
export async function readJsonBody(request: Request, limits: BodyLimits): Promise<JsonBody> {
  const text = await readText(request, limits)
  if (text === '') return { value: {}, sent: {} }
  const parsed = parseJson(text, { maxDepth: 64, maxBytes: limits.maxBytes })
  if (!parsed.ok) throw new UnreadableBody('invalid_input', `The body cannot be read. ${parsed.error}`)
  const { value } = parsed
  // It has passed: only the halves of characters differ.
  return { value, sent: HALF.test(text) ? (parseOwnJson(text.replace(/^\ufeff/, '')) as Json) : value }
}

/** An escape that may be half of a character. */
const HALF = /\\u[dD][89a-fA-F]/

async function readText(request: Request, limits: BodyLimits): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of readParts(request, limits)) parts.push(part)
  return new TextDecoder('utf-8').decode(Buffer.concat(parts))
}

/** The lines of a body, without holding it whole. */
export async function* readBodyLines(request: Request, limits: BodyLimits): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8')
  let rest = ''
  for await (const part of readParts(request, limits)) {
    const lines = (rest + decoder.decode(part, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines.filter((line) => line !== '')
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

async function* readParts(request: Request, { maxBytes, timeoutMs }: BodyLimits): AsyncGenerator<Uint8Array> {
  const reader = request.body?.getReader()
  if (reader === undefined) return
  const clock = startClock(timeoutMs)
  let bytes = 0
  try {
    for (;;) {
      const { value, done } = await Promise.race([read(reader), clock.over])
      if (done || value === undefined) return
      bytes += value.byteLength
      if (bytes > maxBytes) throw tooLarge(maxBytes)
      yield value
    }
  } finally {
    clock.stop()
    reader.cancel().catch(() => undefined)
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch {
    throw new Problem('invalid_input', 'The body ended before it was whole.', CLOSE)
  }
}

function startClock(timeoutMs: number): { readonly over: Promise<never>; readonly stop: () => void } {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Problem('timeout', 'The body did not come in time.', CLOSE)), timeoutMs)
  })
  over.catch(() => undefined)
  return { over, stop: () => clearTimeout(timer) }
}

function tooLarge(maxBytes: number): Problem {
  return new Problem('too_large', `The body is larger than ${maxBytes} bytes.`, CLOSE)
}
