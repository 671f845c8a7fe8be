// A trace from rows: the spans of a run and everything below it, as OTLP/JSON.
//
// Stays true: the same rows give the same bytes, in every process and at any time. So a trace that is sent twice is there once,
// a crash loses none, and runs that were recorded before anybody traced have one too.

import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Node, Turn } from '../../graph/rows.ts'
import { look } from '../../store/look.ts'
import type { Store } from '../../store/store.ts'
import type { Span, SpanAttributes, SpanValue } from '../../tool/telemetry.ts'
import { happenedIn, type TimelineAttempt, type TimelineRun, type TimelineSpan, timelineRun } from '../data/timeline.ts'
import type { AskedModel } from './messages.ts'
import { SCHEMA_URLS } from './names.ts'
import {
  addRequest,
  isCall,
  isOwnWork,
  isSpeaking,
  type ModelTry,
  modelSpan,
  runSpan,
  type SpanStyle,
  toolSpan,
  waitsForPeople,
} from './spans.ts'

/** A trace as OTLP/JSON: the body of `POST /v1/traces` of a collector. */
export interface OtlpTraces {
  readonly resourceSpans: readonly OtlpResource[]
}

export interface OtlpResource {
  readonly resource: { readonly attributes: readonly OtlpAttribute[] }
  readonly scopeSpans: readonly {
    readonly scope: { readonly name: string }
    readonly spans: readonly OtlpSpan[]
    readonly schemaUrl: string
  }[]
}

export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  /** 1: internal; 3: a call of another service. */
  readonly kind: 1 | 3
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly OtlpAttribute[]
  readonly events: readonly {
    readonly timeUnixNano: string
    readonly name: string
    readonly attributes: readonly OtlpAttribute[]
  }[]
  /** 0: nothing is said; 2: it failed. */
  readonly status: { readonly code: 0 | 2 }
}

export interface OtlpAttribute {
  readonly key: string
  readonly value: OtlpValue
}

export type OtlpValue =
  | { readonly stringValue: string }
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly boolValue: boolean }
  | { readonly arrayValue: { readonly values: readonly OtlpValue[] } }

/** The runs with everything below them, read page by page. What has not ended is left out. */
export async function otlpOf(
  store: Store,
  runs: AsyncIterable<readonly Turn[]>,
  style: TraceStyle,
): Promise<OtlpTraces> {
  const spans: OtlpSpan[] = []
  for await (const turns of runs) {
    for (const span of await spansOf(store, turns, style)) spans.push(otlpSpan(await withRequest(span, style)))
  }
  return otlpTraces(spans, style)
}

/** Gives the request of a model call by its node; undefined where nobody knows it. */
export type AskedOf = (nodeId: Id) => Promise<AskedModel | undefined>

interface TraceStyle extends SpanStyle {
  /** Null where requests are not in the trace. */
  readonly askedOf: AskedOf | null
}

/** A request is looked for only where spans carry something of it: each is made of all that its model was shown. */
async function withRequest(span: Span, style: TraceStyle): Promise<Span> {
  const { askedOf, shows } = style
  const nodeId = span.kind === 'model' ? span.attributes['legate.node.id'] : undefined
  if (typeof nodeId !== 'string' || askedOf === null || !(shows('input') || shows('instructions'))) return span
  const asked = await askedOf(nodeId)
  if (asked === undefined) return span
  const result = { ...span.result }
  addRequest(result, asked, style)
  return { ...span, result }
}

async function spansOf(store: Store, turns: readonly Turn[], style: SpanStyle): Promise<readonly Span[]> {
  const rootId = turns[0]?.rootId ?? ''
  const happened = await happenedIn(store, rootId, turns)
  return look(store, rootId, (tree) =>
    turns.flatMap((turn) => [...spansBelow(tree, timelineRun(tree, turn, happened), style)]),
  )
}

function* spansBelow(tree: TreeReader, run: TimelineRun, style: SpanStyle): Generator<Span> {
  const turn = tree.turn(run.runId)
  if (turn === undefined) return
  const own = runSpan(tree, turn, { style })
  if (own !== undefined) yield own
  for (const part of run.spans) {
    const node = tree.node(part.nodeId)
    if (node?.endedAt != null && isOwnWork(node, turn)) yield* nodeSpans(tree, node, part, style)
    for (const below of part.runs) yield* spansBelow(tree, below, style)
  }
}

function nodeSpans(tree: TreeReader, node: Node, part: TimelineSpan, style: SpanStyle): Span[] {
  if (isSpeaking(node)) return triesOf(node, part).map((tried) => modelSpan(tree, node, { tried, style }))
  const span = isCall(node) ? toolSpan(tree, node, { waits: waitsForPeople(part), style }) : undefined
  return span === undefined ? [] : [span]
}

/** The tries of a model call. Code that answers called none, and a row says no model for it. */
function triesOf(node: Node, { model, attempts }: TimelineSpan): ModelTry[] {
  if (model === null && node.failure?.code !== 'model' && attempts.length < 2) return []
  return attempts.flatMap(({ end, ...tried }) => (end === null ? [] : [modelTry(tried, model, end)]))
}

function modelTry(
  { attempt, usage, start, error }: Omit<TimelineAttempt, 'end'>,
  model: string | null,
  end: number,
): ModelTry {
  return { attempt, model, usage, start, end, error: error === null ? null : 'model' }
}

/** Spans as a document of OTLP. */
function otlpTraces(spans: readonly OtlpSpan[], { vocabulary }: Pick<SpanStyle, 'vocabulary'>): OtlpTraces {
  const resource = { 'service.name': 'legate', 'legate.vocabulary': vocabulary }
  const scope = { scope: { name: 'legate' }, spans, schemaUrl: SCHEMA_URLS[vocabulary] }
  return { resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans: [scope] }] }
}

function otlpSpan(span: Span): OtlpSpan {
  const { traceId, spanId, parentId, name, kind, start, end, attributes, result, events, error } = span
  return {
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    name,
    kind: kind === 'model' ? 3 : 1,
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(end),
    attributes: attributesOf({ ...attributes, ...result }),
    events: events.map((event) => ({
      timeUnixNano: nanos(event.at),
      name: event.name,
      attributes: attributesOf(event.attributes),
    })),
    status: { code: error === null ? 0 : 2 },
  }
}

function nanos(ms: number): string {
  return `${BigInt(Math.round(ms)) * 1_000_000n}`
}

function attributesOf(attributes: SpanAttributes): OtlpAttribute[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: otlpValue(value) }))
}

function otlpValue(value: SpanValue): OtlpValue {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  return { arrayValue: { values: value.map((one) => ({ stringValue: one })) } }
}
