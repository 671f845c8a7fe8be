import { parseOwnJson } from '../../base/json.ts'
import type { EventBody, EventRow } from '../../graph/event.ts'
import type { OutcomeRecord } from '../../graph/outcome.ts'
import {
  type OutcomePlace,
  type PackedOutcome,
  packOutcome,
  packUsage,
  toOutcome,
  toUsage,
  type UsageParts,
  unless,
} from './parts.ts'

type Place = Omit<EventRow, 'seq' | 'body' | 'told'>
/** Files say `turnId`, as rows do. */
type PackedPlace = Partial<Omit<Place, 'runId'>> & { readonly turnId?: string }

const NOWHERE: Place = { at: 0, conversationId: '', runId: '', nodeId: null, path: [], parentId: null }

/**
 * Writes the events of a commit as JSON: without their sequence, and with only those parts of their place that differ from the
 * event before.
 */
export function packEvents(events: readonly EventRow[]): string {
  let before: Place = NOWHERE
  const packed = events.map((event) => {
    const difference = {
      at: unless(event.at, before.at),
      conversationId: unless(event.conversationId, before.conversationId),
      turnId: unless(event.runId, before.runId),
      nodeId: unless(event.nodeId, before.nodeId),
      path: isSamePath(event.path, before.path) ? undefined : event.path,
      parentId: unless(event.parentId, before.parentId),
      body: packBody(event),
      told: event.told,
    }
    before = event
    return difference
  })
  return JSON.stringify(packed)
}

/** Reads packed events; `last` is the sequence after them. Throws when the text is not a packed one. */
export function unpackEvents(text: string, last: number): EventRow[] {
  const packed = parseOwnJson(text) as (PackedPlace & Pick<EventRow, 'told'> & { readonly body: PackedBody })[]
  let seq = last - packed.length
  let before: Place = NOWHERE
  return packed.map(({ body, told, turnId: runId = before.runId, ...place }) => {
    const { at, conversationId, nodeId, path, parentId }: Place = { ...before, ...place }
    const whole = toBody(body, { runId, conversationId })
    const event: EventRow = { seq: ++seq, at, conversationId, runId, nodeId, path, parentId, body: whole }
    before = event
    return told === undefined ? event : { ...event, told }
  })
}

/** An event as a journal has it: whole, with the names that files use. */
export type JournalEvent = Omit<EventRow, 'runId' | 'body'> & {
  readonly turnId: string
  readonly body: Exclude<EventBody, Compaction | RunEnd> | PackedCompaction | Omit<RunEnd, 'status'>
}

export function toJournal({ runId, body, ...place }: EventRow): JournalEvent {
  const { seq, at, conversationId, nodeId, path, parentId, told } = place
  const event = { seq, at, conversationId, turnId: runId, nodeId, path, parentId, body: writtenBody(body) }
  return told === undefined ? event : { ...event, told }
}

export function fromJournal({ turnId: runId, body, ...place }: JournalEvent): EventRow {
  const { seq, at, conversationId, nodeId, path, parentId, told } = place
  const read = body.type === 'compaction' ? toCompaction(body) : body.type === 'run-end' ? toRunEnd(body.outcome) : body
  const event = { seq, at, conversationId, runId, nodeId, path, parentId, body: read }
  return told === undefined ? event : { ...event, told }
}

function writtenBody(body: EventBody): JournalEvent['body'] {
  if (body.type === 'run-end') return { type: body.type, outcome: body.outcome }
  return body.type === 'compaction' ? packCompaction(body) : body
}

type RunEnd = Extract<EventBody, { readonly type: 'run-end' }>
type Message = Extract<EventBody, { readonly type: 'message' }>
type Compaction = Extract<EventBody, { readonly type: 'compaction' }>
type PackedCompaction = Omit<Compaction, 'fromRunId' | 'toRunId'> & {
  readonly fromTurnId: string
  readonly toTurnId: string
}
type PackedBody =
  | Exclude<EventBody, { readonly type: 'message' | 'run-end' | 'usage' | 'compaction' }>
  | PackedCompaction
  | (Pick<Message, 'type' | 'role' | 'content'> & Partial<Message>)
  | { readonly type: 'run-end'; readonly outcome: PackedOutcome }
  | { readonly type: 'usage'; readonly usage?: UsageParts | undefined; readonly model: string }

/** Omits usual values from the most frequent events. */
function packBody({ body, runId, conversationId }: EventRow): PackedBody {
  if (body.type === 'usage') return { type: body.type, usage: packUsage(body.usage), model: body.model }
  if (body.type === 'run-end') {
    return { type: body.type, outcome: packOutcome(body.outcome, { runId, conversationId }) }
  }
  if (body.type === 'compaction') return packCompaction(body)
  return body.type === 'message' ? packMessage(body) : body
}

function packCompaction({ fromRunId: fromTurnId, toRunId: toTurnId, turns, ...others }: Compaction): PackedCompaction {
  return { ...others, fromTurnId, toTurnId, turns }
}

function toCompaction({ fromTurnId: fromRunId, toTurnId: toRunId, turns, ...others }: PackedCompaction): Compaction {
  return { ...others, fromRunId, toRunId, turns }
}

function packMessage({ type, role, purpose, content, state, calls, streamed, reasoning }: Message): PackedBody {
  return {
    type,
    role,
    purpose: unless(purpose, null),
    content,
    state: unless(state, 'finished'),
    calls: calls.length === 0 ? undefined : calls,
    streamed: unless(streamed, null),
    reasoning,
  } as PackedBody
}

/** Rows keep the status in the outcome alone. */
function toRunEnd(outcome: OutcomeRecord): EventBody {
  return { type: 'run-end', status: outcome.status, outcome }
}

function toBody(body: PackedBody, place: OutcomePlace): EventBody {
  if (typeof body?.type !== 'string') throw new TypeError('An event has no type.')
  if (body.type === 'usage') return { type: body.type, usage: toUsage(body.usage), model: body.model }
  if (body.type === 'run-end') return toRunEnd(toOutcome(body.outcome, place))
  if (body.type === 'compaction') return toCompaction(body)
  if (body.type !== 'message') return body
  const { type, role, purpose = null, content, state = 'finished', calls = [], streamed = null, reasoning } = body
  const message = { type, role, purpose, content, state, calls, streamed }
  return reasoning === undefined ? message : { ...message, reasoning }
}

function isSamePath(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((name, index) => name === b[index]))
}
