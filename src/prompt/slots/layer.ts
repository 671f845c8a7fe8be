import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import { addedTo, layered, mergeValue } from './merge.ts'
import { frozen } from './plain-value.ts'
import { type Layer, type Layers, SchemaOutput, type SlotValue } from './slot.ts'

export type LayerName = 'agent' | 'request'

export const NO_LAYERS: Layers = { agent: new Map(), request: new Map() }

/** How a value meets what the slot has: merged with it, instead of it, or at the end of it. */
export type Manner = 'set' | 'replace' | 'add'

export interface Saying {
  readonly layer: LayerName
  readonly slot: string
  readonly value: SlotValue
  readonly manner: Manner
}

/** The layers with one more thing said. Those given stay as they are. */
export function say(layers: Layers, saying: Saying): Layers {
  const { layer, slot } = saying
  const value = newValue(layers, saying)
  const kept = value instanceof SchemaOutput ? value : frozen(value)
  return { ...layers, [layer]: new Map(layers[layer]).set(slot, kept) }
}

/** What a request sees: its own layer over the agent's. A null in the upper one hides what is below. */
export function viewOf({ agent, request }: Layers): Layer {
  const view = new Map(agent)
  for (const [slot, value] of request) {
    const below = view.get(slot)
    view.set(slot, below === undefined || below === null ? value : layered(slot, below, value))
  }
  for (const [slot, value] of view) if (value === null) view.delete(slot)
  return view
}

const SINGLE = ['output', 'output_format', 'options']

/** What is added to a request is added to all that it sees. */
function newValue(layers: Layers, { layer, slot, value, manner }: Saying): SlotValue {
  if (manner === 'replace') return value
  if (manner === 'set') return mergeValue(slot, layers[layer].get(slot), value)
  const seen = layer === 'agent' ? layers.agent.get(slot) : viewOf(layers).get(slot)
  if (value === null) return seen ?? null
  if (!SINGLE.includes(slot)) return addedTo(slot, seen, value as Json)
  throw new DefinitionError('definition', `prompt: ${slot} holds no list. Use set or replace.`)
}
