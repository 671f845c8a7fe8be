// The form of the fields of rows and events that come from outside.
//
// Owns:      what each field may be: by the usual value of its column, and by name where that value is null.
// Called by: `audit/tree-form`.
// Must stay true:
//   - A text that people see as an id or as a status is one: no character of it controls a terminal.
//   - A number is finite and not negative, and a time is one that a date can have.

import { isId } from '../base/id.ts'
import type { Column } from '../base/keep-shape.ts'
import { NO_USAGE } from '../graph/content.ts'
import type { EventRow } from '../graph/event.ts'
import { isStatus } from '../graph/outcome.ts'

/** Says in words why a value is none of its column; undefined where it is one. */
export function wrongField(key: string, { usual, oneOf }: Column<unknown>, given: unknown): string | undefined {
  if (oneOf !== undefined && !oneOf.includes(given)) return `is "${String(given)}"`
  const isRight = usual === null ? given === null || isOfName(key, given) : isLike(given, usual) && isOfName(key, given)
  return isRight ? undefined : 'is not what it has to be'
}

/** Says in words what is wrong with an event. */
export function wrongEvent({ at, conversationId, runId, nodeId, parentId, path, body }: EventRow): string | undefined {
  if (typeof body?.type !== 'string' || !/^[\w:.-]{1,100}$/.test(body.type)) return 'an event has no type'
  const isPlaced = isId(conversationId) && isId(runId) && isIdOrNull(nodeId) && isIdOrNull(parentId)
  if (!isPlaced || !isMoment(at) || !isListOf(isText)(path)) return 'an event has no place'
  const [usage, outcome]: readonly unknown[] = [Reflect.get(body, 'usage'), Reflect.get(body, 'outcome')]
  if (usage != null && !isLike(usage, NO_USAGE)) return 'an event counts a usage that is none'
  return outcome == null || isOutcome(outcome) ? undefined : 'an event tells an outcome that is none'
}

type Check = (given: unknown) => boolean

/** The last moment that a date can have. */
const LAST = 8_640_000_000_000_000

/** A time in milliseconds since 1970. */
export function isMoment(given: unknown): boolean {
  return isCount(given) && Number(given) <= LAST
}

/** Fields that are more than their usual value says, or that are mostly null. */
const FIELDS: { readonly [key: string]: Check } = {
  agent: record({ name: isText, hash: isText, inline: optional(isAnything), code: optional(isText) }),
  path: isListOf(isText),
  owner: isText,
  title: isText,
  groups: isRecord,
  background: isListOf(isId),
  places: isList,
  lane: record({ skips: isList, newest: isIdOrNull, before: isIdOrNull, from: orNull(record({ laneId: isId })) }),
  createdAt: isMoment,
  startedAt: isMoment,
  endedAt: isMoment,
  deadline: isMoment,
  wakeAt: isMoment,
  input: isAnything,
  paused: record({ asks: isCount, leftMs: orNull(isCount) }),
  spend: record({ limit: isRecord, spent: isRecord }),
  tree: isRecord,
  cancel: record({ at: isMoment, cause: isText, reason: orNull(isText) }),
  outcome: isOutcome,
  attributes: isRecord,
  history: isRecord,
  absent: isListOf(record({ name: isText, reason: isText })),
  requestHash: isText,
  purpose: isText,
  failure: record({ code: isText, message: isText }),
  idempotencyKey: isText,
  wait: record({ on: isText, refs: isListOf(isText) }),
  timeoutMs: isCount,
  engineId: isId,
  marks: isRecord,
  wake: isText,
  keyed: isRecord,
  retry: record({ most: isCount, delayMs: isCount }),
  delegationContext: isAnything,
  deliveredTo: (given) => given === 'undeliverable' || isId(given),
}

function isOfName(key: string, given: unknown): boolean {
  const known = Object.hasOwn(FIELDS, key) ? FIELDS[key] : undefined
  if (known !== undefined) return known(given)
  return !NAMES_A_ROW.test(key) || isId(given)
}

const NAMES_A_ROW = /^id$|Id$|^versionSet$|^wokenBy$|^retryOf$/

const isEnd = record({
  status: (given) => typeof given === 'string' && isStatus(given),
  runId: isId,
  conversationId: isId,
  answerNodeId: isIdOrNull,
  error: orNull(record({ code: isText, message: isText })),
  usage: (given) => isLike(given, NO_USAGE),
  modelCalls: isCount,
  toolCalls: isCount,
  children: isCount,
  durationMs: isCount,
  advice: orNull(isText),
  uncertain: isListOf(isId),
  open: isListOf(isId),
  absent: isListOf(record({ name: isText, reason: isText })),
  delegations: isListOf(record({ taskId: isId, field: isText })),
})

function isOutcome(given: unknown): boolean {
  return isEnd(given)
}

/** A value that must have the kind of the usual value, at every known depth. */
function isLike(given: unknown, usual: unknown): boolean {
  if (typeof usual === 'number') return isCount(given)
  if (typeof usual === 'string') return isText(given)
  if (Array.isArray(usual)) return isList(given)
  if (typeof usual !== 'object' || usual === null) return typeof given === typeof usual
  return (
    isRecord(given) && Object.entries(usual).every(([key, value]) => isLike(Reflect.get(Object(given), key), value))
  )
}

function isAnything(given: unknown): boolean {
  return given !== undefined
}

function isText(given: unknown): boolean {
  return typeof given === 'string'
}

function isCount(given: unknown): boolean {
  return typeof given === 'number' && Number.isFinite(given) && given >= 0
}

function isIdOrNull(given: unknown): boolean {
  return given === null || isId(given)
}

function isList(given: unknown): boolean {
  return Array.isArray(given)
}

function isRecord(given: unknown): boolean {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}

function isListOf(isItem: Check): Check {
  return (given) => Array.isArray(given) && given.every(isItem)
}

function orNull(check: Check): Check {
  return (given) => given === null || check(given)
}

function optional(check: Check): Check {
  return (given) => given === undefined || check(given)
}

function record(fields: { readonly [key: string]: Check }): Check {
  return (given) =>
    isRecord(given) && Object.entries(fields).every(([key, check]) => check(Reflect.get(Object(given), key)))
}
