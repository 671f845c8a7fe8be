import { canonicalJson, type Json } from '../../base/json.ts'
import { isDescribed } from '../shape/read-shape.ts'
import { isRecord, type JsonRecord, type SlotValue } from './slot.ts'

/**
 * What a slot holds after `next` is said in the layer that said `old`: objects are merged, a list gets what it does not
 * have yet, everything else is replaced. History and attachments keep what is equal.
 */
export function mergeValue(slot: string, old: SlotValue | undefined, next: SlotValue): SlotValue {
  if (old === undefined || old === null || next === null) return next
  if (slot !== 'output' && Array.isArray(old)) return appended(slot, old, next as Json)
  return layered(slot, old, next)
}

/**
 * What is seen where the request says `next` and the agent `old`: objects are merged, and what the agent always instructs
 * in a list (a rule of its) stays before what the request instructs.
 */
export function layered(slot: string, old: SlotValue, next: SlotValue): SlotValue {
  if (slot === 'system') return mergeSystem(old as Json, next as Json)
  if (slot === 'instruct' && Array.isArray(old) && next !== null) return appended(slot, old, next as Json)
  if (!isRecord(old) || !isRecord(next)) return next
  return slot === 'output' ? mergeShapes(old, next) : mergeRecords(old, next)
}

/** The value as a list with more at its end. */
export function addedTo(slot: string, old: SlotValue | undefined, next: Json): Json {
  if (old === undefined || old === null) return Array.isArray(next) ? next : [next]
  return appended(slot, Array.isArray(old) ? old : [old as Json], next)
}

/** Equal messages are both said; a tool is known by its name, everything else by all it is. */
function appended(slot: string, old: readonly Json[], next: Json): Json {
  const more = Array.isArray(next) ? next : [next]
  if (slot === 'chat_history' || slot === 'attachment') return [...old, ...more]
  const keyOf = slot === 'tools' ? toolName : canonicalJson
  const items = new Map(old.map((item) => [keyOf(item), item]))
  for (const item of more) items.set(keyOf(item), item)
  return [...items.values()]
}

function toolName(tool: Json): string {
  return isRecord(tool) ? String(tool['name']) : canonicalJson(tool)
}

/** A text and rules, whoever comes first, are both kept: the text becomes `instructions`. */
function mergeSystem(old: Json, next: Json): Json {
  if (isRecord(old) && isRecord(next)) return mergeRecords(old, next)
  if (isRecord(old) && typeof next === 'string') return { ...old, instructions: next }
  if (typeof old === 'string' && isRecord(next)) return { instructions: old, ...next }
  return next
}

function mergeRecords(old: JsonRecord, next: JsonRecord): JsonRecord {
  const merged = new Map(Object.entries(old))
  for (const [key, value] of Object.entries(next)) {
    const before = merged.get(key)
    merged.set(key, isRecord(before) && isRecord(value) ? mergeRecords(before, value) : value)
  }
  return Object.fromEntries(merged)
}

/** A field that is described anew is replaced with its description; only plain objects of fields are merged. */
function mergeShapes(old: JsonRecord, next: JsonRecord): JsonRecord {
  if (isDescribed(old) || isDescribed(next)) return next
  const merged = new Map(Object.entries(old))
  for (const [key, value] of Object.entries(next)) {
    const before = merged.get(key)
    merged.set(key, isRecord(before) && isRecord(value) ? mergeShapes(before, value) : value)
  }
  return Object.fromEntries(merged)
}
