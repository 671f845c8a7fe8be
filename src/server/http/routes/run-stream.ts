// Streams of runs: where a reader comes in, and what it gets.

import type { QuerySchema } from '../../../core/operations/operation.ts'
import type { Run, RunEvent } from '../../../index.ts'
import type { StreamRequest } from '../../stream/reader.ts'
import { Problem } from '../problem/problem.ts'
import type { AnswerForm, RouteCall } from '../table/route.ts'

export const STREAM_QUERY: Readonly<Record<string, QuerySchema>> = {
  after: { type: 'integer', description: 'Only events after this `seq`. The header `Last-Event-ID` says the same.' },
  types: { type: 'list', description: 'Only events of these types, with commas between.' },
  slim: { type: 'boolean', description: 'Deltas carry their node and their text only.' },
  live: { type: 'boolean', description: 'With `0` only recorded events.', default: true },
  fields: { type: 'boolean', description: 'Adds an event for each field of an answer that is complete.' },
}

/** The query of a stream that starts a run: it begins at the beginning. */
export const START_STREAM_QUERY: Readonly<Record<string, QuerySchema>> = Object.fromEntries(
  Object.entries(STREAM_QUERY).filter(([name]) => name !== 'after'),
)

/** The answer of a stream of events. */
export const EVENTS: AnswerForm = {
  description: 'Frames, each with an event.',
  type: 'text/event-stream',
  shape: 'RunEvent',
}

/** Where the reader was: the header of a browser that comes back, or the query. */
export function placeOf({ headers, query }: RouteCall, lastSeq: number): number {
  const header = headers.get('last-event-id')
  if (header !== null && !/^\d{1,15}$/.test(header)) {
    throw new Problem('invalid_input', 'The header Last-Event-ID must be a whole number, as in `id:` of an event.')
  }
  const after = header === null ? (query.number('after') ?? 0) : Number(header)
  if (after <= lastSeq) return after
  throw new Problem('invalid_input', `There is no event ${after} yet: the last one is ${lastSeq}.`)
}

/** Does the caller want a stream? A page of JSON is for those who ask for it. */
export function wantsStream({ headers }: RouteCall, isUsual: boolean): boolean {
  const accept = headers.get('accept') ?? ''
  if (accept.includes('text/event-stream')) return true
  return isUsual && !accept.includes('application/json')
}

/** The stream of a run from a place on, to its end. */
export function runStream(call: RouteCall, run: Run, after: number): StreamRequest {
  const { query } = call
  const isFields = query.flag('fields')
  const events = run.events(isFields ? { after, fields: true } : { after, live: query.flag('live') })
  return {
    hello: { runId: run.id, conversationId: run.conversationId, after, now: Date.now() },
    items: wantedOf(call, events),
    isSlim: query.flag('slim'),
    end: { runId: run.id },
  }
}

/** The stream of a whole tree from a place on. It ends when its reader does, or the tree is deleted. */
export async function treeStream(call: RouteCall, conversationId: string, after: number): Promise<StreamRequest> {
  const { query, runtime } = call
  const events = await runtime.events(conversationId, { after, live: query.flag('live') })
  return {
    hello: { conversationId, after, now: Date.now() },
    items: wantedOf(call, events),
    isSlim: query.flag('slim'),
    end: { conversationId },
  }
}

/** Those events that the query asks for. */
function wantedOf({ query }: RouteCall, events: AsyncIterable<RunEvent>): AsyncIterator<RunEvent> {
  const types = query.list('types')
  const isLive = query.flag('live')
  const source = events[Symbol.asyncIterator]()
  if (types === undefined && isLive) return source
  const wanted = types === undefined ? undefined : new Set(types)
  return only(
    source,
    ({ type, seq }) => (wanted === undefined || wanted.has(type)) && (isLive || Number.isInteger(seq)),
  )
}

/** Passes on those items of an iterator that fit. */
function only(source: AsyncIterator<RunEvent>, isWanted: (event: RunEvent) => boolean): AsyncIterator<RunEvent> {
  return {
    next: async () => {
      for (;;) {
        const result = await source.next()
        if (result.done === true || isWanted(result.value)) return result
      }
    },
    return: async () => {
      await source.return?.()
      return { value: undefined, done: true }
    },
  }
}
