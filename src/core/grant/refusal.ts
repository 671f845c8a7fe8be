import { askLayer, type Decision, reasonOf, safely } from './decide.ts'
import type { Layer } from './grant.ts'
import type { Request } from './request.ts'

/** A request and the decision that denies it. */
interface Denial {
  readonly request: Request
  readonly decision: Decision
}

/** Says of requests that are denied which rules deny them, and which are missing. */
export function refusalOf(layers: readonly Layer[], denials: readonly Denial[]): string {
  const silent = new Map<Layer, Request[]>()
  const said: string[] = []
  for (const { request, decision } of denials) {
    const layer = layers.find((one) => safely(() => askLayer(one, request)).verdict === 'deny')
    if (layer === undefined || safely(() => askLayer(layer, request)).rule !== null) said.push(decision.reason)
    else silent.set(layer, [...(silent.get(layer) ?? []), request])
  }
  const missing = [...silent].map(([layer, wanted]) => reasonOf(layer, null, ...wanted))
  return [...new Set([...said, ...missing])].join('; ')
}
