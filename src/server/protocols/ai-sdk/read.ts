// Reads what a page of `useChat` posts.
//
// Owns:      the form of a request. Nothing of it is used but the newest message of the person, words on approvals, results of calls
//            that the page executes, and ids.
// Called by: the routes of the chat.
// Must stay true: the page's copy of the history is never trusted. Everything else is read from rows.

import { type Content, InputError, type Json } from '../../../index.ts'

/** A request of a page: something new that a person says, or wants. */
export interface ChatRequest {
  /** The page's id of the chat. */
  readonly chatId: string
  /** True: the last answer is made anew. */
  readonly isAgain: boolean
  /** The message that the request is about: one that is edited, answered anew, or gone on with. */
  readonly messageId: string | null
  /** The newest message of the person; null where the page goes on with an answer. */
  readonly said: PageMessage | null
  /** The words of the person on the calls of the newest answer. */
  readonly words: ChatWords
  /** The page's results of the calls of the newest answer. The rows say which of them the page may give. */
  readonly outputs: ChatOutputs
}

/** A message of a person under the page's own id. */
export interface PageMessage {
  readonly id: string
  readonly content: Content
}

/** A person's words on the calls of one answer. */
export interface ChatWords {
  /** The answer that asks; null where there are no words. */
  readonly messageId: string | null
  readonly list: readonly ChatAnswer[]
}

/** A person's word on one call. */
export interface ChatAnswer {
  /** The node that asks. */
  readonly id: string
  readonly allow: boolean
  readonly reason: string | null
  /** The hash of what the page has shown; null where the page does not keep it. */
  readonly seen: string | null
}

/** The results of the calls of one answer, as the page holds them. */
export interface ChatOutputs {
  /** The answer that called; null where there are no results. */
  readonly messageId: string | null
  readonly list: readonly ChatOutput[]
}

/** The result of one call. */
export interface ChatOutput {
  readonly toolCallId: string
  readonly result: Json
  readonly isError: boolean
  /** The hash of the call that the page was shown; null where the page does not keep it. */
  readonly seen: string | null
}

type Fields = Readonly<Record<string, Json | undefined>>

const TRIGGERS = ['submit-message', 'regenerate-message']
const LONGEST_ID = 500

/** Throws an InputError for a body that no page of `useChat` sends. */
export function readChatRequest(body: Json): ChatRequest {
  const { id, messages, trigger = 'submit-message', messageId } = fieldsOf(body)
  if (!isName(id)) refuse('"id" must be the id of the chat')
  if (!Array.isArray(messages)) refuse('"messages" must be a list')
  if (!TRIGGERS.includes(String(trigger))) refuse(`"trigger" must be one of ${TRIGGERS.join(', ')}`)
  if (messageId != null && !isName(messageId)) refuse('"messageId" must be the id of a message')
  const list = messages.map((message) => fieldsOf(message as Json))
  const last = list.at(-1)
  const isAgain = trigger === 'regenerate-message'
  return {
    chatId: id,
    isAgain,
    messageId: isName(messageId) ? messageId : null,
    said: isAgain || last?.['role'] !== 'user' ? null : readMessage(last),
    words: isAgain ? NONE : readAnswer(list, readWord),
    outputs: isAgain ? NONE : readAnswer(list, readOutput),
  }
}

const NONE = { messageId: null, list: [] }

function readMessage({ id, parts }: Fields): PageMessage {
  if (!isName(id)) refuse('the newest message needs an "id"')
  const blocks = partsOf(parts).flatMap(readPart)
  const [first] = blocks
  if (first === undefined) refuse('the newest message has neither text nor a file')
  const isText = blocks.length === 1 && first.type === 'text'
  return { id, content: isText ? first.text : blocks }
}

type Block = Exclude<Content, string>[number]

function readPart({ type, text, url, mediaType }: Fields): Block[] {
  if (type === 'text' && typeof text === 'string') return text.trim() === '' ? [] : [{ type: 'text', text }]
  if (type !== 'file') return []
  const data = typeof url === 'string' ? /^data:[^,]{0,200};base64,(.*)$/s.exec(url)?.[1] : undefined
  // A server that fetched what a caller names would fetch from inside.
  if (data === undefined || typeof mediaType !== 'string') refuse('a file is sent as data: its "url" begins with data:')
  const kind = ['image', 'audio', 'video'].find((one) => mediaType.startsWith(`${one}/`)) ?? 'file'
  return [{ type: kind as 'file', mediaType, data }]
}

/** Reads the parts of the page's newest answer. */
function readAnswer<T>(messages: readonly Fields[], read: (part: Fields, parts: readonly Fields[]) => T[]) {
  const answer = messages.findLast(({ role }) => role === 'assistant')
  if (answer === undefined || !isName(answer['id'])) return NONE
  const parts = partsOf(answer['parts'])
  const list = parts.flatMap((part) => read(part, parts))
  return list.length === 0 ? NONE : { messageId: answer['id'], list }
}

function readOutput({ toolCallId, state, output, errorText }: Fields, parts: readonly Fields[]): ChatOutput[] {
  if (!isName(toolCallId)) return []
  const seen = shownIn(parts, 'data-question', (shown) => shown['toolCallId'] === toolCallId)
  if (state === 'output-available') return [{ toolCallId, result: output ?? null, isError: false, seen }]
  return state === 'output-error' ? [{ toolCallId, result: errorText ?? 'It failed.', isError: true, seen }] : []
}

function readWord({ state, approval }: Fields, parts: readonly Fields[]): ChatAnswer[] {
  if (state !== 'approval-responded') return []
  const { id, approved, reason } = fieldsOf(approval ?? null)
  if (!isName(id) || typeof approved !== 'boolean') refuse('an approval needs "id" and "approved"')
  const seen = shownIn(parts, 'data-approval', ({ nodeId, status }) => nodeId === id && status === 'open')
  const why = typeof reason === 'string' && reason.trim() !== '' ? reason : null
  return [{ id, allow: approved, reason: why, seen }]
}

/** The hash in the last part of this type that fits: what the page has shown. */
function shownIn(parts: readonly Fields[], type: string, fits: (shown: Fields) => boolean): string | null {
  const shown = parts.filter((part) => part['type'] === type).map(({ data }) => fieldsOf(data ?? null))
  const seen = shown.findLast(fits)?.['seen']
  return typeof seen === 'string' ? seen : null
}

function partsOf(parts: Json | undefined): readonly Fields[] {
  return Array.isArray(parts) ? parts.map((part) => fieldsOf(part as Json)) : []
}

function fieldsOf(value: Json): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= LONGEST_ID
}

function refuse(why: string): never {
  throw new InputError('invalid_input', `This is no request of useChat: ${why}.`)
}
