// The short form of texts, for a store that pays for each byte: what most texts have in common takes one character or two.
//
// Owns:      the list of frequent words, and how ids that begin alike are written once.
// Called by: the stores on PostgreSQL, for the texts of rows and events, and on SQLite, for events.
// Must stay true:
//   - Every text comes back as it was: its hash is in a commit.
//   - A short text that was written once can be read for good: words are only added, at the end.

import type { Id } from '../../graph/rows.ts'
import type { RowLetter } from '../commit-chain.ts'

/** The facts of a row that its columns hold. */
export interface RowHead {
  readonly letter: RowLetter
  readonly id: Id
  readonly version: number
  /** Other ids that a reader knows before: its turn, its tree. */
  readonly near: readonly Id[]
}

const NAMES = { c: 'conversation', t: 'turn', n: 'node', l: 'link' } as const

/** Shortens the text of a row: how it begins follows from its columns. */
export function shortRow(text: string, head: RowHead): string {
  const begin = beginOf(head)
  return shortText(text.startsWith(begin) ? text.slice(begin.length) : text, [head.id, ...head.near])
}

export function longRow(short: string, head: RowHead): string {
  const text = longText(short, [head.id, ...head.near])
  return text.startsWith(',') || text === '}' ? beginOf(head) + text : text
}

function beginOf({ letter, id, version }: RowHead): string {
  return `{"${NAMES[letter]}":${JSON.stringify(id)},"version":${version}`
}

/** Shortens a JSON text. Ids that begin like one of `ids`, which a reader knows before, are written without that part. */
export function shortText(text: string, ids: readonly Id[]): string {
  if (IS_ODD.test(text)) return AS_IS + text
  const begins = ids.filter(isLong).map(beginOfId)
  let short = ''
  let copied = 0
  for (let at = text.indexOf('"'), end = endOfString(text, at); at >= 0 && end > at; ) {
    const isKey = text[end + 1] === ':'
    const code = isKey ? keyCode(text, at, end) : valueCode(text.slice(at + 1, end), begins)
    if (code !== undefined) {
      short += text.slice(copied, isKey && text[at - 1] === ',' ? at - 1 : at) + code
      copied = isKey ? end + 2 : end + 1
    }
    at = text.indexOf('"', end + 1)
    end = endOfString(text, at)
  }
  return short + text.slice(copied)
}

/** A text that is kept as it is. */
export function sameText(text: string): string {
  return IS_ODD.test(text) ? AS_IS + text : text
}

/** The place of the quote that ends a string. */
function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from + 1)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end
}

function isEscaped(text: string, at: number): boolean {
  if (text[at - 1] !== '\\') return false
  let before = at
  while (text[before - 1] === '\\') before--
  return (at - before) % 2 === 1
}

/** The code of a name also stands for the comma before it, if it is not the first one of its object. */
function keyCode(text: string, at: number, end: number): string | undefined {
  const before = text[at - 1]
  return before === ',' || before === '{' ? KEYS.get(text.slice(at + 1, end)) : undefined
}

function valueCode(value: string, begins: string[]): string | undefined {
  if (!isLong(value) || !IS_ID.test(value)) return VALUES.get(value)
  const begin = beginOfId(value)
  const at = begins.indexOf(begin)
  if (at >= 0 && at < MOST_BEGINS) return String.fromCharCode(1 + at) + value.slice(BEGIN)
  begins.push(begin)
  return NEW_ID + Buffer.from(value.replaceAll('-', ''), 'hex').toString('base64url')
}

export function longText(short: string, ids: readonly Id[]): string {
  if (short.startsWith(AS_IS)) return short.slice(AS_IS.length)
  const begins = ids.filter(isLong).map(beginOfId)
  let text = ''
  let copied = 0
  for (let at = 0; at < short.length; at++) {
    const code = short.charCodeAt(at)
    if (code > LAST_CODE) continue
    const end = at + lengthOf(code)
    // A brace that ends the code before is none of the text.
    const isFirst = at > copied && short[at - 1] === '{'
    text += short.slice(copied, at) + meaningOf(short.slice(at, end), begins, isFirst)
    copied = end
    at = end - 1
  }
  return text + short.slice(copied)
}

