// Routes of runs beside those of operations: a start answers as it is asked to, with the run, its outcome or its stream.

import { isTraceparent } from '../../../core/base/traceparent.ts'
import { ANY_JSON, bodySchema, ID, OBJECT, SHORT } from '../../../core/operations/schemas.ts'
import { InputError, type Run, type ScopedRuntime } from '../../../index.ts'
import type { StreamItem } from '../../stream/frames.ts'
import type { StreamRequest } from '../../stream/reader.ts'
import { type Answer, json, NOTHING, type Route, type RouteCall } from '../table/route.ts'
import { routesOf } from '../table/routes-of.ts'
import { answer, bodyOf, given, param } from './parts.ts'
import { EVENTS, placeOf, runStream, START_STREAM_QUERY, STREAM_QUERY, wantsStream } from './run-stream.ts'

type StartOptions = NonNullable<Parameters<ScopedRuntime['run']>[2]>

export const START_PROPERTIES = {
  input: { ...ANY_JSON, description: 'The input: a text, or what the input schema of the agent wants.' },
  grant: { ...OBJECT, description: 'Narrows what this run may do: `use`, `ask`, `free` and `deny`.' },
  budget: { ...OBJECT, description: 'Limits of this run, within those of the agent and of your token.' },
  attributes: { ...OBJECT, description: 'Facts for tools. Models do not see them.' },
  whileRunning: { enum: ['queue', 'restart'], description: 'What to do while a run is going on in the conversation.' },
}

const START_BODY = bodySchema(
  {
    agent: { ...SHORT, description: 'The name of the agent.' },
    ...START_PROPERTIES,
    conversationId: { ...ID, description: 'Goes on in this conversation.' },
    conversationKey: { ...SHORT, description: 'Goes on in the conversation that you know by this text, or begins it.' },
    title: { ...SHORT, description: 'The title of a new conversation.' },
  },
  ['agent'],
)

const WAIT = {
  type: 'integer',
  description: 'Seconds to wait for the outcome. Without it the answer comes at once.',
  minimum: 0,
  maximum: 60,
} as const

const MEDIA_BYTES = 10_000_000

/** Headers of every start. */
export const START_HEADERS = {
  'Idempotency-Key': 'The same key and the same request give the same run, however often you send them.',
  Accept: '`text/event-stream` gives the stream of the run as the answer.',
  traceparent: 'The place of the caller in a trace (W3C Trace Context): the trace of the run goes on from there.',
}

export const START_ANSWERS = {
  200: answer('RunStart', 'The run has ended within `wait`: the run with its outcome.'),
  202: answer('RunStart', 'The run is recorded and will be done.'),
}

const START: Route = {
  method: 'POST',
  path: '/v1/runs',
  scope: 'start',
  summary: 'Starts an agent.',
  query: { wait: WAIT, ...START_STREAM_QUERY },
  headers: START_HEADERS,
  body: START_BODY,
  maxBody: MEDIA_BYTES,
  answers: START_ANSWERS,
  example: { body: { agent: 'greeter', input: 'Hello' } },
  handler: (call) => {
    const { agent, ...rest } = bodyOf<{ readonly agent: string }>(call)
    return start(call, agent, rest)
  },
}

const READ_EVENTS: Route = {
  method: 'GET',
  path: '/v1/runs/{id}/events',
  scope: 'read',
  summary: 'The events of a run and of what it delegated, as a stream.',
  description:
    'Server-sent events until the run has ended. With `Accept: application/json` it is a page of recorded events instead. 204: the run has ended and you have everything.',
  params: { id: 'id' },
  query: {
    ...STREAM_QUERY,
    limit: { type: 'integer', description: 'The most events of a page.', minimum: 1, maximum: 1_000, default: 200 },
  },
  headers: { 'Last-Event-ID': 'The last `id:` that you have.', Accept: '`application/json` gives a page.' },
  answers: {
    200: { ...EVENTS, page: 'RunEvents' },
    204: { description: 'There is nothing more.' },
  },
  handler: readEvents,
}

const RESULT: Route = {
  method: 'GET',
  path: '/v1/runs/{id}/result',
  scope: 'read',
  summary: 'The outcome of a run.',
  params: { id: 'id' },
  query: { wait: WAIT },
  answers: { 200: answer('Result', 'The run has ended: its outcome.'), 202: answer('Result', 'It has not yet.') },
  handler: (call) =>
    counted(call, async () => {
      const run = await call.runtime.attach(param(call))
      const outcome = await outcomeWithin(run, call)
      return outcome === undefined ? json({ runId: run.id, outcome: null }, 202) : json({ runId: run.id, outcome })
    }),
}

