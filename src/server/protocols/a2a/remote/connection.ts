// Requests to a remote agent: its card, and methods of JSON-RPC.
//
// Must stay true:
//   - Only the host is reached that the grant was asked for: no redirect, no card that leads elsewhere.
//   - No answer is longer than the limit, and none is waited for without end.

import { within } from '../../../../core/base/abort.ts'
import { messageOf } from '../../../../core/base/error.ts'
import { parseJson } from '../../../../core/base/json.ts'
import { hostRequest } from '../../../../doors/grant.ts'
import { type Json, ToolError } from '../../../../index.ts'
import { A2A_VERSION } from '../wire.ts'

const MOST_CHARS = 10_000_000
const ANSWER_MS = 60_000
const SILENT_MS = 120_000

/** How requests go out. */
export interface RemotePlace {
  /** The address of the agent: its card is below it. */
  readonly url: string
  readonly headers: () => Promise<Readonly<Record<string, string>>>
  /** Ends requests. */
  readonly signal: AbortSignal
}

/** An error that the remote agent answered with. */
export class RemoteRefusal extends ToolError {
  readonly rpcCode: number

  constructor(code: number, message: string) {
    super('tool', `The remote agent refused: ${message} (${code})`)
    this.rpcCode = code
  }
}

/** The remote agent sent more than anybody needs: asking again would bring more of it. */
export class RemoteFlood extends ToolError {
  constructor() {
    super('tool', `The remote agent sent more than ${MOST_CHARS} characters.`)
  }
}

/** The card of an agent. */
export async function fetchCard(place: RemotePlace): Promise<Json> {
  const base = place.url.endsWith('/') ? place.url : `${place.url}/`
  const url = place.url.endsWith('.json') ? place.url : new URL('.well-known/agent-card.json', base).href
  const response = await send(place, url, { method: 'GET' }).catch((error: unknown) => {
    if (!(error instanceof TypeError)) throw error
    throw new ToolError('tool', `The card of the remote agent cannot be read: ${url}: ${messageOf(error)}`)
  })
  if (!response.ok) {
    const why = `${url} answered ${response.status}.${CARD_ADVICE[response.status] ?? ''}`
    throw new ToolError('tool', `The card of the remote agent cannot be read: ${why}`)
  }
  return jsonIn(await textOf(response))
}

const CARD_ADVICE: Readonly<Record<number, string>> = {
  401: ' Check the `token` of a2aAgent().',
  403: ' Check what its token may do.',
  404: ' Check the `url` of a2aAgent().',
}

/** Calls a method at the address that the card names. */
export async function callRemote(place: RemotePlace, method: string, params: Json): Promise<Json> {
  const response = await post(place, method, params)
  return resultIn(jsonIn(await textOf(response)), response.status)
}

/** Calls a method that answers with a stream. Ends where the remote agent does not stream. */
export async function* streamRemote(place: RemotePlace, method: string, params: Json): AsyncGenerator<Json> {
  const response = await post(place, method, params)
  const { body } = response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  if (!isStream || body === null) {
    resultIn(jsonIn(await textOf(response)), response.status)
    return
  }
  for await (const data of framesIn(body)) yield resultIn(jsonIn(data), response.status)
}

function post(place: RemotePlace, method: string, params: Json): Promise<Response> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  return send(place, place.url, { method: 'POST', body })
}

async function send(place: RemotePlace, url: string, init: RequestInit): Promise<Response> {
  if (hostRequest(url).name !== hostRequest(place.url).name) {
    throw new ToolError('tool', 'The card of the remote agent leads to another host.')
  }
  const headers = {
    ...(await place.headers()),
    accept: 'application/json, text/event-stream',
    'a2a-version': A2A_VERSION,
    ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  const asked = fetch(url, { ...init, headers, redirect: 'manual', signal: place.signal })
  const response = await within(asked, ANSWER_MS)
  if (response === undefined)
    throw new ToolError('tool', `The remote agent did not answer within ${ANSWER_MS / 1_000} s.`)
  if (response.status >= 300 && response.status < 400) {
    throw new ToolError('tool', `The remote agent sends us elsewhere: ${response.status}.`)
  }
  return response
}

async function textOf({ body }: Response): Promise<string> {
  let text = ''
  if (body === null) return text
  for await (const piece of piecesOf(body)) {
    text += piece
    if (text.length > MOST_CHARS) throw new RemoteFlood()
  }
  return text
}

async function* framesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = ''
  let tail = ''
  for await (const piece of piecesOf(body)) {
    rest += piece
    tail = `${tail.slice(-3)}${piece}`
    if (rest.length > MOST_CHARS) throw new RemoteFlood()
    // A long frame comes in many pieces: what is there already is not read again with each of them.
    if (!/\n\r?\n/.test(tail)) continue
    const frames = rest.replaceAll('\r\n', '\n').split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const lines = frame.split('\n').filter((line) => line.startsWith('data:'))
      if (lines.length > 0) yield lines.map((line) => line.slice(5)).join('\n')
    }
  }
}

async function* piecesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read())
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

function inTime<T>(reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new ToolError('tool', 'The remote agent is silent.')), SILENT_MS)
    reading.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

function jsonIn(text: string): Json {
  const json = parseJson(text, { maxBytes: MOST_CHARS * 4 })
  if (json.ok) return json.value
  throw new ToolError('tool', `The remote agent sent what is not JSON. ${json.error}`)
}

function resultIn(answer: Json, status: number): Json {
  const { result, error } = Object(answer) as {
    readonly result?: Json
    readonly error?: { code?: unknown; message?: unknown }
  }
  if (error !== undefined && typeof error.code === 'number') {
    throw new RemoteRefusal(error.code, typeof error.message === 'string' ? error.message.slice(0, 1_000) : 'no reason')
  }
  if (result === undefined) throw new ToolError('tool', `The remote agent answered ${status} without a result.`)
  return result
}
