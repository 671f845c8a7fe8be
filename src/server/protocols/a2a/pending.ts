// Approvals and questions of a task as the message of its status, and the peer's answers to them. Pure functions.
//
// Must stay true:
//   - An answer holds for the node that it names, or for the only one that waits. What cannot be read answers nothing.
//   - A yes names what the peer saw. Nothing here looks up what a node asks for the peer.

import { askedText } from '../../../doors/rows.ts'
import type { Json, PendingApproval, PendingQuestion, ScopedRuntime } from '../../../index.ts'
import { dataParts, malformed, textIn } from './read.ts'
import type { A2aMessage, A2aPart } from './wire.ts'

/** One thing that waits for the peer. */
export type A2aPending =
  | { readonly kind: 'approval'; readonly of: PendingApproval }
  | { readonly kind: 'question'; readonly of: PendingQuestion }

type AnyAnswer = Parameters<ScopedRuntime['answer']>[1]

/** A word on one node. */
export interface PendingAnswer {
  readonly nodeId: string
  readonly word: AnyAnswer
}

/** The question in words, then what a program needs to answer it. */
export function pendingParts(pending: readonly A2aPending[]): A2aPart[] {
  return [{ text: pending.map(textOfPending).join('\n') }, ...pending.map((one) => ({ data: dataOfPending(one) }))]
}

function textOfPending({ kind, of }: A2aPending): string {
  return kind === 'question' ? of.text : askedText(of)
}

function dataOfPending({ kind, of }: A2aPending): Json {
  const about = { kind, nodeId: of.nodeId, path: [...of.path], seen: of.seen, expiresAt: of.expiresAt }
  if (kind === 'question') return { ...about, text: of.text }
  return { ...about, request: of.request, tool: of.tool, input: of.input, reason: of.reason }
}

/** When the newest of them began to wait. */
export function pendingSince(pending: readonly A2aPending[]): number {
  return Math.max(...pending.map(({ of }) => of.since))
}

/** Reads the answers of a message: data parts that name nodes, or a text for the only question. */
export function readPeerAnswers(message: A2aMessage, pending: readonly A2aPending[]): PendingAnswer[] {
  const named = dataParts(message).map((data) => namedAnswer(fieldsOf(data), pending))
  if (named.length > 0) return named
  const [only, ...others] = pending
  const text = textIn(message)
  if (only?.kind !== 'question' || others.length > 0 || text.trim() === '') {
    throw malformed(
      'Answer with a data part for each node: { nodeId, allow, seen } for an approval, { nodeId, text } for a question.',
    )
  }
  return [{ nodeId: only.of.nodeId, word: { text } }]
}

type Fields = Readonly<Record<string, Json | undefined>>

function namedAnswer(given: Fields, pending: readonly A2aPending[]): PendingAnswer {
  const one = pending.find(({ of }) => of.nodeId === given['nodeId'])
  if (one === undefined)
    throw malformed('A data part names no node that waits: { nodeId, allow, seen } or { nodeId, text }.')
  return { nodeId: one.of.nodeId, word: one.kind === 'question' ? reply(given) : decision(given) }
}

function reply({ text, seen }: Fields): AnyAnswer {
  if (typeof text !== 'string' || text.trim() === '') throw malformed('A question is answered with { nodeId, text }.')
  return { text, ...(typeof seen === 'string' ? { seen } : {}) }
}

function decision({ allow, reason, edit, always, seen }: Fields): AnyAnswer {
  if (typeof allow !== 'boolean')
    throw malformed('An approval is answered with { nodeId, allow: true, seen } or { nodeId, allow: false }.')
  const why = typeof reason === 'string' && reason !== '' ? { reason } : {}
  if (!allow && typeof seen !== 'string') return { allow, ...why }
  return {
    allow,
    ...why,
    // Without it the runtime refuses the yes.
    seen: typeof seen === 'string' ? seen : '',
    ...(allow && edit !== undefined ? { edit } : {}),
    ...(allow && always === true ? { always } : {}),
  }
}

function fieldsOf(value: Json): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}
