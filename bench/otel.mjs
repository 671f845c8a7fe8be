// node bench/otel.mjs [--store sqlite] [--rounds 15]
// What traces cost on W1: one delegation (2 calls of the host's model, 1 of the subagent's), without latency. Three runtimes in
// one process take turns, so that a slow moment of the machine hits all of them: without telemetry, with telemetry and no
// provider, with telemetry and a provider that batches spans and drops them. `SDK alone` makes the six spans of a run with the same
// attributes and ids, and runs nothing: what is above it is ours. CPU time; the median of the ratios of each round.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { memoryStore } from '../dist/core/store/memory/index.js'
import { agent, createRuntime } from '../dist/index.js'
import { legateIds, otel } from '../dist/server/protocols/otel/index.js'
import { sqliteStore } from '../dist/stores/sqlite/index.js'

const { values } = parseArgs({
  options: { store: { type: 'string', default: 'memory' }, rounds: { type: 'string', default: '15' } },
})
const isSqlite = values.store === 'sqlite'
const runs = isSqlite ? 150 : 2_000
const folder = mkdtempSync(join(tmpdir(), 'legate-otel-'))

const FINISH = {
  type: 'finish',
  reason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
}

function model(name, answer) {
  return {
    id: `bench/${name}`,
    async *stream({ messages }) {
      yield answer(messages)
      yield FINISH
    },
  }
}

const sub = agent({
  name: 'sub',
  description: 'A worker',
  instructions: 'You are a worker.',
  model: model('sub', () => ({ type: 'text-delta', text: 'done' })),
})
const host = agent({
  name: 'host',
  instructions: 'You delegate.',
  subagents: { sub: { agent: sub, briefing: 'none' } },
  model: model('host', (messages) =>
    messages.at(-1).role === 'tool'
      ? { type: 'text-delta', text: 'all done' }
      : { type: 'tool-call', id: 'c1', name: 'sub', input: '{"message":"do it"}' },
  ),
})

const dropped = { export: (_, done) => done({ code: 0 }), shutdown: async () => undefined }
const tracerProvider = new BasicTracerProvider({
  idGenerator: legateIds,
  spanProcessors: [new BatchSpanProcessor(dropped)],
})

let files = 0
const runtimeWith = (options) =>
  createRuntime({
    store: isSqlite ? sqliteStore(join(folder, `${files++}.db`)) : memoryStore({ keep: 8 }),
    ...options,
  })
const runtimes = {
  none: runtimeWith({}),
  'no provider': runtimeWith({ telemetry: otel() }),
  spans: runtimeWith({ telemetry: otel({ tracerProvider }) }),
}

/** The six spans of a run, as OTLP has them, made by the SDK alone. */
async function spansAlone() {
  const runtime = createRuntime()
  const run = runtime.run(host, 'go')
  await run.result
  const [{ scopeSpans }] = (await runtime.otlp(run.id)).resourceSpans
  await runtime.close()
  const tracer = tracerProvider.getTracer('alone')
  const spans = scopeSpans[0].spans.map(({ name, attributes }) => {
    const list = attributes.map(({ key, value }) => [key, Object.values(value)[0]])
    return { name, begin: Object.fromEntries(list.slice(0, 6)), end: Object.fromEntries(list.slice(6)) }
  })
  return () => {
    let above = ROOT_CONTEXT
    const open = spans.map(({ name, begin }) => {
      const span = tracer.startSpan(name, { attributes: begin, startTime: Date.now() }, above)
      above = trace.setSpan(ROOT_CONTEXT, span)
      return span
    })
    for (const [at, span] of open.entries()) {
      span.setAttributes(spans[at].end)
      span.end(Date.now())
    }
  }
}

const alone = await spansAlone()

async function cpuOf(runtime) {
  const began = process.cpuUsage()
  for (let at = 0; at < runs; at++) {
    if (runtime === alone) alone()
    else {
      const { status } = await runtime.run(host, 'go').result
      if (status !== 'completed') throw new Error(status)
    }
    // The exporter gets its turn, as it would while a model thinks.
    if (at % 50 === 49) await setImmediate()
  }
  const { user, system } = process.cpuUsage(began)
  return (user + system) / runs
}

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]

const measured = { ...runtimes, 'SDK alone': alone }
for (const one of Object.values(measured)) await cpuOf(one)
const names = Object.keys(measured)
const found = Object.fromEntries(names.map((name) => [name, []]))
for (let round = 0; round < Number(values.rounds); round++) {
  const order = names.map((_, at) => names[(at + round) % names.length])
  for (const name of order) found[name].push(await cpuOf(measured[name]))
}
for (const name of names) {
  const ratios = found[name].map((us, at) => us / found.none[at])
  const share = name === 'SDK alone' ? median(ratios) : median(ratios) - 1
  console.log(`${name.padEnd(12)} ${median(found[name]).toFixed(1)} us, ${(share * 100).toFixed(1)} %`)
}
for (const runtime of Object.values(runtimes)) await runtime.close()
rmSync(folder, { recursive: true, force: true })
