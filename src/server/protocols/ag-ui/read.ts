// Reads what a client of AG-UI posts.
//
// Must stay true: the client's copy of the history is never trusted. Of its messages, the newest one of the person is used, and
// results of tools that it executes. Everything else is read from rows.

import { parseJson } from '../../../core/base/json.ts'
import { type Content, InputError, type Json } from '../../../index.ts'

/** A request of a client: something new that a person says, or what it answers. */
export interface RunInput {
  /** The client's ids. */
  readonly threadId: string
  readonly runId: string
  /** The newest message of the person; null where the client goes on with what waited. */
  readonly said: Content | null
  /** The answers to interrupts; null where there are none. */
  readonly resume: readonly ResumeAnswer[] | null
  /** Results of tools that the client has executed, by the id of the call. */
  readonly results: ReadonlyMap<string, GivenResult>
}

/** The result of a call, and the call as the client was shown it. */
export interface GivenResult {
  readonly result: Json
  /** Null where the client does not send the call along. */
  readonly call: { readonly name: string; readonly input: Json } | null
}

/** The answer to one interrupt. */
export interface ResumeAnswer {
  readonly interruptId: string
  readonly isCancelled: boolean
  readonly payload: Json
}

type Fields = Readonly<Record<string, Json | undefined>>

const LONGEST_ID = 500

/** Throws an InputError for a body that no client of AG-UI sends. */
export function readRunInput(body: Json): RunInput {
  const { threadId, runId, messages, resume } = fieldsOf(body)
  if (!isName(threadId)) refuse('"threadId" must be a text')
  if (!isName(runId)) refuse('"runId" must be a text')
  if (!Array.isArray(messages)) refuse('"messages" must be a list')
  if (resume != null && !Array.isArray(resume)) refuse('"resume" must be a list')
  const list = messages.map((message) => fieldsOf(message as Json))
  const last = list.at(-1)
  return {
    threadId,
    runId,
    said: last?.['role'] === 'user' ? readContent(last['content']) : null,
    resume: Array.isArray(resume) && resume.length > 0 ? resume.map((word) => readWord(word as Json)) : null,
    results: readResults(list),
  }
}

function readContent(content: Json | undefined): Content {
  if (typeof content === 'string' && content.trim() !== '') return content
  const blocks = Array.isArray(content) ? content.flatMap((part) => readPart(fieldsOf(part as Json))) : []
  if (blocks.length === 0) refuse('the newest message has neither text nor media')
  return blocks
}

type Block = Exclude<Content, string>[number]
const MEDIA: Readonly<Record<string, 'image' | 'audio' | 'video' | 'file'>> = {
  image: 'image',
  audio: 'audio',
  video: 'video',
  document: 'file',
}

function readPart({ type, text, source }: Fields): Block[] {
  if (type === 'text' && typeof text === 'string') return text.trim() === '' ? [] : [{ type: 'text', text }]
  const kind = MEDIA[String(type)]
  if (kind === undefined) return []
  const { type: from, value, mimeType } = fieldsOf(source ?? null)
  // A server that fetched what a caller names would fetch from inside.
  if (from !== 'data' || typeof value !== 'string' || typeof mimeType !== 'string') refuse('media is sent as data')
  return [{ type: kind, mediaType: mimeType, data: value }]
}

function readWord(word: Json): ResumeAnswer {
  const { interruptId, status, payload } = fieldsOf(word)
  if (!isName(interruptId)) refuse('an entry of "resume" needs "interruptId"')
  if (status !== 'resolved' && status !== 'cancelled') refuse('the "status" of an entry is "resolved" or "cancelled"')
  return { interruptId, isCancelled: status === 'cancelled', payload: payload ?? null }
}

/** The results at the end of the list: older ones were taken before. */
function readResults(messages: readonly Fields[]): ReadonlyMap<string, GivenResult> {
  const found = new Map<string, GivenResult>()
  for (const { role, toolCallId, content } of messages.toReversed()) {
    if (role !== 'tool') break
    if (isName(toolCallId)) found.set(toolCallId, { result: content ?? null, call: shownCall(messages, toolCallId) })
  }
  return found
}

function shownCall(messages: readonly Fields[], callId: string): GivenResult['call'] {
  const calls = messages.flatMap(({ toolCalls }) => (Array.isArray(toolCalls) ? toolCalls.map(fieldsOf) : []))
  const { name, arguments: text } = fieldsOf(calls.findLast(({ id }) => id === callId)?.['function'] ?? null)
  const input = parseJson(typeof text === 'string' ? text : '')
  return typeof name === 'string' && input.ok ? { name, input: input.value } : null
}

function fieldsOf(value: Json): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= LONGEST_ID
}

function refuse(why: string): never {
  throw new InputError('invalid_input', `This is no request of AG-UI: ${why}.`)
}
