import type { Json } from '../../base/json.ts'
import { type Content, isStoredContent, type ToolCall, textOf } from '../../graph/content.ts'
import { isBeside } from '../../graph/kinds.ts'
import { headOf } from '../../graph/lane.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, LanePlace, Node, Turn } from '../../graph/rows.ts'
import { isFailed, resultContent } from '../../graph/tasks.ts'

export const SESSION_FORMAT = 'legate-session'

/** A conversation as a document: for people to read, and to continue where its rows are not stored. */
export interface SessionDocument {
  readonly format: typeof SESSION_FORMAT
  readonly version: 1
  readonly session_id: Id
  /** The number of ended turns, all of which are in `turns`. */
  readonly turn_count: number
  readonly agent: string
  readonly owner: string | null
  readonly title: string | null
  /** The agent that delegates to it; null for a user's conversation. */
  readonly host: SessionHost | null
  readonly created_at: string
  readonly updated_at: string
  /** Set when it was closed: nobody can continue it. */
  readonly closed_at: string | null
  readonly turns: readonly SessionTurn[]
}

export interface SessionHost {
  readonly agent: string
  readonly conversation_id: Id
}

export interface SessionTurn {
  readonly run_id: Id
  readonly status: string
  readonly error: string | null
  readonly started_at: string | null
  readonly ended_at: string
  readonly messages: readonly SessionMessage[]
}

export type SessionMessage =
  | { readonly role: 'user' | 'developer' | 'briefing'; readonly content: Content }
  | { readonly role: 'assistant'; readonly content: Content; readonly calls?: readonly SessionCall[] }
  | {
      readonly role: 'tool'
      readonly call_id: string
      readonly name: string
      readonly content: Content
      readonly is_error: boolean
    }

export interface SessionCall {
  readonly id: string
  readonly name: string
  readonly input: Json
}

/** Writes the document of a stored conversation; undefined when there is none. */
export function sessionDocument(reader: TreeReader, id: Id): SessionDocument | undefined {
  const row = reader.conversation(id)
  if (row === undefined) return undefined
  const turns = endedTurns(reader, id)
  const parent = row.parentConversationId === null ? undefined : reader.conversation(row.parentConversationId)
  const last = turns.reduce((latest, { endedAt }) => Math.max(latest, endedAt ?? 0), row.createdAt)
  const closedAt = row.metadata['closed_at']
  return {
    format: SESSION_FORMAT,
    version: 1,
    session_id: id,
    turn_count: turns.length,
    agent: row.agent.name,
    owner: row.owner,
    title: row.title,
    host: parent === undefined ? null : { agent: parent.agent.name, conversation_id: parent.id },
    created_at: timeText(row.createdAt),
    updated_at: timeText(last),
    closed_at: typeof closedAt === 'number' ? timeText(closedAt) : null,
    turns: turns.map((turn) => sessionTurn(reader, turn)),
  }
}

/**
 * The document of a conversation's valid history, for another to continue: without replaced turns, and with those of the lane
 * it was forked from.
 */
export function countedDocument(reader: TreeReader, id: Id): SessionDocument | undefined {
  const document = sessionDocument(reader, id)
  if (document === undefined) return undefined
  const turns = countedTurns(reader, id).map((turn) => sessionTurn(reader, turn))
  return { ...document, turn_count: turns.length, turns }
}

function countedTurns(reader: TreeReader, id: Id): Turn[] {
  const row = reader.conversation(id)
  const found: Turn[] = []
  let place = row === undefined ? null : { laneId: id, last: headOf(row) }
  while (place !== null) {
    const { laneId, last }: LanePlace = place
    const turn: Turn | undefined = last < 0 ? undefined : reader.turnsOf(laneId, { last, limit: 1 })[0]
    if (turn?.state === 'ended') found.unshift(turn)
    const before = turn === undefined ? -1 : (turn.history?.after ?? turn.ordinal - 1)
    place =
      before < 0 && turn === undefined ? (reader.conversation(laneId)?.lane?.from ?? null) : { laneId, last: before }
  }
  return found
}

