import type { Json } from '../../base/json.ts'
import { type Bind, hasToken, matchText } from './match-text.ts'

export interface Difference {
  /** `messages[2].content`. */
  readonly path: string
  readonly recorded: Json | undefined
  readonly now: Json | undefined
}

/** Where two values differ, apart from what differs in every run. */
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

/** Each key of either, and what it is called now: a recorded one may hold a mark or a token. */
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
