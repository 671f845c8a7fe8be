import type { Json } from '../base/json.ts'
import { Prompt } from './prompt.ts'
import { viewOf } from './slots/layer.ts'
import { SchemaOutput } from './slots/slot.ts'

/** What a prompt shows, as plain data: a schema of a library is its JSON Schema. */
export function slotsOf(prompt: Prompt): { readonly [slot: string]: Json } {
  const entries = [...viewOf(prompt.layers)].map(([slot, value]): [string, Json] => {
    if (!(value instanceof SchemaOutput)) return [slot, value]
    return [slot, { $schema: value.checked.jsonSchema as { [key: string]: Json } }]
  })
  return Object.fromEntries(entries)
}

/** A prompt that shows this. */
export function promptOf(slots: { readonly [slot: string]: Json }): Prompt {
  return Object.entries(slots).reduce((made, [slot, value]) => made.replace(slot, value), new Prompt())
}