function meaningOf(coded: string, begins: string[], isFirst: boolean): string {
  const code = coded.charCodeAt(0)
  if (code <= MOST_BEGINS) return `"${begins[code - 1] ?? ''}${coded.slice(1)}"`
  if (code >= FIRST_WORD) {
    const word = LONG.get(coded) ?? ''
    return isFirst && word.startsWith(',') ? word.slice(1) : word
  }
  const id = uuidOf(Buffer.from(coded.slice(1), 'base64url').toString('hex'))
  begins.push(beginOfId(id))
  return `"${id}"`
}

/** A UUID of its 32 digits. */
export function uuidOf(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

function lengthOf(code: number): number {
  if (code <= MOST_BEGINS) return 1 + WHOLE - BEGIN
  if (code < FIRST_WORD) return 1 + BASE64
  return code < LAST_CODE ? 1 : 2
}

function isLong({ length }: Id): boolean {
  return length === WHOLE
}

function beginOfId(id: Id): string {
  return id.slice(0, BEGIN)
}

const IS_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** The length of an id, of the part that ids which were made together share, and of its bytes as base64. */
const WHOLE = 36
const BEGIN = 28
const BASE64 = 22

/** JSON has no control characters: the first stand for how ids begin, then one for a new id, the others for words. */
const MOST_BEGINS = 6
const NEW_ID = '\x07'
const FIRST_WORD = 8
/** With it, a word takes two characters. */
const LAST_CODE = 0x1f
/** Stands before a text that has such characters already, or begins with this one. */
const AS_IS = '\x7f'
const IS_ODD = /[^ -\uffff]|^\x7f/

/** Names of fields, with a colon, and values. Those that come most often are first: they take one character. */
const WORDS =
  `times: body: type: nodeId: content: conversationId: turnId: ordinal: kind: agent_message purpose: answer state: epoch: input:
  limits: account: deadline: nodeCount: entryNodeId: agent: name: message path: outcome: counts: answerNodeId: createdAt: output: running engineId:
  at: id: role: user tool: childConversationId: usage: usage model: parentId: rootId: call: calls: effect: hash: activeTurnId: turnCount: metadata:
  user_message pure idempotent task ended waiting pending blockers: delegates: child: wait: on: children refs: join: all until: sub_agent depth:
  parentTurnId: parentTaskId: ceiling: v: by: allow: ask: deny: budget: tool:* agent:* model:* children: concurrency: toolCalls: modelCalls:
  held_sessions: taskId: childRunId: contract: agentName: hostName: toolName: delegationContext: delegation_context: input_payload: message:
  deliveredTo: subagent: supervisor: run-start run-end tool-call tool-result delegation-start delegation-end status: completed callId: finished
  isError: laneId: afterSeq: attempt: failure: error: text reasoning: arguments: tool agent owner: title: places: background: failed cancelled`
    .trim()
    .split(/\s+/)

function codeOf(at: number): string {
  const code = FIRST_WORD + at
  return code < LAST_CODE ? String.fromCharCode(code) : String.fromCharCode(LAST_CODE, FIRST_SECOND + code - LAST_CODE)
}

/** Second characters are any from here on: a reader takes two, whatever the second is. One of them is a brace. */
const FIRST_SECOND = 0x21

const isKey = (word: string): boolean => word.endsWith(':')
const KEYS: ReadonlyMap<string, string> = new Map(
  WORDS.flatMap((word, at) => (isKey(word) ? [[word.slice(0, -1), codeOf(at)] as const] : [])),
)
const VALUES: ReadonlyMap<string, string> = new Map(
  WORDS.flatMap((word, at) => (isKey(word) ? [] : [[word, codeOf(at)] as const])),
)
const LONG: ReadonlyMap<string, string> = new Map([
  ...[...KEYS].map(([word, code]) => [code, `,"${word}":`] as const),
  ...[...VALUES].map(([word, code]) => [code, `"${word}"`] as const),
])
