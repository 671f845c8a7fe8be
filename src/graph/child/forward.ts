import type { Json } from '../../base/json.ts'
import type { RunEvent } from '../event.ts'
import type { Conversation } from '../rows.ts'

/** Which events of a child its host's readers see, and how. A view: nothing that happens depends on it. */
export interface Forward {
  /** Null for all. */
  readonly types: readonly RunEvent['type'][] | null
  /** Each delta says all that was streamed so far. */
  readonly cumulative: boolean
}

/** Where a child's conversation says how it is forwarded. Without it, all is. */
const KEY = 'forward_events'

export function withForward(metadata: Conversation['metadata'], forward: Forward | null): Conversation['metadata'] {
  if (forward === null && !(KEY in metadata)) return metadata
  const { [KEY]: _, ...others } = metadata
  if (forward === null) return others
  return { ...metadata, [KEY]: { types: forward.types as Json, cumulative: forward.cumulative } }
}

export function forwardOf({ metadata }: Conversation): Forward | null {
  const value = metadata[KEY]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { types, cumulative } = value
  return { types: Array.isArray(types) ? (types as Forward['types']) : null, cumulative: cumulative === true }
}

export function sameForward(a: Forward | null, b: Forward | null): boolean {
  if (a === b) return true
  if (a === null || b === null) return false
  return a.cumulative === b.cumulative && a.types?.join() === b.types?.join()
}
