import { agent, type Runtime } from 'legate'
import type { ModelRequest } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { simpleTool } from '../../support/agents.ts'
import { openRuntime } from '../../support/reading.ts'
import { openStore } from '../../support/remote.ts'
import { type Rows, stores } from '../../support/stores.ts'

const USAGE = { inputTokens: 10, outputTokens: 3, cacheReadTokens: 0, cacheWriteTokens: 0 }

const expert = () =>
  agent({
    name: 'expert',
    instructions: '',
    model: scriptedModel(() => ({ text: 'fast', usage: USAGE })),
    input: z.object({ topic: z.string() }),
  })

/** Calls a tool and a subagent, and then answers. */
function host(requests: ModelRequest[] = []) {
  const model = scriptedModel((request) => {
    requests.push(request)
    const hasResults = request.messages.at(-1)?.role === 'tool'
    if (hasResults) return { text: 'done', usage: USAGE }
    const calls = [
      { name: 'look', input: {} },
      { name: 'ask', input: { topic: 'QUIC' } },
    ]
    return { calls, usage: USAGE }
  })
  return agent({
    name: 'host',
    instructions: 'Do it.',
    model,
    tools: { look: simpleTool(() => 'seen') },
    subagents: { ask: expert() },
  })
}

describe.each(stores)('on %s rows', (_name, create) => {
  function open(): Runtime {
    const rows: Rows = create()
    onTestFinished(() => rows.drop())
    return openRuntime({ store: openStore(rows) })
  }

  test('the graph of a conversation has its nodes, edges, and the conversations of its subagents', async () => {
    const runtime = open()
    const run = runtime.run(host(), 'go' as never)
    await run.result

    const graph = await runtime.graph(run.conversationId)

    expect(graph).toMatchObject({
      conversationId: run.conversationId,
      agent: 'host',
      before: null,
      forkedAt: null,
      lanes: [],
    })
    expect(graph.turns).toMatchObject([{ id: run.id, ordinal: 0, state: 'ended', isActive: true }])
    expect(graph.nodes.map(({ kind }) => kind)).toEqual([
      'user_message',
      'agent_message',
      'task',
      'task',
      'agent_message',
    ])
    const [, first, look, ask, last] = graph.nodes
    expect(look).toMatchObject({ tool: 'look', state: 'finished', childConversationId: null, wait: null, attempt: 1 })
    expect(ask).toMatchObject({ tool: 'ask', state: 'finished', isActive: true, runId: run.id })
    expect(first?.usage).toMatchObject(USAGE)
    expect(last?.preview).toBe('done')
    const child = await runtime.graph(ask?.childConversationId ?? '')
    expect(child).toMatchObject({ agent: 'expert', turns: [{ id: ask?.childRunId }] })
    const pairs = graph.edges.map(({ from, to }) => [from, to])
    expect(pairs).toContainEqual([first?.id, look?.id])
    expect(pairs).toContainEqual([look?.id, last?.id])
    const ids = new Set(graph.nodes.map(({ id }) => id))
    for (const { from, to } of graph.edges) expect([ids.has(from), ids.has(to)]).toEqual([true, true])
    const later: number[] = []
    for await (const { seq } of runtime.events(run.conversationId, { after: graph.seq - 1 })) {
      later.push(seq)
      break
    }
    expect(later).toEqual([graph.seq])
  })

  test('versions and lanes are in it, and what was replaced is not active', async () => {
    const runtime = open()
    const speaker = agent({ name: 'a', instructions: '', model: scriptedModel(() => 'yes') })
    const run = runtime.run(speaker, 'one')
    await run.result
    const conversation = await runtime.conversation(run.conversationId)
    const answer = (await runtime.graph(run.conversationId)).nodes.at(-1)
    const again = await conversation.history.rerun(answer?.id ?? '')
    await again.result
    const [said] = (await runtime.graph(run.conversationId)).nodes
    const lane = await conversation.history.fork(said?.id ?? '', { title: 'other' })

    const graph = await runtime.graph(run.conversationId)

    expect(graph.turns.map(({ id, isActive }) => [id, isActive])).toEqual([
      [run.id, false],
      [again.id, true],
    ])
    expect(graph.turns[1]?.source).toBe(run.id)
    expect(graph.nodes.filter(({ isActive }) => isActive).every(({ turnId }) => turnId === again.id)).toBe(true)
    for (const ids of Object.values(graph.versions)) expect(ids.length).toBeGreaterThan(1)
    expect(Object.keys(graph.versions).length).toBeGreaterThan(0)
    expect(graph.lanes).toHaveLength(1)
    const forked = await runtime.graph(graph.lanes[0]?.id ?? '')
    expect(forked.forkedAt).toBe(said?.id)
    expect(lane).toBeDefined()
  })

  test('an open node says why it waits', async () => {
    const runtime = open()
    const asked = agent({
      name: 'a',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'look', input: {} }] }, 'ok']),
      tools: { look: simpleTool(() => 'seen') },
      grant: { use: ['tool:*', 'model:*'], ask: ['tool:look'] },
    })
    const run = runtime.run(asked, 'go')
    let [approval] = await runtime.approvals()
    while (approval === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      ;[approval] = await runtime.approvals()
    }
    const { nodes } = await runtime.graph(run.conversationId)
    expect(nodes.find(({ id }) => id === approval?.nodeId)?.wait).toMatchObject({ on: 'approval', what: 'look' })
    const timeline = await runtime.timeline(run.id)
    const span = timeline.spans.find(({ nodeId }) => nodeId === approval?.nodeId)
    expect(span?.waits.at(-1)).toMatchObject({ reason: 'approval', end: null })

    await runtime.answer(approval.nodeId, { allow: true })
    await run.result
    const later = (await runtime.timeline(run.id)).spans.find(({ nodeId }) => nodeId === approval?.nodeId)
    const wait = later?.waits.find(({ reason }) => reason === 'approval')
    expect(wait?.end).toBeGreaterThanOrEqual(wait?.start ?? Number.POSITIVE_INFINITY)
  })

  test('a timeline adds up to the usage of the run, with tries that failed and runs below', async () => {
    const runtime = open()
    const busy = Object.assign(new Error('busy'), { statusCode: 429, retryAfterMs: 5 })
    const flaky = agent({
      name: 'flaky',
      instructions: '',
      model: scriptedModel([
        { text: 'ha', error: busy },
        { text: 'here', usage: USAGE },
      ]),
      input: z.object({ topic: z.string() }),
    })
    const model = scriptedModel((request) => {
      if (request.messages.at(-1)?.role === 'tool') return { text: 'done', usage: USAGE }
      const calls = ['ask', 'try'].map((name) => ({ name, input: { topic: 'x' } }))
      return { calls, usage: USAGE }
    })
    const top = agent({ name: 'top', instructions: '', model, subagents: { ask: host2(), try: flaky } })
    const run = runtime.run(top, 'go' as never)
    await run.result

    const timeline = await runtime.timeline(run.id)

    const usage = await runtime.usage(run.id)
    expect(timeline.usage).toEqual(usage.usage)
    expect(sumOf(timeline)).toEqual({ input: usage.usage.inputTokens, output: usage.usage.outputTokens })
    expect(usage.usage.inputTokens).toBeGreaterThan(50)
    const tasks = timeline.spans.filter(({ kind }) => kind === 'task')
    expect(tasks.map(({ runs }) => runs.map(({ agent: name }) => name))).toEqual([['middle'], ['flaky']])
    for (const { waits, start, end } of tasks) {
      const wait = waits.find(({ reason }) => reason === 'children')
      expect(wait?.end).toBeLessThanOrEqual(end ?? 0)
      expect(start).toBeLessThanOrEqual(end ?? 0)
    }
    const tried = tasks[1]?.runs[0]?.spans.find(({ kind }) => kind === 'agent_message')
    expect(tried?.attempts.map(({ attempt, error }) => [attempt, error === null])).toEqual([
      [1, false],
      [2, true],
    ])
    expect(tried?.waits.some(({ reason }) => reason === 'retry')).toBe(true)
    for (const { start, end } of tried?.attempts ?? []) expect(start).toBeLessThanOrEqual(end ?? 0)
  })

  test('a node has its contents, and its whole result however long it is', async () => {
    const runtime = open()
    const long = 'x'.repeat(200_000)
    const asked = agent({
      name: 'a',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'look', input: {} }] }, 'ok']),
      tools: { look: simpleTool(() => long) },
    })
    const run = runtime.run(asked, 'go')
    await run.result
    const task = (await runtime.graph(run.conversationId)).nodes.find(({ kind }) => kind === 'task')

    const info = await runtime.nodeInfo(task?.id ?? '')
    expect(info).toMatchObject({ tool: 'look', path: ['a'], input: { call: { name: 'look' } }, wholeBytes: 200_000 })
    expect(String(info.output.content).length).toBeLessThan(100_000)
    expect(await runtime.result(info.id)).toEqual({ nodeId: info.id, text: long, bytes: 200_000, isError: false })
    await expect(runtime.nodeInfo('nobody')).rejects.toMatchObject({ code: 'not_found' })
    await expect(runtime.result('nobody')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('the request of a model call is what the model was shown, also in the middle of a conversation', async () => {
    const runtime = open()
    const shown: ModelRequest[] = []
    const speaker = host(shown)
    const run = runtime.run(speaker, 'go' as never)
    await run.result
    const second = runtime.run(speaker, 'again' as never, { conversationId: run.conversationId })
    await second.result

    const calls = (await runtime.graph(run.conversationId)).nodes.filter(({ kind }) => kind === 'agent_message')

    expect(calls).toHaveLength(4)
    for (const [at, { id }] of calls.entries()) {
      const { request, isChanged, isHooked } = await runtime.requestOf(id)
      expect(request.messages).toEqual(shown[at]?.messages)
      expect(request.tools.map(({ name }) => name)).toEqual(shown[at]?.tools.map(({ name }) => name))
      expect([isChanged, isHooked]).toEqual([false, false])
    }
    const task = (await runtime.graph(run.conversationId)).nodes.find(({ kind }) => kind === 'task')
    await expect(runtime.requestOf(task?.id ?? '')).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(runtime.requestOf('nobody')).rejects.toMatchObject({ code: 'not_found' })
  })
})

