// The clients that people use, in a browser: `useChat` and `HttpAgent`. They watch one run at once, and execute its tools.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { getRequestListener } from '@hono/node-server'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { type AnyAgent, agent, createRuntime, type Principal, tool } from 'legate'
import { otel } from 'legate/otel'
import { handler } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import type { Page } from 'playwright-core'
import { build } from 'vite'
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Place, skipUnlessBuilt } from '../../cli/support/cli.ts'
import { spansInMemory } from '../../surfaces/otel/support.ts'
import type { ClientMessage, Clients } from '../programs/clients.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'

useBrowser()
beforeEach(skipWithoutBrowser)
beforeEach(skipUnlessBuilt)

let script = ''
beforeAll(async () => {
  const entry = path.resolve(import.meta.dirname, '../programs/clients.ts')
  const built = await build({
    configFile: false,
    logLevel: 'error',
    define: { 'process.env.NODE_ENV': '"production"' },
    build: { write: false, minify: false, lib: { entry, formats: ['es'], fileName: 'clients' } },
  })
  const [bundle] = [built].flat()
  if (bundle === undefined || !('output' in bundle)) throw new Error('the page was not built')
  script = bundle.output.flatMap((file) => (file.type === 'chunk' ? [file.code] : [])).join('\n')
}, 60_000)

const PRINCIPALS: Readonly<Record<string, Principal>> = {
  ann: { id: 'ann', scopes: ['start', 'read', 'approve'] },
  /** Another page of hers, which is not asked for approvals. */
  watching: { id: 'ann', scopes: ['start', 'read'] },
}

/** Serves the agents on a store of their own, beside the page, and opens it. */
async function openPage(agents: readonly AnyAgent[]) {
  const place = new Place()
  const { provider, spans } = spansInMemory()
  const store = sqliteStore(place.store)
  const runtime = createRuntime({ store, agents, telemetry: otel({ tracerProvider: provider }) })
  const legate = handler(runtime, { authenticate: ({ headers }) => PRINCIPALS[headers.get('x-user') ?? ''] ?? null })
  const own = new Map([
    [
      '/',
      ['text/html', '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/clients.js"></script>'],
    ],
    ['/clients.js', ['text/javascript', script]],
  ])
  const answer = (request: Request) => {
    const [type = '', text] = own.get(new URL(request.url).pathname) ?? []
    return text === undefined ? legate(request) : new Response(text, { headers: { 'content-type': type } })
  }
  const server = createServer(getRequestListener(answer)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await runtime.close()
  })
  const window = await (await visitor()).open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  await window.waitForFunction(() => 'clients' in globalThis)
  return { place, runtime, spans, window }
}

type Served = Awaited<ReturnType<typeof openPage>>

declare const clients: Clients

const agUi = (window: Page, input: Parameters<Clients['agUi']>[0]) =>
  window.evaluate((given) => clients.agUi(given), input) as Promise<Facts[]>

type Facts = Readonly<Record<string, unknown>>

const SECRETS = ['prompt-7f3a', 'task-88d1', 'argument-55e0', 'result-c412', 'failure-d7d7', 'answer-a90f', 'rule-19bc']
const [PROMPT = '', TASK = '', ARGUMENT = '', RESULT = '', FAILURE = '', ANSWER = '', RULE = ''] = SECRETS

