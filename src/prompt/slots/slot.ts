import { isRecord, type Json } from '../../base/json.ts'
import type { CheckedSchema } from '../../base/schema/schema.ts'

/** The places of a prompt, in the order in which the file language lists them. Any other key is an extra: shown too. */
export const SLOTS = Object.freeze([
  'system',
  'developer',
  'chat_history',
  'info',
  'tools',
  'action_results',
  'instruct',
  'examples',
  'input',
  'attachment',
  'output',
  'output_format',
  'options',
] as const)

export type Slot = (typeof SLOTS)[number]

/** A schema of a library as the whole `output`. Everything else in a prompt is plain data. */
export class SchemaOutput {
  readonly checked: CheckedSchema

  constructor(checked: CheckedSchema) {
    this.checked = checked
  }
}

export type SlotValue = Json | SchemaOutput

/** What was said in one layer. A null hides what the layer below says. Never changed. */
export type Layer = ReadonlyMap<string, SlotValue>

export interface Layers {
  /** What holds for every request. */
  readonly agent: Layer
  /** What holds for this one. */
  readonly request: Layer
}

export function isSlot(key: string): key is Slot {
  return (SLOTS as readonly string[]).includes(key)
}

/** The items of a slot that keeps a list, in the form that it was read to. */
export function itemsIn<Item>(layer: Layer, slot: 'chat_history' | 'attachment' | 'tools'): readonly Item[] {
  const value = layer.get(slot)
  return Array.isArray(value) ? (value as unknown as readonly Item[]) : []
}

/** Says nothing: null, '', [] or {}. Zero and false do say something. */
export function isEmpty(value: SlotValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isRecord(value) && Object.keys(value).length === 0
}