function host2() {
  const model = scriptedModel((request) => {
    if (request.messages.at(-1)?.role === 'tool') return { text: 'done', usage: USAGE }
    return { calls: [{ name: 'ask', input: { topic: 'y' } }], usage: USAGE }
  })
  return agent({
    name: 'middle',
    instructions: '',
    model,
    input: z.object({ topic: z.string() }),
    subagents: { ask: expert() },
  })
}

type Timeline = Awaited<ReturnType<Runtime['timeline']>>

function sumOf({ spans }: Timeline): { input: number; output: number } {
  let [input, output] = [0, 0]
  for (const { usage, runs } of spans) {
    input += usage.inputTokens
    output += usage.outputTokens
    for (const run of runs) {
      const below = sumOf(run)
      input += below.input
      output += below.output
    }
  }
  return { input, output }
}

test('a page of a long conversation costs what the page holds', async () => {
  const runtime = openRuntime()
  const speaker = agent({ name: 'a', instructions: '', model: scriptedModel(() => 'yes'), contextTurns: 1 })
  const { conversationId } = await runtime.run(speaker, 'one').result
  for (let at = 0; at < 60; at++) await runtime.run(speaker, `${at}`, { conversationId }).result

  const ids: string[] = []
  let before: string | undefined
  let pages = 0
  do {
    const page = await runtime.graph(conversationId, { turns: 7, ...(before === undefined ? {} : { before }) })
    expect(page.turns.length).toBeLessThanOrEqual(7)
    expect(page.nodes).toHaveLength(page.turns.length * 2)
    ids.unshift(...page.turns.map(({ id }) => id))
    before = page.before ?? undefined
    pages++
  } while (before !== undefined)

  expect(pages).toBe(9)
  expect(new Set(ids).size).toBe(61)
  await expect(runtime.graph(conversationId, { before: 'nobody' })).rejects.toMatchObject({ code: 'not_found' })
  await expect(runtime.graph('nobody')).rejects.toMatchObject({ code: 'not_found' })
})
