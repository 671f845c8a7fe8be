import { isRecord, type Json } from '../../base/json.ts'
import type { CheckedSchema } from '../../base/schema/schema.ts'

/** The slots of a prompt, in the order of the file language. Any other key is an extra, and shown too. */
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

/** The values of one layer. A null hides the value of the layer below. Never changed. */
export type SlotLayer = ReadonlyMap<string, SlotValue>

export interface Layers {
  /** Holds for every request. */
  readonly agent: SlotLayer
  /** Holds for this request only. */
  readonly request: SlotLayer
}

export function isSlot(key: string): key is Slot {
  return (SLOTS as readonly string[]).includes(key)
}

/** The items of a slot that holds a list. */
export function itemsIn<Item>(layer: SlotLayer, slot: 'chat_history' | 'attachment' | 'tools'): readonly Item[] {
  const value = layer.get(slot)
  return Array.isArray(value) ? (value as unknown as readonly Item[]) : []
}

/** True for null, '', [] and {}. Zero and false are values. */
export function isEmpty(value: SlotValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isRecord(value) && Object.keys(value).length === 0
}
