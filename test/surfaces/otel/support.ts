import { type Context, context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { agent, tool } from 'legate'
import { type IdGenerator, legateIds } from 'legate/otel'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

/** A provider that keeps its spans, with our ids unless others are given. */
export function spansInMemory(idGenerator: IdGenerator = legateIds) {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
    idGenerator,
  })
  return { provider, spans: () => exporter.getFinishedSpans(), tracer: provider.getTracer('test') }
}

/** A provider that keeps its metrics. */
export function metricsInMemory() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [reader] })
  const read = async () => {
    await provider.forceFlush()
    return exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
  }
  return { provider, read }
}

let manager: AsyncLocalStorageContextManager | undefined

/** Contexts follow awaits from now on, as in any program that traces. */
export function followContexts(): void {
  if (manager !== undefined) return
  manager = new AsyncLocalStorageContextManager().enable()
  context.setGlobalContextManager(manager)
}

/** Runs code below a span. */
export function below<T>(span: Parameters<typeof trace.setSpan>[1], code: () => T): T {
  const own: Context = trace.setSpan(context.active(), span)
  return context.with(own, code)
}

export const SECRETS = {
  prompt: 'prompt-7f3a Wien',
  instructions: 'instructions-19bc',
  task: 'task-88d1 Graz',
  arguments: 'argument-55e0',
  result: 'result-c412',
  answer: 'answer-a90f',
}

/** An editor that asks a researcher, who looks something up. Every text of it is one of the secrets. */
export function newsroom({ onLookup = () => undefined }: { readonly onLookup?: () => void } = {}) {
  const lookup = tool({
    description: SECRETS.instructions,
    input: z.object({ q: z.string() }),
    effect: 'pure',
    execute: () => {
      onLookup()
      return SECRETS.result
    },
  })
  const usage = { inputTokens: 10, outputTokens: 3 }
  const researcher = agent({
    name: 'researcher',
    description: SECRETS.instructions,
    instructions: SECRETS.instructions,
    tools: { lookup },
    model: scriptedModel(
      ({ messages }) =>
        messages.some(({ role }) => role === 'tool')
          ? { text: SECRETS.answer, usage }
          : { calls: [{ name: 'lookup', input: { q: SECRETS.arguments } }], usage },
      'openai/gpt-5',
    ),
  })
  return agent({
    name: 'editor',
    instructions: SECRETS.instructions,
    subagents: { researcher },
    model: scriptedModel(
      ({ messages }) =>
        messages.some(({ role }) => role === 'tool')
          ? { text: SECRETS.answer, usage }
          : { calls: [{ name: 'researcher', input: { message: SECRETS.task } }], usage },
      'anthropic/claude-5',
    ),
  })
}

/** The tree of spans as lines: `name < parent`. */
export function treeOf(spans: readonly ReadableSpan[]): string[] {
  const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]))
  return spans
    .map(({ name, parentSpanContext }) => {
      const above = parentSpanContext === undefined ? 'top' : (names.get(parentSpanContext.spanId) ?? 'elsewhere')
      return `${name} < ${above}`
    })
    .sort()
}
