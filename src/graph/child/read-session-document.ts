import type { Json } from '../../base/json.ts'
import { type Content, isBlock } from '../content.ts'
import {
  SESSION_FORMAT,
  type SessionCall,
  type SessionDocument,
  type SessionMessage,
  type SessionTurn,
  withAnswers,
} from './session-document.ts'

/** A document that was read from outside, or in words what is wrong with it. People may have edited it. */
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
  if (!isContent(content)) return '.content is not a text or a list of blocks'
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

function isContent(value: Json | undefined): value is Content & Json {
  if (typeof value === 'string') return true
  return Array.isArray(value) && value.every((block) => isBlock(block) || isText(block))
}

/** Also an empty one, and what the model thought. */
function isText(value: Json): boolean {
  const fields = fieldsOf(value)
  const isKnown = fields?.['type'] === 'text' || fields?.['type'] === 'reasoning'
  return isKnown && typeof fields['text'] === 'string'
}
