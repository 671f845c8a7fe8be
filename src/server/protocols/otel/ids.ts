// Ids of spans that every process makes alike. A provider asks its id generator for the id of each span: ours gives the id that
// the rows say, and a random one for spans of others.

import { randomBytes } from 'node:crypto'
import type { Tracer } from '@opentelemetry/api'
import type { SpanPlace } from '../../../doors/hooks.ts'

/** Makes the ids of spans, as providers of OpenTelemetry want it. */
export interface IdGenerator {
  generateTraceId(): string
  generateSpanId(): string
}

type SpanIds = Pick<SpanPlace, 'traceId' | 'spanId'>

let wanted: SpanIds | null = null

/** Gives spans of Legate the ids of their rows: `new NodeTracerProvider({ idGenerator: legateIds })`. */
export const legateIds: IdGenerator = Object.freeze({
  generateTraceId: () => wanted?.traceId ?? randomBytes(16).toString('hex'),
  generateSpanId: () => wanted?.spanId ?? randomBytes(8).toString('hex'),
})

/** Makes a span that has these ids, where the provider takes them. */
export function withIds<T>(ids: SpanIds, make: () => T): T {
  wanted = ids
  try {
    return make()
  } finally {
    wanted = null
  }
}

const known: WeakMap<Tracer, boolean> = new WeakMap()
const PROBE: SpanIds = { traceId: '0123456789abcdef0123456789abcdef', spanId: '0123456789abcdef' }

/** Does this tracer take our ids? One span that is never ended, and so never exported, tells. */
export function isGiven(tracer: Tracer): boolean {
  const found =
    known.get(tracer) ??
    withIds(PROBE, () => tracer.startSpan('probe', { root: true })).spanContext().spanId === PROBE.spanId
  known.set(tracer, found)
  return found
}
