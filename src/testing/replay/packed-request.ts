import type { Json } from '../../base/json.ts'
import type { PackedRequest } from './lines.ts'

/** A request as it is compared: all that a model is given. */
export interface PlainRequest {
  readonly messages: readonly Json[]
  readonly tools: Json
  readonly settings: Json
  readonly outputSchema: Json
}

export interface Base {
  readonly at: string
  readonly request: PlainRequest
}

const REST = ['tools', 'settings', 'outputSchema'] as const
const NOTHING: PlainRequest = { messages: [], tools: [], settings: {}, outputSchema: null }

/** Without what an earlier request has said as well: a recording grows with what is said, not with how often. */
export function packRequest(request: PlainRequest, base: Base | undefined): PackedRequest {
  const known = base?.request ?? NOTHING
  const keep = request.messages.findIndex((message, at) => !isSame(message, known.messages[at]))
  const kept = keep === -1 ? Math.min(request.messages.length, known.messages.length) : keep
  const changed = REST.filter((key) => !isSame(request[key], known[key])).map((key) => [key, request[key]])
  return {
    ...(base === undefined ? {} : { after: base.at, keep: kept }),
    messages: request.messages.slice(base === undefined ? 0 : kept),
    ...Object.fromEntries(changed),
  }
}

export function unpackRequest(packed: PackedRequest, base: PlainRequest = NOTHING): PlainRequest {
  const { keep = 0, messages, tools = base.tools, settings = base.settings } = packed
  const { outputSchema = base.outputSchema } = packed
  return { messages: [...base.messages.slice(0, keep), ...messages], tools, settings, outputSchema }
}

function isSame(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
