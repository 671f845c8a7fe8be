import type { Id, Json, Node, PendingApproval } from '../../index.ts'
import { shortId } from '../find-run.ts'
import { oneLine } from '../terminal/clean.ts'
import { preview, whole } from './words.ts'

const PREVIEW = 120

/** What a node does or wants to do, on one line: its call, or what a person is asked to allow it. */
export function callOf(node: Node): string {
  const { call } = node.input
  if (call !== undefined) return `${oneLine(call.name)} ${preview(call.input, PREVIEW)}`
  const { request, input } = askedOf(node)
  return input === null ? request : `${request} ${preview(input, PREVIEW)}`
}

/** The same with all of its arguments: whoever answers must see what they say yes to. */
export function wholeCallOf(node: Node): string {
  const { call } = node.input
  if (call !== undefined) return `${oneLine(call.name)} ${whole(call.input)}`
  const { request, input } = askedOf(node)
  return input === null ? request : `${request} ${whole(input)}`
}

/** What a person is asked to allow, whole: the call, or what would be asked or started. */
export function wantedIn({ request, tool, input }: Pick<PendingApproval, 'request' | 'tool' | 'input'>): string {
  const asked = oneLine(tool ?? request)
  return tool === null && input === null ? asked : `${asked} ${whole(input)}`
}

/** Which command answers a call that waits for a person; `where` names the store, if it must be named. */
export function answersOf(nodeId: Id, where = ''): string {
  const id = shortId(nodeId)
  return `legate approve ${id}${where}, or legate deny ${id} --reason TEXT${where}`
}

/** What a call has asked a person, on one line. */
export function questionOf({ metadata: { question } }: Node): string {
  const text = typeof question === 'object' && question !== null ? Reflect.get(question, 'text') : undefined
  return typeof text === 'string' ? whole(text) : ''
}

/** Which command answers a question. */
export function replyTo(nodeId: Id, where = ''): string {
  return `legate answer ${shortId(nodeId)} TEXT${where}`
}

/** What a node without a call waits for: a model it would ask, or a server it would start, and which. */
function askedOf({ kind, metadata: { approval } }: Node): { readonly request: string; readonly input: Json } {
  const asked = typeof approval === 'object' && approval !== null ? (approval as Readonly<Record<string, Json>>) : {}
  const { request, input } = asked
  return { request: oneLine(typeof request === 'string' && request !== '' ? request : kind), input: input ?? null }
}