/** An editor that asks a researcher, one of whose two searches fails, and publishes what a person allows. */
function newsroom() {
  const search = tool({
    description: RULE,
    input: z.object({ q: z.string() }),
    effect: 'pure',
    execute: ({ q }) => {
      if (q !== ARGUMENT) throw new Error(FAILURE)
      return RESULT
    },
  })
  const publish = tool({ description: RULE, input: z.object({ text: z.string() }), execute: () => RESULT })
  const usage = { inputTokens: 10, outputTokens: 3 }
  const researcher = agent({
    name: 'researcher',
    description: RULE,
    instructions: RULE,
    tools: { search },
    model: scriptedModel(({ messages }) => {
      if (messages.some(({ role }) => role === 'tool')) return { text: ANSWER, usage }
      const searches = [ARGUMENT, 'another'].map((q) => ({ name: 'search', input: { q } }))
      return { calls: searches, usage }
    }, 'openai/gpt-5'),
  })
  return agent({
    name: 'editor',
    instructions: RULE,
    subagents: { researcher },
    tools: { publish },
    grant: { ask: ['tool:publish'] },
    model: scriptedModel(({ messages }) => {
      const done = messages.filter(({ role }) => role === 'tool').length
      if (done === 0) return { calls: [{ name: 'researcher', input: { message: TASK } }], usage }
      if (done === 1) return { calls: [{ name: 'publish', input: { text: ARGUMENT } }], usage }
      return { text: ANSWER, usage }
    }, 'anthropic/claude-5'),
  })
}

test('one run, four witnesses: AG-UI, useChat, OpenTelemetry and the log agree', async () => {
  const served = await openPage([newsroom()])
  const { place, window, spans, runtime } = served
  const thread = { agent: 'editor', threadId: 'thread 1/ä' }

  const watched = agUi(window, { ...thread, user: 'watching', text: PROMPT })
  await expect.poll(() => runtime.approvals()).toHaveLength(1)
  await window.evaluate(() => clients.chat({ agent: 'editor', id: 'thread 1/ä', user: 'ann', place: '' }))
  await window.getByRole('button', { name: 'Allow publish' }).click()
  const events = await watched
  await window.getByText(ANSWER).waitFor()
  await expect.poll(() => window.getByRole('status').textContent()).toBe('ready ')
  const [message] = (await window.evaluate(() => clients.messages())).filter(({ role }) => role === 'assistant')
  const { runId = '' } = message?.metadata ?? {}
  await expect.poll(() => spans().length).toBe(11)
  const log = await linesOf(served, ['log', '--json', runId])

  const seen = witnessLog(log)
  expect(seen.runs).toEqual(['editor < nobody: completed', 'researcher < editor: completed'])
  expect(seen.calls).toEqual([
    'editor publish: done',
    'editor researcher: done',
    'researcher search: done',
    'researcher search: failed',
  ])
  expect(seen.tokens).toEqual([50, 15])
  expect(witnessAgUi(events)).toEqual({ ...seen, runIds: seen.runIds.filter((id) => id !== runId) })
  expect(witnessSpans(spans())).toEqual(seen)
  const chat = witnessChat(message)
  expect(chat).toEqual({ ...seen, nodeIds: chat.nodeIds })
  expect(chat.nodeIds).toHaveLength(3)
  expect(seen.nodeIds).toEqual(expect.arrayContaining([...chat.nodeIds]))

  const [first, again] = [await otlpOf(place, runId), await otlpOf(place, runId)]
  expect(again).toBe(first)
  const exported = JSON.parse(first).resourceSpans[0].scopeSpans[0].spans as Facts[]
  const idsOf = (traceId: unknown, spanId: unknown, parent: unknown) => `${traceId} ${spanId} ${parent ?? ''}`
  const live = spans().map((span) => {
    const { traceId, spanId } = span.spanContext()
    return idsOf(traceId, spanId, span.parentSpanContext?.spanId)
  })
  expect(exported.map((one) => idsOf(one['traceId'], one['spanId'], one['parentSpanId'])).sort()).toEqual(live.sort())
  const written = JSON.stringify(
    spans().map(({ name, attributes, events: own, status }) => [name, attributes, own, status]),
  )
  for (const secret of SECRETS) expect(written + first).not.toContain(secret)
  expect(JSON.stringify([events, message, log])).toContain(ANSWER)
})

/** What somebody who watched the run says of it. */
interface Seen {
  /** `agent < parent: status`. */
  readonly runs: readonly string[]
  readonly runIds: readonly unknown[]
  /** `agent tool: done or failed`. */
  readonly calls: readonly string[]
  readonly nodeIds: readonly unknown[]
  /** Tokens in, tokens out. */
  readonly tokens: readonly number[]
}

