// What a card asks, wherever it comes from: the inbox lists it, or the tree tells of it.

import type { TreeApproval, TreeQuestion } from 'legate/client'
import type { Approval, Question } from '../../data/types.ts'
import { exactText, exactValue, isExact } from '../../words/exact.ts'
import { jsonText } from '../../words/json-text.ts'

/** A request that a person allows or denies. */
export type ApprovalFacts = Pick<
  Approval & TreeApproval,
  'nodeId' | 'path' | 'request' | 'input' | 'seen' | 'reason' | 'since' | 'expiresAt'
>

/** A question that a person answers. */
export type QuestionFacts = Pick<Question & TreeQuestion, 'nodeId' | 'path' | 'text' | 'seen' | 'since' | 'expiresAt'>

/** What is wanted, without its domain: `deploy` of `tool:deploy`. Every character of it can be seen. */
export function wantedOf(request: string): string {
  return exactText(request.startsWith('tool:') ? request.slice('tool:'.length) : request)
}

/** A value as a field shows it: a text that can be seen as it is, everything else as JSON with all its characters. */
export function fieldText(value: unknown): string {
  return isPlain(value) ? value : exactValue(value)
}

/** The value of a field that a person changed. What was a plain text stays one; throws where it is not JSON. */
function fieldValue(text: string, before: unknown): unknown {
  return isPlain(before) ? text : JSON.parse(text)
}

function isPlain(value: unknown): value is string {
  return typeof value === 'string' && isExact(value)
}

/** More arguments than that are one value: nobody reads them as rows. */
const MOST_ROWS = 100

/** The arguments as rows; an input that has no names is one row without a name. */
export function argumentRows(input: unknown): readonly (readonly [name: string | null, value: unknown])[] {
  if (input === null || input === undefined) return []
  if (typeof input !== 'object' || Array.isArray(input)) return [[null, input]]
  const names = Object.keys(input)
  if (names.length > MOST_ROWS) return [[null, input]]
  return names.map((name) => [name, (input as Readonly<Record<string, unknown>>)[name]])
}

/** The name of a row in words. */
export function rowName(name: string | null): string {
  return name === null ? 'input' : name === '' ? '""' : exactText(name)
}

const MOST_EDITED = 100_000

/** Whether a person can change the arguments in fields. */
export function canEdit(input: unknown): boolean {
  return argumentRows(input).length > 0 && jsonText(input, MOST_EDITED).length < MOST_EDITED
}

/** Fields by the name of their argument. */
export type FieldTexts = ReadonlyMap<string | null, string>

/** Reads what a person typed into the fields of the arguments. What nobody changed stays the very value. */
export function readFields(input: unknown, texts: FieldTexts) {
  const wrong = new Set<string | null>()
  const values: (readonly [string | null, unknown])[] = []
  for (const [name, before] of argumentRows(input)) {
    const text = texts.get(name)
    try {
      values.push([name, text === undefined ? before : fieldValue(text, before)])
    } catch {
      wrong.add(name)
    }
  }
  const [first] = values
  const isNamed = first === undefined || first[0] !== null
  return { wrong, value: isNamed ? Object.fromEntries(values) : first[1] }
}
