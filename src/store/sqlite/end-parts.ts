import type { Json } from '../../base/json.ts'
import type { Id, NodeOutput } from '../../graph/rows.ts'
import { packUsage, toUsage, type UsageParts } from './parts.ts'

type Metadata = NonNullable<NodeOutput['metadata']>

/** Of a good end: the run, its usage, milliseconds, model calls. */
type EndParts = readonly [runId: string, usage: UsageParts | 0, durationMs: number, turns: number]

/** What the result of a delegation tells of its child's end, in short where that is what a good end usually says. */
export function packEnd(metadata: Metadata, child: Id): Metadata {
  const end = metadata['outcome'] as Partial<End> | null | undefined
  if (end?.status !== 'completed' || end.usage === undefined) return metadata
  const { run_id: runId = '', duration_ms: durationMs = 0, turns = 0 } = end
  const parts: EndParts = [runId, packUsage(end.usage) ?? 0, durationMs, turns]
  return isSame(end, toEnd(parts, child)) ? { ...metadata, outcome: parts as unknown as Json } : metadata
}

export function toWhole(metadata: Metadata, child: Id): Metadata {
  const { outcome } = metadata
  if (!Array.isArray(outcome)) return metadata
  return { ...metadata, outcome: toEnd(outcome as unknown as EndParts, child) as unknown as Json }
}

interface End {
  readonly status: string
  readonly run_id: string
  readonly conversation_id: Id
  readonly error: null
  readonly usage: ReturnType<typeof toUsage>
  readonly duration_ms: number
  readonly turns: number
  readonly retryable: boolean
  readonly advice: null
}

function toEnd([run_id, usage, duration_ms, turns]: EndParts, child: Id): End {
  return {
    status: 'completed',
    run_id,
    conversation_id: child,
    error: null,
    usage: toUsage(usage || undefined),
    duration_ms,
    turns,
    retryable: false,
    advice: null,
  }
}

/** In every field, and in their order: what is read back is written as the same text. */
function isSame(end: object, usual: object): boolean {
  return JSON.stringify(end) === JSON.stringify(usual)
}