interface Told {
  readonly runs: readonly { id?: unknown; agent: unknown; parent?: unknown; status: unknown }[]
  readonly calls: readonly { id?: unknown; agent: unknown; tool: unknown; failed: unknown }[]
  readonly tokens: readonly number[]
}

function seenOf({ runs, calls, tokens }: Told): Seen {
  const known = (ids: readonly unknown[]) => ids.filter((id) => id !== undefined).sort()
  return {
    runs: runs.map(({ agent: name, parent = 'nobody', status }) => `${name} < ${parent}: ${status}`).sort(),
    runIds: known(runs.map(({ id }) => id)),
    calls: calls.map((call) => `${call.agent} ${call.tool}: ${call.failed === true ? 'failed' : 'done'}`).sort(),
    nodeIds: known(calls.map(({ id }) => id)),
    tokens,
  }
}

function sum(numbers: readonly unknown[]): number {
  return numbers.reduce<number>((total, one) => total + Number(one), 0)
}

function witnessLog(events: readonly Facts[]): Seen {
  const of = (type: string) => events.filter((event) => event['type'] === type)
  const names = new Map(of('run-start').map(({ runId, agent: name }) => [runId, name]))
  const results = new Map(of('tool-result').map((event) => [event['nodeId'], event]))
  const hosts = new Map(of('delegation-start').map(({ childRunId, runId }) => [childRunId, runId]))
  const used = of('usage').map(({ usage }) => usage as Facts)
  return seenOf({
    runs: of('run-end').map(({ runId, outcome }) => {
      const parent = names.get(hosts.get(runId))
      return { id: runId, agent: names.get(runId), parent, status: (outcome as Facts)['status'] }
    }),
    calls: of('tool-call').map(({ runId, nodeId, call }) => {
      const failed = results.get(nodeId)?.['isError']
      return { id: nodeId, agent: names.get(runId), tool: (call as Facts)['name'], failed }
    }),
    tokens: ['inputTokens', 'outputTokens'].map((key) => sum(used.map((usage) => usage[key]))),
  })
}

function witnessAgUi(events: readonly Facts[]): Seen {
  const of = (type: string) => events.filter((event) => event['type'] === type)
  const children = of('SUBAGENT_STARTED')
  const names = new Map(children.map(({ subagentRunId, name }) => [subagentRunId, name]))
  const nameOf = (id: unknown) => (id === undefined ? 'editor' : names.get(id))
  const [finished] = of('RUN_FINISHED')
  const used = (finished?.['usage'] ?? []) as Facts[]
  const ended = new Set(of('SUBAGENT_FINISHED').map(({ subagentRunId }) => subagentRunId))
  const failed = new Map(
    of('TOOL_CALL_RESULT').map(({ toolCallId, metadata }) => [toolCallId, Object(metadata).isError]),
  )
  const isWhole = (finished?.['outcome'] as Facts)?.['type'] === 'success'
  return seenOf({
    runs: [
      { agent: 'editor', status: isWhole ? 'completed' : 'another' },
      ...children.map(({ subagentRunId: id, name, parentSubagentRunId }) => {
        return { id, agent: name, parent: nameOf(parentSubagentRunId), status: ended.has(id) ? 'completed' : 'another' }
      }),
    ],
    calls: of('TOOL_CALL_START').map(({ toolCallId, toolCallName, subagentRunId }) => {
      return { id: toolCallId, agent: nameOf(subagentRunId), tool: toolCallName, failed: failed.get(toolCallId) }
    }),
    tokens: ['inputTokens', 'outputTokens'].map((key) => sum(used.map((usage) => usage[key]))),
  })
}

