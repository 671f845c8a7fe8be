import { DefinitionError } from '../../base/error.ts'
import { canonicalJson, isRecord, type Json, type JsonRecord } from '../../base/json.ts'
import { isDescribed } from '../shape/read-shape.ts'
import { frozen } from './placeholder.ts'
import { type Layers, SchemaOutput, type SlotLayer, type SlotValue } from './slot.ts'

export type LayerName = 'agent' | 'request'

export const NO_LAYERS: Layers = { agent: new Map(), request: new Map() }

/** How a new value meets the slot's value: merged with it, instead of it, or at the end of it. */
export type MergeMode = 'set' | 'replace' | 'add'

export interface SlotChange {
  readonly layer: LayerName
  readonly slot: string
  readonly value: SlotValue
  readonly mode: MergeMode
}

/** Returns the layers with one more value. The given layers do not change. */
export function changeSlot(layers: Layers, saying: SlotChange): Layers {
  const { layer, slot } = saying
  const value = newValue(layers, saying)
  const kept = value instanceof SchemaOutput ? value : frozen(value)
  return { ...layers, [layer]: new Map(layers[layer]).set(slot, kept) }
}

/**
 * The slots that a request sees: its own layer on top of the agent's. A null in the request's layer hides the agent's
 * value.
 */
export function viewOf({ agent, request }: Layers): SlotLayer {
  const view = new Map(agent)
  for (const [slot, value] of request) {
    const below = view.get(slot)
    view.set(slot, below === undefined || below === null ? value : layered(slot, below, value))
  }
  for (const [slot, value] of view) if (value === null) view.delete(slot)
  return view
}

const SINGLE = ['output', 'output_format', 'options']

/** `add` in a request adds to everything that the request sees. */
function newValue(layers: Layers, { layer, slot, value, mode }: SlotChange): SlotValue {
  if (mode === 'replace') return value
  if (mode === 'set') return mergeValue(slot, layers[layer].get(slot), value)
  const seen = layer === 'agent' ? layers.agent.get(slot) : viewOf(layers).get(slot)
  if (value === null) return seen ?? null
  if (!SINGLE.includes(slot)) return addedTo(slot, seen, value as Json)
  throw new DefinitionError('definition', `prompt: ${slot} holds no list. Use set or replace.`)
}

/**
 * Merges `next` into the value `old` of the same layer: objects are merged, a list gets the items it lacks, everything
 * else is replaced. History and attachments keep equal items.
 */
function mergeValue(slot: string, old: SlotValue | undefined, next: SlotValue): SlotValue {
  if (old === undefined || old === null || next === null) return next
  if (slot !== 'output' && Array.isArray(old)) return appended(slot, old, next as Json)
  return layered(slot, old, next)
}

/**
 * Puts the request's value `next` over the agent's value `old`: objects are merged, and a list of the agent's
 * instructions (such as a rule) stays before the request's.
 */
function layered(slot: string, old: SlotValue, next: SlotValue): SlotValue {
  if (slot === 'system') return mergeSystem(old as Json, next as Json)
  if (slot === 'instruct' && Array.isArray(old) && next !== null) return appended(slot, old, next as Json)
  if (!isRecord(old) || !isRecord(next)) return next
  return slot === 'output' ? mergeShapes(old, next) : mergeRecords(old, next)
}

/** Turns the value into a list and adds to its end. */
function addedTo(slot: string, old: SlotValue | undefined, next: Json): Json {
  if (old === undefined || old === null) return Array.isArray(next) ? next : [next]
  return appended(slot, Array.isArray(old) ? old : [old as Json], next)
}

/** Keeps equal messages; compares tools by their names, everything else by value. */
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

/** Keeps both a text and rules, in either order: the text becomes `instructions`. */
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

/** Merges plain objects of fields only; a newly described field replaces the old one with its description. */
function mergeShapes(old: JsonRecord, next: JsonRecord): JsonRecord {
  if (isDescribed(old) || isDescribed(next)) return next
  const merged = new Map(Object.entries(old))
  for (const [key, value] of Object.entries(next)) {
    const before = merged.get(key)
    merged.set(key, isRecord(before) && isRecord(value) ? mergeShapes(before, value) : value)
  }
  return Object.fromEntries(merged)
}