/** The ended turns of a conversation, which its document holds. */
export function endedTurns(reader: TreeReader, conversationId: Id): readonly Turn[] {
  const turns = reader.turnsOf(conversationId, { limit: Number.MAX_SAFE_INTEGER })
  return turns.filter(({ state }) => state === 'ended')
}

function sessionTurn(reader: TreeReader, turn: Turn): SessionTurn {
  const nodes = reader.nodesOf(turn.id).filter(({ endedAt }) => endedAt !== null)
  const messages = nodes.flatMap((node) => messageOf(node) ?? [])
  return {
    run_id: turn.id,
    status: turn.outcome?.status ?? 'completed',
    error: turn.outcome?.error?.message ?? null,
    started_at: turn.startedAt === null ? null : timeText(turn.startedAt),
    ended_at: timeText(turn.endedAt ?? turn.createdAt),
    messages: withAnswers(messages),
  }
}

function messageOf(node: Node): SessionMessage | undefined {
  switch (node.kind) {
    case 'user_message':
      return { role: 'user', content: node.input.content ?? '' }
    case 'developer_message':
    case 'system_message':
      return { role: roleOf(node), content: node.input.content ?? node.output.content ?? '' }
    case 'agent_message':
    case 'character_message':
      return node.purpose === 'brief' ? briefed(node) : spoken(node)
    case 'task':
      return node.input.call === undefined || isBeside(node) ? undefined : answered(node, node.input.call)
    default:
      return undefined
  }
}

/** Distinguishes a host's data from the application's words. */
function roleOf({ purpose }: Node): 'briefing' | 'developer' {
  return purpose === 'brief' ? 'briefing' : 'developer'
}

function briefed({ input, output }: Node): SessionMessage {
  return { role: 'briefing', content: `${textOf(input.content ?? '')}\n${textOf(output.content ?? '')}` }
}

function spoken({ output }: Node): SessionMessage | undefined {
  const calls = (output.calls ?? []).map(({ id, name, input }) => ({ id, name, input }))
  const content = output.content ?? ''
  if (calls.length > 0) return { role: 'assistant', content, calls }
  return content.length === 0 ? undefined : { role: 'assistant', content }
}

function answered(node: Node, call: ToolCall): SessionMessage {
  const is_error = isFailed(node)
  return { role: 'tool', call_id: call.id, name: call.name, content: resultContent(node), is_error }
}

/**
 * Completes every call with an answer and every answer with a call: a model that sees one without the other fails for ever. Ids
 * of calls may repeat from message to message.
 */
function withAnswers(messages: readonly SessionMessage[]): SessionMessage[] {
  const kept: SessionMessage[] = []
  messages.forEach((message, at) => {
    if (message.role === 'tool') return
    if (message.role !== 'assistant' || message.calls === undefined) {
      kept.push(message)
      return
    }
    const pairs = pairsOf(message.calls, resultsAfter(messages, at))
    if (pairs.length > 0) kept.push({ ...message, calls: pairs.map(([call]) => call) })
    else if (message.content.length > 0) kept.push({ role: 'assistant', content: message.content })
    for (const [, result] of pairs) kept.push(result)
  })
  return kept
}

type ToolMessage = Extract<SessionMessage, { role: 'tool' }>

/** Ids may also repeat within a message: each result answers one call. */
function pairsOf(calls: readonly SessionCall[], results: readonly ToolMessage[]): [SessionCall, ToolMessage][] {
  const left = [...results]
  return calls.flatMap((call) => {
    const at = left.findIndex(({ call_id }) => call_id === call.id)
    const [result] = at < 0 ? [] : left.splice(at, 1)
    return result === undefined ? [] : [[call, result] as [SessionCall, ToolMessage]]
  })
}