function witnessSpans(spans: readonly ReadableSpan[]): Seen {
  const of = (operation: string) => spans.filter(({ attributes }) => attributes['gen_ai.operation.name'] === operation)
  const byId = new Map(spans.map((span) => [span.spanContext().spanId, span]))
  const runs = of('invoke_agent')
  const names = new Map(runs.map(({ attributes }) => [attributes['legate.run.id'], attributes['gen_ai.agent.name']]))
  const tokens = ['gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens']
  const top = runs.find(({ parentSpanContext }) => parentSpanContext === undefined)
  // A sum over all spans counts each token once: the sums of a run have names of their own.
  expect(tokens.map((key) => top?.attributes[key])).toEqual([undefined, undefined])
  expect(['input', 'output'].map((side) => top?.attributes[`legate.tokens.${side}`])).toEqual([50, 15])
  return seenOf({
    runs: runs.map(({ attributes, parentSpanContext }) => {
      const call = byId.get(parentSpanContext?.spanId ?? '')
      const parent = names.get(call?.attributes['legate.run.id'])
      const { 'legate.run.id': id, 'gen_ai.agent.name': name, 'legate.status': status } = attributes
      return { id, agent: name, parent, status }
    }),
    calls: of('execute_tool').map(({ attributes }) => {
      const { 'legate.node.id': id, 'legate.run.id': runId, 'gen_ai.tool.name': name } = attributes
      return { id, agent: names.get(runId), tool: name, failed: attributes['error.type'] !== undefined }
    }),
    tokens: tokens.map((key) => sum(of('chat').map(({ attributes }) => attributes[key]))),
  })
}

function witnessChat(message: ClientMessage | undefined): Seen {
  const { runId, status, inputTokens = 0, outputTokens = 0 } = message?.metadata ?? { runId: '' }
  const parts = message?.parts ?? []
  const calls = parts.flatMap((part) => {
    if (part.type === 'data-subagent-call') {
      const { path: agents, tool: name, state } = part.data
      return [{ id: part.id, agent: agents.at(-1), tool: name, failed: state !== 'output-available' }]
    }
    if (!part.type.startsWith('tool-') || !('toolCallId' in part)) return []
    const asked = parts.find((one) => one.type === 'data-approval' && one.data.toolCallId === part.toolCallId)
    const id = asked?.type === 'data-approval' ? asked.data.nodeId : undefined
    return [{ id, agent: 'editor', tool: part.type.slice(5), failed: part.state !== 'output-available' }]
  })
  const children = parts.flatMap((part) => (part.type === 'data-subagent' ? [part] : []))
  return seenOf({
    runs: [
      { id: runId, agent: 'editor', status },
      ...children.map(({ id, data }) => ({ id, agent: data.agent, parent: data.path.at(-2), status: data.status })),
    ],
    calls,
    tokens: [inputTokens, outputTokens],
  })
}

async function linesOf({ place }: Served, args: readonly string[]): Promise<Facts[]> {
  const { stdout } = await place.run(args)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

async function otlpOf(place: Place, runId: string): Promise<string> {
  return (await place.run(['export', runId, '--otlp'])).stdout
}

/** An agent whose tool is executed by whoever asks. */
function guide() {
  const locate = tool({ description: 'x', input: z.object({}), output: z.string(), execute: 'outside' })
  const model = scriptedModel(({ messages }) => {
    const [result] = messages.filter(({ role }) => role === 'tool')
    return result === undefined ? { calls: [{ name: 'place', input: {} }] } : `You are in ${result.content}.`
  })
  return agent({ name: 'guide', instructions: 'x', model, tools: { place: locate } })
}

test('both clients execute tools in the browser, and the same answer goes on', async () => {
  const { window } = await openPage([guide()])
  await window.evaluate(() => clients.chat({ agent: 'guide', id: 'a', user: 'watching', place: 'Wien' }))
  await window.getByRole('button', { name: 'Ask' }).click()
  await window.getByText('You are in Wien.').waitFor()
  expect((await window.evaluate(() => clients.messages())).map(({ role }) => role)).toEqual(['user', 'assistant'])

  const thread = { agent: 'guide', threadId: 'b', user: 'watching' }
  const asked = await agUi(window, { ...thread, text: 'Where am I?' })
  expect(asked.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { interrupts: [{ reason: 'tool_result' }] } })
  const answered = await agUi(window, { ...thread, answers: { tool_result: { result: 'Graz' } } })
  expect(JSON.stringify(answered)).toContain('You are in Graz.')
})
