import type { Json } from '../../core/base/json.ts'

export interface Difference {
  /** A path such as `messages[2].content`. */
  readonly path: string
  readonly recorded: Json | undefined
  readonly now: Json | undefined
}

/** Lists where two values differ, ignoring what differs in every run. */
export function differences(recorded: Json | undefined, now: Json | undefined, bind: Bind): Difference[] {
  const found: Difference[] = []
  compare({ path: '', recorded, now }, bind, found)
  return found
}

function compare(pair: Difference, bind: Bind, found: Difference[]): void {
  const { path, recorded, now } = pair
  if (typeof recorded === 'string' && typeof now === 'string') {
    if (!matchText(recorded, now, bind)) found.push(pair)
    return
  }
  if (!isObject(recorded) || !isObject(now) || Array.isArray(recorded) !== Array.isArray(now)) {
    if (recorded !== now) found.push(pair)
    return
  }
  const isList = Array.isArray(recorded)
  for (const [key, own] of keysOf(recorded, now, bind)) {
    const below = isList ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    compare({ path: below, recorded: recorded[key], now: now[own] }, bind, found)
  }
}

type Fields = { [key: string]: Json }

/** Pairs the keys of both sides: a recorded key may contain a mark or a token. */
function keysOf(recorded: Fields, now: Fields, bind: Bind): [recorded: string, now: string][] {
  const left = new Set(Object.keys(now).filter((key) => !Object.hasOwn(recorded, key)))
  const pairs = Object.keys(recorded).map((key): [string, string] => {
    if (Object.hasOwn(now, key)) return [key, key]
    const same = hasToken(key) ? [...left].find((own) => matchText(key, own, bind)) : undefined
    if (same !== undefined) left.delete(same)
    return [key, same ?? key]
  })
  return [...pairs, ...[...left].map((key): [string, string] => [key, key])]
}

function isObject(value: Json | undefined): value is Fields {
  return typeof value === 'object' && value !== null
}

const MOST_SHOWN = 5
const WIDTH = 100

/** Formats differences for people: each place with the recorded and the current value. */
export function differenceText(found: readonly Difference[]): string {
  const shown = found.slice(0, MOST_SHOWN).map(placeText)
  const left = found.length - shown.length
  return [...shown, ...(left > 0 ? [`  and ${left} more`] : [])].join('\n')
}

function placeText({ path, recorded, now }: Difference): string {
  const [before, after] = cutAround(lineOf(recorded), lineOf(now))
  return `  ${path === '' ? 'all of it' : path}\n    - recorded: ${before}\n    + now:      ${after}`
}

function lineOf(value: Json | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}

/** Cuts long texts shortly before the place where they begin to differ. */
function cutAround(a: string, b: string): [string, string] {
  let same = 0
  while (same < a.length && a[same] === b[same]) same++
  const from = same > WIDTH / 2 ? same - WIDTH / 4 : 0
  return [cut(a, from), cut(b, from)]
}

function cut(text: string, from: number): string {
  const end = from + WIDTH
  return `${from > 0 ? '…' : ''}${text.slice(from, end)}${text.length > end ? '…' : ''}`
}

const TOKEN = /(<id:\d+>|<time:\d+>|<duration>|\*\*\*(?:#\d+)?)/
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/y
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/y
const DURATION = /\d+[sm]?/y

/** Binds a recorded id to one of this run; false if it is already bound to another. */
export type Bind = (token: string, id: string) => boolean

/** Tells whether a recorded text contains tokens or marks. */
function hasToken(recorded: string): boolean {
  return TOKEN.test(recorded)
}

/**
 * Tells whether a text equals the recorded one, with its own ids and times, and with any text in place of a removed
 * secret.
 */
export function matchText(recorded: string, now: string, bind: Bind): boolean {
  if (recorded === now) return true
  const segments = recorded.split(TOKEN)
  if (segments.length === 1) return false
  const ids: [string, string][] = []
  return matchFrom({ segments, now, ids }) && ids.every(([token, id]) => bind(token, id))
}

interface Matching {
  /** Texts at even places, tokens between them. */
  readonly segments: readonly string[]
  readonly now: string
  readonly ids: [token: string, id: string][]
}

/** Matches each stretch up to the next mark once, from the end of the one before, which leaves the most room. */
function matchFrom(matching: Matching): boolean {
  const { segments, now } = matching
  let from = 0
  let at = 0
  let isAfterMark = false
  while (from < segments.length) {
    const mark = markAfter(segments, from)
    const stretch = { from, to: mark === -1 ? segments.length : mark, isLast: mark === -1 }
    const end = isAfterMark ? findStretch(matching, stretch, at) : endOfStretch(matching, stretch, at)
    if (end === -1) return false
    at = end
    from = stretch.to + 1
    isAfterMark = true
  }
  return at === now.length
}

/** Texts and tokens between two marks. */
interface Stretch {
  readonly from: number
  readonly to: number
  readonly isLast: boolean
}

/** The place of the next mark after a text; -1 for none. */
function markAfter(segments: readonly string[], from: number): number {
  for (let place = from + 1; place < segments.length; place += 2) if (segments[place]?.startsWith('***')) return place
  return -1
}

/** The most attempts to find the text after a secret. */
const MOST_TRIES = 10_000

/** Finds a stretch anywhere and returns its end; -1 for nowhere. */
function findStretch(matching: Matching, stretch: Stretch, from: number): number {
  const { segments, now, ids } = matching
  const first = segments[stretch.from] ?? ''
  if (stretch.isLast && stretch.to === stretch.from + 1) {
    return now.length - first.length >= from && now.endsWith(first) ? now.length : -1
  }
  let at = now.indexOf(first, from)
  for (let tries = 0; at !== -1 && tries < MOST_TRIES; tries++) {
    const known = ids.length
    const end = endOfStretch(matching, stretch, at)
    if (end !== -1 && (!stretch.isLast || end === now.length)) return end
    ids.length = known
    at = now.indexOf(first, at + 1)
  }
  return -1
}

/** Returns the end of a stretch that begins here; -1 if it does not. */
function endOfStretch(matching: Matching, { from, to }: Stretch, start: number): number {
  const { segments, now } = matching
  let at = start
  for (let place = from; place < to; place++) {
    const segment = segments[place] ?? ''
    const length = place % 2 === 0 ? lengthOfText(segment, now, at) : lengthOfToken(matching, segment, at)
    if (length === -1) return -1
    at += length
  }
  return at
}

function lengthOfText(text: string, now: string, at: number): number {
  return now.startsWith(text, at) ? text.length : -1
}

/** Measures a token. A text may contain the token itself, because models repeat what they read. */
function lengthOfToken({ now, ids }: Matching, token: string, at: number): number {
  if (now.startsWith(token, at)) return token.length
  const pattern = token.startsWith('<id:') ? ID : token === '<duration>' ? DURATION : TIME
  pattern.lastIndex = at
  const found = pattern.exec(now)?.[0]
  if (found === undefined) return -1
  if (pattern === ID) ids.push([token, found])
  return found.length
}
