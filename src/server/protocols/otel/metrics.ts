// Metrics of model calls, runs and tools, under the names of both vocabularies.

import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import type { Span, SpanValue, Vocabulary } from '../../../doors/hooks.ts'
import { api } from './api.ts'

/** Gives meters, as a provider of OpenTelemetry does. */
export interface MeterSource {
  getMeter(name: string): Meter
}

const SECONDS = Array.from({ length: 14 }, (_, at) => 0.01 * 2 ** at)
const TOKENS = Array.from({ length: 14 }, (_, at) => 4 ** at)

/** The instruments of one vocabulary, made when something is measured first. */
interface Instruments {
  seconds(name: string): Histogram
  tokens(name: string): Histogram
  count(name: string): Counter
  numbers(name: string): Histogram
}

/** Answers of models whose first part is awaited, and when they were asked for. */
const MOST_ASKED = 10_000

export class Metrics {
  private readonly vocabulary: Vocabulary
  private readonly source: MeterSource | undefined
  private readonly asking: Map<string, number> = new Map()
  private readonly first: Map<string, number> = new Map()
  private known: MeterSource | undefined
  private made: Instruments | undefined

  constructor(vocabulary: Vocabulary, source: MeterSource | undefined) {
    this.vocabulary = vocabulary
    this.source = source
  }

  isOn(): boolean {
    return this.now() !== undefined
  }

  /** A model is asked. */
  asked(spanId: string): void {
    if (!this.isOn() || this.asking.size >= MOST_ASKED) return
    this.asking.set(spanId, performance.now())
  }

  /** The first part of its answer has come. */
  heard(spanId: string): void {
    const since = this.asking.get(spanId)
    if (since === undefined) return
    this.asking.delete(spanId)
    this.first.set(spanId, (performance.now() - since) / 1_000)
  }

  /** Counts what has ended. */
  count(span: Span): void {
    const instruments = this.now()
    if (instruments === undefined) return
    const seconds = (span.end - span.start) / 1_000
    if (span.kind === 'model') this.countCall(instruments, span, seconds)
    else if (this.vocabulary === 'latest') countWork(instruments, span, seconds)
  }

  private countCall(instruments: Instruments, span: Span, seconds: number): void {
    const about = aboutCall(span)
    const first = this.first.get(span.spanId)
    this.asking.delete(span.spanId)
    this.first.delete(span.spanId)
    const names = CALL_NAMES[this.vocabulary]
    instruments.seconds(names.duration).record(seconds, about)
    if (first !== undefined) instruments.seconds(names.firstChunk).record(first, about)
    if (this.vocabulary === '1.41') countTokens(instruments, span, about)
    else countTokensLatest(instruments, span, about)
  }

  /** The instruments of the provider that is there now; undefined where nobody has registered one. */
  private now(): Instruments | undefined {
    const source = this.source ?? api().metrics.getMeterProvider()
    if (source === this.known) return this.made
    this.known = source
    // The API gives a provider that measures nothing until somebody registers one.
    const isNone = this.source === undefined && source.constructor.name === 'NoopMeterProvider'
    this.made = isNone ? undefined : instrumentsOf(source.getMeter('legate'))
    return this.made
  }
}

const CALL_NAMES = {
  '1.41': {
    duration: 'gen_ai.client.operation.duration',
    firstChunk: 'gen_ai.client.operation.time_to_first_chunk',
  },
  latest: {
    duration: 'gen_ai.client.inference.duration',
    firstChunk: 'gen_ai.client.inference.time_to_first_chunk',
  },
} as const

function aboutCall({ attributes, error }: Span): Attributes {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': text(attributes['gen_ai.provider.name']),
    'gen_ai.request.model': text(attributes['gen_ai.request.model']),
    ...(error === null ? {} : { 'error.type': error }),
  }
}

function countTokens(instruments: Instruments, { result: attributes }: Span, about: Attributes): void {
  const usage = instruments.tokens('gen_ai.client.token.usage')
  usage.record(number(attributes['gen_ai.usage.input_tokens']), { ...about, 'gen_ai.token.type': 'input' })
  usage.record(number(attributes['gen_ai.usage.output_tokens']), { ...about, 'gen_ai.token.type': 'output' })
}

const COUNTED = ['input_tokens', 'output_tokens', 'cache_read.input_tokens', 'cache_write.input_tokens']

function countTokensLatest(instruments: Instruments, { result: attributes }: Span, about: Attributes): void {
  for (const name of COUNTED) {
    const value = attributes[`gen_ai.usage.${name}`]
    if (value !== undefined) instruments.count(`gen_ai.client.inference.usage.${name}`).add(number(value), about)
  }
  for (const name of ['input_tokens', 'output_tokens']) {
    const value = number(attributes[`gen_ai.usage.${name}`])
    instruments.tokens(`gen_ai.client.inference.operation.${name}`).record(value, about)
  }
}

function countWork(instruments: Instruments, { kind, attributes, result, error }: Span, seconds: number): void {
  const failed = error === null ? {} : { 'error.type': error }
  if (kind === 'tool') {
    const about = { 'gen_ai.tool.name': text(attributes['gen_ai.tool.name']), ...failed }
    return instruments.seconds('gen_ai.execute_tool.duration').record(seconds, about)
  }
  const about = { 'gen_ai.agent.name': text(attributes['gen_ai.agent.name']), ...failed }
  instruments.seconds('gen_ai.invoke_agent.duration').record(seconds, about)
  instruments.numbers('gen_ai.invoke_agent.inference_calls').record(number(result['legate.model_calls']), about)
  instruments.numbers('gen_ai.invoke_agent.tool_calls').record(number(result['legate.tool_calls']), about)
}

function instrumentsOf(meter: Meter): Instruments {
  const made = new Map<string, Histogram | Counter>()
  const find = <T extends Histogram | Counter>(name: string, make: () => T): T => {
    const found = (made.get(name) as T | undefined) ?? make()
    made.set(name, found)
    return found
  }
  const histogram = (unit: string, explicitBucketBoundaries: number[]) => (name: string) =>
    find(name, () => meter.createHistogram(name, { unit, advice: { explicitBucketBoundaries } }))
  return {
    seconds: histogram('s', SECONDS),
    tokens: histogram('{token}', TOKENS),
    numbers: histogram('{call}', [0, 1, 2, 4, 8, 16, 32, 64, 128]),
    count: (name) => find(name, () => meter.createCounter(name, { unit: '{token}' })),
  }
}

function text(value: SpanValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

function number(value: SpanValue | undefined): number {
  return typeof value === 'number' ? value : 0
}