/** Routes of runs. */
export const RUN_ROUTES: readonly Route[] = [START, ...routesOf('runs', { look: [READ_EVENTS, RESULT] })]

/** Starts a run, and answers with it, its outcome or its stream. */
export async function start(call: RouteCall, agent: string, body: object): Promise<Answer> {
  const { runtime, server, principal } = call
  if (!wantsStream(call, false)) return counted(call, () => startNow(call, agent, body))
  runtime.require('read')
  server.streams.check(principal)
  return startNow(call, agent, body)
}

/** Counts who waits like a stream, and refuses one too many before anything is begun. */
async function counted(call: RouteCall, work: () => Promise<Answer>): Promise<Answer> {
  const { server, principal, query } = call
  const release = (query.number('wait') ?? 0) > 0 ? server.streams.hold(principal) : undefined
  try {
    return await work()
  } finally {
    release?.()
  }
}

async function startNow(call: RouteCall, agent: string, body: object): Promise<Answer> {
  const { runtime, headers } = call
  const { input, ...options } = body as { readonly input?: unknown }
  const key = checkKey(headers.get('idempotency-key') ?? undefined)
  const run = runtime.run(agent, input, { ...options, ...given({ key }), ...tracedFrom(headers) } as StartOptions)
  const location = { location: `/v1/runs/${run.id}` }
  // It reads from the first word on: what a quick model says is not to be had later.
  if (wantsStream(call, false)) return { status: 200, stream: await begun(runStream(call, run, 0)), headers: location }
  await leave(await begun(runStream(call, run, 0)))
  const outcome = await outcomeWithin(run, call)
  return { ...json(await lookOf(call, run, outcome), outcome === undefined ? 202 : 200), headers: location }
}

/** The run, with its answer for who waited for it. Who may start but not read gets the ids only. */
async function lookOf({ runtime }: RouteCall, { id, conversationId }: Run, outcome: unknown): Promise<object> {
  if (!runtime.may('read')) return { runId: id, conversationId }
  const look = await runtime.look(id)
  return outcome === undefined ? look : { ...look, outcome }
}

/** The place of the caller in a trace. A header that says nothing usable is no reason to refuse a run. */
function tracedFrom(headers: Headers): { readonly traceparent?: string } {
  const traceparent = headers.get('traceparent')
  return isTraceparent(traceparent) ? { traceparent } : {}
}

function checkKey(key: string | undefined): string | undefined {
  if (key === undefined || /^[\x21-\x7e]{1,200}$/.test(key)) return key
  throw new InputError('invalid_input', 'The header Idempotency-Key must be 1 to 200 visible characters.')
}

/** Resolves when the run is in the rows; throws why it could not be put there. */
async function begun(stream: StreamRequest): Promise<StreamRequest> {
  const { items } = stream
  const first = { result: (await items.next()) as IteratorResult<StreamItem> | undefined }
  const next = async () => {
    const { result } = first
    first.result = undefined
    return result ?? items.next()
  }
  return { ...stream, items: { next, return: async () => (await items.return?.()) ?? END } }
}

const END: IteratorReturnResult<undefined> = { value: undefined, done: true }

async function leave({ items }: StreamRequest): Promise<void> {
  await items.return?.()
}

/** The outcome if the run ends within the time that the caller waits. */
async function outcomeWithin(run: Run, { query, signal }: RouteCall): Promise<unknown> {
  const seconds = query.number('wait') ?? 0
  let timer: NodeJS.Timeout | undefined
  let leave: (() => void) | undefined
  const over = new Promise<undefined>((resolve) => {
    leave = () => resolve(undefined)
    timer = setTimeout(leave, seconds * 1_000)
    if (seconds > 0) signal.addEventListener('abort', leave, { once: true })
  })
  try {
    return await Promise.race([run.result, over])
  } finally {
    clearTimeout(timer)
    if (leave !== undefined && seconds > 0) signal.removeEventListener('abort', leave)
  }
}

async function readEvents(call: RouteCall): Promise<Answer> {
  const { runtime, query } = call
  const runId = param(call)
  const { lastSeq, state } = await runtime.look(runId)
  const after = placeOf(call, lastSeq)
  if (!wantsStream(call, true)) {
    const types = query.list('types')
    const limit = query.number('limit') ?? 200
    return json(await runtime.eventPage(runId, { after, limit, ...(types === undefined ? {} : { types }) }))
  }
  if (state === 'ended' && after > 0) {
    const { events } = await runtime.eventPage(runId, { after, limit: 1 })
    if (events.length === 0) return NOTHING
  }
  return { status: 200, stream: runStream(call, await runtime.attach(runId), after) }
}
