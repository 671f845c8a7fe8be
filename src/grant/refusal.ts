import { askLayer, decide, reasonOf, safely } from './decide.ts'
import type { Layer } from './grant.ts'
import { type Request, requestText } from './request.ts'

/** Says of requests that are denied which rules deny them, and which are missing. */
export function refusalOf(layers: readonly Layer[], requests: readonly Request[]): string {
  const silent = new Map<Layer, Request[]>()
  const said: string[] = []
  for (const request of requests) {
    const layer = layers.find((one) => safely(() => askLayer(one, request)).verdict === 'deny')
    if (layer === undefined || safely(() => askLayer(layer, request)).rule !== null)
      said.push(decide(layers, request).reason)
    else silent.set(layer, [...(silent.get(layer) ?? []), request])
  }
  const missing = [...silent].map(([layer, wanted]) => reasonOf(layer, null, ...wanted.map(requestText)))
  return [...new Set([...said, ...missing])].join('; ')
}
