// The nodes that wait for a person, as requests that an MCP client shows the person, and what the person answers. Pure functions.
//
// Must stay true:
//   - A key names the node and what it asks: an answer to one request can never count for another. The hash that goes with a word
//     is the one that came back from the client.
//   - What cannot be read as an answer leaves the request open, and the person is not asked for it again in this call.
//   - A request that is too long to be shown whole is listed, and nobody can allow it here.

import { visible, visibleProse } from '../../../core/base/text.ts'
import { askedText } from '../../../doors/rows.ts'
import type { Json, PendingApproval, PendingQuestion, ScopedRuntime } from '../../../index.ts'

/** One thing that waits for a person. */
export type McpPending =
  | { readonly kind: 'approval'; readonly of: PendingApproval }
  | { readonly kind: 'question'; readonly of: PendingQuestion }

/** A word on one node. */
export type PendingDecision = Parameters<ScopedRuntime['answer']>[1]

const LONGEST_TEXT = 4_000

/** The key of a request: its node, and the hash of what it asks. */
function keyOfPending({ of }: McpPending): string {
  return `${of.nodeId}.${of.seen}`
}

interface Asking {
  /** True: the person may allow it for the rest of the conversation. */
  readonly mayAlways: boolean
  /** Says where a request can be allowed that is not shown whole. */
  readonly notWhole: string
}

/** The requests for a client, by key. */
export function inputRequests(pending: readonly McpPending[], asking: Asking): Record<string, object> {
  return Object.fromEntries(pending.map((one) => [keyOfPending(one), elicitation(one, asking)]))
}

function elicitation(one: McpPending, { mayAlways, notWhole }: Asking): object {
  return {
    method: 'elicitation/create',
    params: { mode: 'form', message: pendingText(one, notWhole), requestedSchema: form(one, mayAlways) },
  }
}

/** The question, in words. */
export function pendingText({ kind, of }: McpPending, notWhole: string): string {
  if (kind === 'question') return `${visible(of.path.join(' > '))} asks: ${visibleProse(of.text)}`
  const text = askedText(of)
  return isShownWhole(of) ? text : `${text.slice(0, LONGEST_TEXT)}... (${text.length} characters)\n${notWhole}`
}

/** Says where a request can be allowed that is not shown whole. */
export const NOT_WHOLE =
  'It is too long to be shown whole here, so it can only be denied here: `legate approvals` and the page show all of it.'

/** Is all of a request shown? */
export function isShownWhole(of: PendingApproval): boolean {
  return askedText(of).length <= LONGEST_TEXT
}

function form({ kind, of }: McpPending, mayAlways: boolean): object {
  if (kind === 'question') return object({ answer: { type: 'string', title: 'Answer' } }, ['answer'])
  const yes = ['allow_once', ...(mayAlways ? ['allow_here'] : [])]
  const decisions = [...(isShownWhole(of) ? yes : []), 'deny']
  const decision = {
    type: 'string',
    title: 'Decision',
    description: mayAlways ? 'allow_here holds for the rest of the conversation.' : 'It holds for this call.',
    enum: decisions,
  }
  return object({ decision, reason: { type: 'string', title: 'Reason' } }, ['decision'])
}

function object(properties: object, required: readonly string[]): object {
  return { type: 'object', properties, required }
}

/** The words of a client's person, and whether he left a form without one. */
export interface ReadAnswers {
  readonly words: readonly { readonly nodeId: string; readonly word: PendingDecision }[]
  /** True: a form of a request that still waits was cancelled, declined, or came back incomplete. */
  readonly isLeft: boolean
}

/** A client's answers to requests that wait, by their keys. Keys that nothing waits under are left alone. */
export function readAnswers(pending: readonly McpPending[], answers: Readonly<Record<string, unknown>>): ReadAnswers {
  const read = Object.entries(answers).flatMap(([key, response]) => {
    const [nodeId = '', seen = ''] = key.split('.')
    const one = pending.find(({ of }) => of.nodeId === nodeId)
    if (one === undefined) return []
    const word = readForm(one.kind, response, seen)
    const isBlind = word !== undefined && saysYes(word) && one.kind === 'approval' && !isShownWhole(one.of)
    return [{ nodeId, word: isBlind ? undefined : word, isShown: keyOfPending(one) === key }]
  })
  return {
    words: read.flatMap(({ nodeId, word }) => (word === undefined ? [] : [{ nodeId, word }])),
    isLeft: read.some(({ word, isShown }) => word === undefined && isShown),
  }
}

export function saysYes(word: PendingDecision): boolean {
  return 'allow' in word && word.allow !== false
}

/** Reads what a person entered into a form; undefined where it says nothing that counts. */
function readForm(kind: McpPending['kind'], response: unknown, seen: string): PendingDecision | undefined {
  const { action, content } = Object(response) as { readonly action?: unknown; readonly content?: unknown }
  if (action === 'decline' && kind === 'approval') return { allow: false, reason: 'The person declined.', seen }
  if (action !== 'accept' || typeof content !== 'object' || content === null) return undefined
  const given = content as Readonly<Record<string, Json>>
  return kind === 'question' ? readAnswer(given, seen) : readDecision(given, seen)
}

/** A client that has forms of its own may name its field otherwise. */
function readAnswer(given: Readonly<Record<string, Json>>, seen: string): PendingDecision | undefined {
  const { answer } = given
  const text = typeof answer === 'string' ? answer : Object.keys(given).length === 0 ? '' : JSON.stringify(given)
  return text.trim() === '' ? undefined : { text, seen }
}

/** Undefined where no decision can be read. */
export function readDecision(
  { decision, reason }: Readonly<Record<string, Json>>,
  seen: string,
): PendingDecision | undefined {
  const why = typeof reason === 'string' && reason.trim() !== '' ? { reason } : {}
  if (decision === 'deny') return { allow: false, ...why, seen }
  if (decision === 'allow_once') return { allow: true, ...why, seen }
  return decision === 'allow_here' ? { allow: true, always: true, ...why, seen } : undefined
}
