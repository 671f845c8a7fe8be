import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import type { Json } from '../../base/json.ts'

/**
 * Repairs a message for the library; null for a value that is none. The library ignores an answer without a usable
 * result, and its call would wait for the whole timeout. So such an answer becomes an error that explains the problem.
 */
export function usableMessage(value: Json): JSONRPCMessage | null {
  if (!isObject(value)) return null
  const { id, method } = value
  if (typeof method === 'string') return value as JSONRPCMessage
  if (method !== undefined || !isId(id)) return null
  if (isObject(value['result']) || isError(value['error'])) return value as JSONRPCMessage
  if (isObject(value['error'])) return failure(id, 'the server gave an error without a code and a message')
  return failure(id, 'the server gave a result that is not an object')
}

/** The error answer for a line that is too long to read, where it names its call; null where it does not. */
export function unreadAnswer(line: string, error: string): JSONRPCMessage | null {
  if (!line.startsWith('{')) return null
  const found = ID.exec(line.slice(0, EDGE)) ?? ID.exec(line.slice(-EDGE))
  const isAnswer = ANSWER.test(line.slice(0, EDGE)) || ANSWER.test(line.slice(-EDGE))
  return found === null || !isAnswer ? null : failure(Number(found[1]), `the server sent no usable JSON: ${error}`)
}

function failure(id: string | number, message: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: PARSE_ERROR, message } }
}

/** Our requests have numbers. The id stands beside the result or the error, at one end of the line or the other. */
const ID = /"id"\s*:\s*(\d{1,15})\s*[,}]/
const ANSWER = /"(?:result|error)"\s*:/
const EDGE = 200
const PARSE_ERROR = -32_700

function isObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isError(value: unknown): boolean {
  return isObject(value) && Number.isSafeInteger(value['code']) && typeof value['message'] === 'string'
}

function isId(id: unknown): id is string | number {
  return typeof id === 'string' || typeof id === 'number'
}
