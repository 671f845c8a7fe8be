import type { Json } from '../../base/json.ts'
import { yamlEntries } from '../render/yaml-text.ts'
import { type Layer, type Layers, SchemaOutput } from '../slots/slot.ts'

export function yamlPrompt({ agent, request }: Layers): string {
  return `.agent:${yamlLayer(agent)}.request:${yamlLayer(request)}`
}

export function jsonPrompt({ agent, request }: Layers): string {
  return `{\n  ".agent": ${jsonLayer(agent)},\n  ".request": ${jsonLayer(request)}\n}\n`
}

function yamlLayer(layer: Layer): string {
  return layer.size === 0 ? ' {}\n' : `\n${yamlEntries(entriesOf(layer), '  ')}\n`
}

function jsonLayer(layer: Layer): string {
  if (layer.size === 0) return '{}'
  const lines = entriesOf(layer).map(([slot, value]) => {
    return `    ${JSON.stringify(slot)}: ${JSON.stringify(value, null, 2).replaceAll('\n', '\n    ')}`
  })
  return `{\n${lines.join(',\n')}\n  }`
}

/** A schema of a library is written as its JSON Schema. */
function entriesOf(layer: Layer): [string, Json][] {
  return [...layer].map(([slot, value]) => {
    if (!(value instanceof SchemaOutput)) return [slot, value]
    return [slot, { $schema: value.checked.jsonSchema as { [key: string]: Json } }]
  })
}
