import type { Json } from '../../base/json.ts'
import { type Bind, matchText } from './match-text.ts'

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
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(now)])) {
    const below = isList ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    compare({ path: below, recorded: recorded[key], now: now[key] }, bind, found)
  }
}

function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null
}
