// The port for traces: `legate/otel` implements it, and `conversation/trace` tells it what happens. Mostly there is none, and
// nothing of this file runs.
//
// Stays true:
// - A span says the same whether it is told live or made from rows: `conversation/trace/spans` makes both.
// - Spans hold names, ids, states and counts. Text of people and models is in them only where the program asked for it.

/** A value that a span or an event of it carries. */
export type SpanValue = string | number | boolean | readonly string[]
export type SpanAttributes = Readonly<Record<string, SpanValue>>

/** Which names the attributes have: those that backends read today, or those of the current drafts. */
export type Vocabulary = '1.41' | 'latest'

/**
 * A kind of text that spans carry only where they are asked to. `instructions`: those of the agent, and the definitions of its
 * tools.
 */
export type SpanContent = 'instructions' | 'input' | 'output' | 'arguments' | 'result'

/** Where a span stands: its own id, its trace, and its parent; null for a span at the top of its trace. */
export interface SpanPlace {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly parentId: string | null
  /** True where the parent is a span of another program that gave its `traceparent`. */
  readonly isParentForeign: boolean
}

/** A span that begins. */
export interface SpanStart extends SpanPlace {
  /** A run of an agent, a call of a model, or a call of a tool. */
  readonly kind: 'run' | 'model' | 'tool'
  readonly name: string
  /** In milliseconds since 1970, as everywhere. */
  readonly start: number
  /** Facts that are known when it begins. */
  readonly attributes: SpanAttributes
}

/** A span that has ended, whole. */
export interface Span extends SpanStart {
  readonly end: number
  /** Facts that are known once it has ended, beside `attributes`. */
  readonly result: SpanAttributes
  readonly events: readonly SpanEvent[]
  /** The kind of failure; null where it went well. */
  readonly error: string | null
}

export interface SpanEvent {
  readonly name: string
  readonly at: number
  readonly attributes: SpanAttributes
}

/** Runs code so that what it traces itself stands below a span. */
export type Inside = <T>(code: () => T) => T

/** Takes spans while they happen: see `otel` of `legate/otel`. */
export interface Telemetry {
  readonly vocabulary: Vocabulary
  /** May spans carry this text? */
  readonly shows: (what: SpanContent) => boolean
  /** False where nobody listens: then nothing is made. */
  isOn(): boolean
  /** The `traceparent` of the code that runs now; null where it is in no trace. */
  traceparent(): string | null
  /** The `traceparent` of a span that was begun here, for requests to others; null where it was not. */
  traceparentOf(spanId: string): string | null
  /** A span begins, and code runs inside of it. A span that was begun before is not begun again. */
  begin(span: SpanStart): Inside
  /** The first part of an answer has come. */
  firstPart(spanId: string): void
  /** A span has ended, begun here or in another process. */
  end(span: Span): void
}
