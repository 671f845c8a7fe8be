import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { messageOf } from '../../core/base/error.ts'
import { readHookUrl, resolveHook } from './address.ts'

/** A message that is to be posted. */
export interface HookPost {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeoutMs: number
  readonly allowPrivate: boolean
  /** Ends the request. */
  readonly signal: AbortSignal
}

/** The end of a delivery: a status, or why there is none. Nothing of the answer's body is kept. */
export type HookAnswer = { readonly status: number } | { readonly error: string }

const MAX_ANSWER = 65_536

/** Posts a message to the address that was checked, and to no other: no redirect, no second lookup. Never throws. */
export async function postHook(post: HookPost): Promise<HookAnswer> {
  const stop = new AbortController()
  const end = () => stop.abort(post.signal.reason)
  const timer = setTimeout(() => stop.abort(new Error(`No answer within ${post.timeoutMs} ms.`)), post.timeoutMs)
  post.signal.addEventListener('abort', end, { once: true })
  try {
    return { status: await unlessAborted(send(post, stop.signal), stop.signal) }
  } catch (error) {
    return { error: messageOf(stop.signal.aborted ? stop.signal.reason : error).slice(0, 300) }
  } finally {
    clearTimeout(timer)
    post.signal.removeEventListener('abort', end)
  }
}

async function send({ url, headers, body, allowPrivate }: HookPost, signal: AbortSignal): Promise<number> {
  const place = readHookUrl(url, allowPrivate)
  const { address, family } = await resolveHook(place, { allowPrivate, signal })
  signal.throwIfAborted()
  const options: RequestOptions = {
    method: 'POST',
    signal,
    agent: false,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': 'legate-webhooks',
      connection: 'close',
    },
    lookup: (_, { all }, done) => {
      if (all === true) done(null, [{ address, family }])
      else done(null, address, family)
    },
  }
  const begin = place.protocol === 'http:' ? httpRequest : httpsRequest
  return new Promise((resolve, reject) => {
    const sent = begin(place, options, (answer) => {
      readAway(answer).then(() => resolve(answer.statusCode ?? 0), reject)
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

/** The status counts once the answer has ended, or is longer than anybody would write. */
async function readAway(answer: IncomingMessage): Promise<void> {
  let bytes = 0
  for await (const part of answer) {
    bytes += (part as Buffer).length
    if (bytes > MAX_ANSWER) break
  }
  answer.destroy()
}

/** A lookup of the system cannot be ended: it is left behind. */
function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    promise.then(resolve, reject)
  })
}
