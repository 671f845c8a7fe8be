import { isRecord, type Json } from '../../base/json.ts'
import { matchesKey, type PathPattern, readPath } from '../../fields/path-pattern.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Turn } from '../../graph/rows.ts'
import { readAskedSlots } from '../../graph/tasks.ts'
import type { Prompt } from '../../prompt/prompt.ts'
import { yamlText } from '../../prompt/render/yaml-text.ts'

/** The part of a request and of its answer that later requests of the chat see. Plain data, which the rows store. */
export type ChatRecord = {
  /** Slots, or places in them. Empty: the whole input. */
  readonly input: readonly (readonly [slot: string, path: string])[]
  readonly inputMode: 'all' | 'first'
  /** Places in the answer. Empty: its whole text. */
  readonly output: readonly string[]
  readonly outputMode: 'all' | 'first'
  /** The most characters of the history: the newest messages that fit. Null for no limit. */
  readonly maxLength: number | null
}

/** The recorded part of the input; undefined where nothing of it was chosen or found. */
export function recordedInput(prompt: Prompt, { input, inputMode }: ChatRecord): string | undefined {
  const found: [readonly [string, string], Json][] = []
  for (const place of input) {
    const [slot, path] = place
    const value = valueAt(prompt.get(slot), path)
    if (value !== undefined) found.push([place, value])
  }
  const [first] = found
  if (first === undefined) return undefined
  if (inputMode === 'first') return inText(first[1])
  const slots = new Map<string, Json>()
  for (const [[slot, path], value] of found) {
    const known = slots.get(slot)
    slots.set(slot, path === '' ? value : { ...(isRecord(known) ? known : {}), [path]: value })
  }
  return yamlText(Object.fromEntries(slots))
}

/** The chat record in a turn's stored request; undefined where the request belongs to no chat. */
export function chatIn(reader: TreeReader, turn: Turn): ChatRecord | undefined {
  const asked = readAskedSlots(reader, turn)
  return isRecord(asked) && isRecord(asked['chat']) ? (asked['chat'] as unknown as ChatRecord) : undefined
}

/** Undefined where nothing was chosen or found: the whole text is used then. */
export function recordedOutput(value: Json | undefined, record: ChatRecord | undefined): string | undefined {
  if (record === undefined) return undefined
  const { output, outputMode } = record
  const found: [string, Json][] = []
  for (const path of output) {
    const at = valueAt(value, path)
    if (at !== undefined) found.push([path, at])
  }
  const [first] = found
  if (first === undefined) return undefined
  return outputMode === 'first' ? inText(first[1]) : yamlText(Object.fromEntries(found))
}

/** The value at a path; with a star in it, all values there as a list. */
function valueAt(value: Json | undefined, path: string): Json | undefined {
  if (value === undefined) return undefined
  const pattern = readPath(path)
  const found = valuesAt(value, pattern)
  const isMany = pattern.some(({ index, isAnyKey }) => index === '*' || isAnyKey)
  if (found.length === 0) return undefined
  return isMany ? found : found[0]
}

function valuesAt(value: Json, [segment, ...others]: PathPattern): Json[] {
  if (segment === undefined) return [value]
  if (typeof value !== 'object' || value === null) return []
  const entries: [string | number, Json][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return entries.flatMap(([key, item]) => (matchesKey(segment, key) ? valuesAt(item, others) : []))
}

function inText(value: Json): string {
  if (typeof value === 'string') return value
  return typeof value === 'object' && value !== null ? yamlText(value) : String(value)
}