/** The results up to the agent's next message. */
function resultsAfter(messages: readonly SessionMessage[], at: number): ToolMessage[] {
  const rest = messages.slice(at + 1)
  const end = rest.findIndex(({ role }) => role === 'assistant')
  return (end < 0 ? rest : rest.slice(0, end)).filter((message) => message.role === 'tool')
}

/** The last moment that a date can express. */
const LAST_MOMENT = 8.64e15

function timeText(at: number): string {
  return new Date(Math.min(Math.max(at, 0), LAST_MOMENT)).toISOString()
}

/** Reads a document from outside, which people may have edited. Gives its fault in words. */
export function readSessionDocument(value: Json | undefined, id: string): SessionDocument | string {
  const fields = fieldsOf(value)
  if (fields === undefined || fields['format'] !== SESSION_FORMAT) return 'it is no document of a session'
  if (fields['version'] !== 1) return `its version is ${JSON.stringify(fields['version'])}, and this program knows 1`
  if (fields['session_id'] !== id) return 'it is of another session'
  const { agent, owner, title, turns } = fields
  if (typeof agent !== 'string') return 'agent is not a text'
  if (!isTextOrNull(owner)) return 'owner is not a text or null'
  if (!Array.isArray(turns)) return 'turns is not a list'
  const host = fieldsOf(fields['host'])
  const read: SessionTurn[] = []
  for (const [at, turn] of turns.entries()) {
    const one = readTurn(turn)
    if (typeof one === 'string') return `turns[${at}]${one}`
    read.push(one)
  }
  return {
    format: SESSION_FORMAT,
    version: 1,
    session_id: id,
    turn_count: read.length,
    agent,
    owner: owner ?? null,
    title: typeof title === 'string' ? title : null,
    host: host === undefined ? null : { agent: text(host['agent']), conversation_id: text(host['conversation_id']) },
    created_at: text(fields['created_at']),
    updated_at: text(fields['updated_at']),
    closed_at: typeof fields['closed_at'] === 'string' ? fields['closed_at'] : null,
    turns: read,
  }
}

type Fields = { readonly [key: string]: Json }

function fieldsOf(value: Json | undefined): Fields | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? (value as Fields) : undefined
}

function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function isTextOrNull(value: Json | undefined): value is string | null | undefined {
  return value === undefined || value === null || typeof value === 'string'
}

function readTurn(value: Json): SessionTurn | string {
  const fields = fieldsOf(value)
  const messages = fields?.['messages']
  if (fields === undefined || !Array.isArray(messages)) return '.messages is not a list'
  const read: SessionMessage[] = []
  for (const [at, message] of messages.entries()) {
    const one = readMessage(message)
    if (typeof one === 'string') return `.messages[${at}]${one}`
    read.push(one)
  }
  const { started_at, error } = fields
  return {
    run_id: text(fields['run_id']),
    status: text(fields['status']),
    error: typeof error === 'string' ? error : null,
    started_at: typeof started_at === 'string' ? started_at : null,
    ended_at: text(fields['ended_at']),
    messages: withAnswers(read),
  }
}

function readMessage(value: Json): SessionMessage | string {
  const fields = fieldsOf(value)
  if (fields === undefined) return ' is not an object'
  const { role, content, calls } = fields
  if (!isStoredContent(content)) return '.content is not a text or a list of blocks'
  if (role === 'user' || role === 'developer' || role === 'briefing') return { role, content }
  if (role === 'tool') {
    const is_error = fields['is_error'] === true
    return { role, call_id: text(fields['call_id']), name: text(fields['name']), content, is_error }
  }
  if (role !== 'assistant') return '.role is not user, developer, briefing, assistant or tool'
  if (calls === undefined) return { role, content }
  if (!Array.isArray(calls) || !calls.every(isCall)) return '.calls is not a list of { id, name, input }'
  return { role, content, calls: calls as unknown as readonly SessionCall[] }
}

function isCall(value: Json): boolean {
  const fields = fieldsOf(value)
  return typeof fields?.['id'] === 'string' && typeof fields['name'] === 'string' && fields['input'] !== undefined
}
