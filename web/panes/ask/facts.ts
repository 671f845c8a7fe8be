// What a card asks, wherever it comes from: the inbox lists it, or the tree tells of it.

import { type TreeApproval, type TreeQuestion, visible, visibleLines } from 'legate/client'
import type { Approval, Question } from '../../data/types.ts'

/** A request that a person allows or denies. */
export type ApprovalFacts = Pick<
  Approval & TreeApproval,
  'nodeId' | 'path' | 'request' | 'input' | 'seen' | 'reason' | 'since' | 'expiresAt'
>

/** A question that a person answers. */
export type QuestionFacts = Pick<Question & TreeQuestion, 'nodeId' | 'path' | 'text' | 'seen' | 'since' | 'expiresAt'>

/** What is wanted, without its domain: `deploy` of `tool:deploy`. Every character of it can be seen. */
export function wantedOf(request: string): string {
  return visible(request.startsWith('tool:') ? request.slice('tool:'.length) : request)
}

/** A value as somebody decides about it: every character can be seen. */
export function shownValue(value: unknown): string {
  return typeof value === 'string' ? visible(JSON.stringify(value)) : visibleLines(JSON.stringify(value, null, 1))
}

/** A value as a field shows it: texts as they are, everything else as JSON. */
export function fieldText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1)
}

/** The value of a field that a person changed. What was a text stays one; throws where it is not JSON. */
export function fieldValue(text: string, before: unknown): unknown {
  return typeof before === 'string' ? text : JSON.parse(text)
}

/** The arguments as rows. */
export function argumentRows(input: unknown): readonly (readonly [name: string, value: unknown])[] {
  if (input === null || input === undefined) return []
  if (typeof input !== 'object' || Array.isArray(input)) return [['', input]]
  return Object.entries(input)
}
