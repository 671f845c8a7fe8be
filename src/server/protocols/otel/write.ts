// Traces and metrics of runs, over the API of OpenTelemetry. The provider is the program's own.
//
// Owns:      the translation of our spans into those of the API, and the context in which models and tools run.
// Called by: `createRuntime({ telemetry: otel() })`; `conversation/trace` tells it what begins and ends.
// Must stay true:
//   - A span is exported once, when its row has ended, with the times of the row.
//   - It holds no state that a run needs: another process ends what this one began.
//   - Where nobody has registered a provider, nothing is made.

import type { Context, Span as OtelSpan, SpanContext, Tracer, TracerProvider } from '@opentelemetry/api'
import { wantedVocabulary } from '../../../core/base/package/vocabulary.ts'
import type { Inside, Span, SpanContent, SpanStart, Telemetry, Vocabulary } from '../../../doors/hooks.ts'
import { DefinitionError } from '../../../index.ts'
import { api } from './api.ts'
import { isGiven, withIds } from './ids.ts'
import { type MeterSource, Metrics } from './metrics.ts'

export interface OtelOptions {
  /** The provider of spans. Default: the one that is registered. */
  readonly tracerProvider?: TracerProvider
  /** The provider of metrics. Default: the one that is registered. */
  readonly meterProvider?: MeterSource
  /** True: spans carry the text of people and models, arguments and results. A function decides for each kind. Default false. */
  readonly content?: boolean | ((what: SpanContent) => boolean)
  /**
   * The names of attributes and metrics. Default `1.41`, or `latest` where the environment variable
   * `OTEL_SEMCONV_STABILITY_OPT_IN` has `gen_ai_latest_experimental`.
   */
  readonly vocabulary?: Vocabulary
}

const OPTIONS = ['tracerProvider', 'meterProvider', 'content', 'vocabulary']

/** Traces every run of a runtime, and counts its tokens and seconds: `createRuntime({ telemetry: otel() })`. */
export function otel(options: OtelOptions = {}): Telemetry {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
  if (unknown !== undefined) {
    throw new DefinitionError('definition', `otel({ ${unknown} }): there is ${OPTIONS.join(', ')}.`)
  }
  const { vocabulary = wantedVocabulary() } = options
  if (vocabulary !== '1.41' && vocabulary !== 'latest') {
    throw new DefinitionError('definition', "otel({ vocabulary }): it is '1.41' or 'latest'.")
  }
  api()
  return new OtelTelemetry({ ...options, vocabulary })
}

/** A span of the API that is not over, and its context. */
interface HeldSpan {
  readonly span: OtelSpan
  /** The context of what is below it. A context is a copy of a map: one is made for all of it. */
  readonly own: Context
  readonly inside: Inside
}

/** The most spans that are held. An older one is let go: whoever ends its row begins it again. */
const MOST_HELD = 10_000

class OtelTelemetry implements Telemetry {
  readonly vocabulary: Vocabulary
  readonly shows: (what: SpanContent) => boolean
  private readonly options: OtelOptions
  private readonly held: Map<string, HeldSpan> = new Map()
  private readonly metrics: Metrics
  private known: TracerProvider | undefined
  private tracer: Tracer | undefined

  constructor(options: OtelOptions & { readonly vocabulary: Vocabulary }) {
    const { content = false, vocabulary, meterProvider } = options
    this.options = options
    this.vocabulary = vocabulary
    this.shows = typeof content === 'function' ? content : () => content
    this.metrics = new Metrics(vocabulary, meterProvider)
  }

  isOn(): boolean {
    return this.tracerNow() !== undefined || this.metrics.isOn()
  }

  traceparent(): string | null {
    const { context, trace } = api()
    return written(trace.getSpanContext(context.active()))
  }

  traceparentOf(spanId: string): string | null {
    return written(this.held.get(spanId)?.span.spanContext())
  }

  begin(start: SpanStart): Inside {
    const known = this.held.get(start.spanId)
    if (known !== undefined) return known.inside
    if (start.kind === 'model') this.metrics.asked(start.spanId)
    const tracer = this.tracerNow()
    return tracer === undefined ? asIs : this.hold(start.spanId, this.open(tracer, start)).inside
  }

  firstPart(spanId: string): void {
    this.metrics.heard(spanId)
  }

  end(ended: Span): void {
    this.metrics.count(ended)
    const tracer = this.tracerNow()
    if (tracer === undefined) return
    const span = this.held.get(ended.spanId)?.span ?? this.open(tracer, ended)
    this.held.delete(ended.spanId)
    span.setAttributes(ended.result as Parameters<OtelSpan['setAttributes']>[0])
    for (const { name, attributes, at } of ended.events) span.addEvent(name, { ...attributes } as never, at)
    if (ended.error !== null) span.setStatus({ code: api().SpanStatusCode.ERROR })
    span.end(ended.end)
  }

  private open(tracer: Tracer, start: SpanStart): OtelSpan {
    const { SpanKind } = api()
    const { name, kind, attributes } = start
    const options = {
      kind: kind === 'model' ? SpanKind.CLIENT : SpanKind.INTERNAL,
      startTime: start.start,
      attributes: attributes as never,
    }
    const above = this.above(start)
    return withIds(start, () => tracer.startSpan(name, options, above))
  }

  private hold(spanId: string, span: OtelSpan): HeldSpan {
    const { context, ROOT_CONTEXT, trace } = api()
    const own = trace.setSpan(ROOT_CONTEXT, span)
    const held: HeldSpan = { span, own, inside: (code) => context.with(own, code) }
    this.held.set(spanId, held)
    const [oldest] = this.held.size > MOST_HELD ? this.held.keys() : []
    if (oldest !== undefined) this.held.delete(oldest)
    return held
  }

  /** The context of the parent: of a span that is held here, of one in another process, or of the caller. */
  private above({ traceId, spanId, parentId }: SpanStart): Context {
    const held = parentId === null ? undefined : this.held.get(parentId)
    if (held !== undefined) return held.own
    const { ROOT_CONTEXT, TraceFlags, trace } = api()
    // Without a parent the ids are ours where the provider takes them. Else the trace still is that of the run.
    if (parentId === null && this.takesIds()) return ROOT_CONTEXT
    const parent = { traceId, spanId: parentId ?? spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true }
    return trace.setSpanContext(ROOT_CONTEXT, parent)
  }

  /** Does the provider make the ids that we want? See `legateIds`. */
  private takesIds(): boolean {
    const tracer = this.tracerNow()
    return tracer !== undefined && isGiven(tracer)
  }

  /** The tracer of the provider that is there now; undefined where nobody has registered one. */
  private tracerNow(): Tracer | undefined {
    const { ProxyTracerProvider, trace } = api()
    const provider = this.options.tracerProvider ?? trace.getTracerProvider()
    if (provider instanceof ProxyTracerProvider && provider.getDelegateTracer('legate') === undefined) return undefined
    if (provider === this.known) return this.tracer
    this.known = provider
    this.tracer = provider.getTracer('legate')
    return this.tracer
  }
}

function asIs<T>(code: () => T): T {
  return code()
}

/** A place in a trace as W3C Trace Context writes it. */
function written(place: SpanContext | undefined): string | null {
  if (place === undefined || !api().isSpanContextValid(place)) return null
  return `00-${place.traceId}-${place.spanId}-${place.traceFlags.toString(16).padStart(2, '0')}`
}
