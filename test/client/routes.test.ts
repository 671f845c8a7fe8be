import path from 'node:path'
import { agent, type Id, type InboxItem, tool } from 'legate'
import { askTools } from 'legate/background'
import { connect, type LegateClient } from 'legate/client'
import { LOCAL_PRINCIPAL } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TABLE } from '../../src/server/http/routes/table.ts'
import { checkAnswer, checkedAnswers, jsonAnswersOf } from '../server/support/check-answer.ts'
import { type Setting, startServer } from '../server/support/server.ts'
import { callsThenSays, simpleTool } from '../support/agents.ts'
import { tempFolder } from '../support/temp-folder.ts'

const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'Looked.') })
const agents = [
  agent({
    name: 'host',
    instructions: '',
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Done.' : { calls: [{ name: 'ask_child', input: { message: 'Look.' } }] },
    ),
    subagents: { ask_child: { agent: child, session: {} } },
  }),
  agent({
    name: 'careful',
    instructions: '',
    tools: { look: simpleTool(() => 'seen') },
    grant: { ask: ['tool:look'] },
    model: scriptedModel(callsThenSays('look')),
  }),
  agent({
    name: 'curious',
    instructions: '',
    tools: askTools(),
    model: scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? 'ok'
        : { calls: [{ name: 'ask_person', input: { question: 'Which port?' } }] },
    ),
  }),
  agent({
    name: 'shop',
    instructions: '',
    tools: { pick: tool({ description: 'Picks.', input: { type: 'object' }, execute: 'outside' }) },
    model: scriptedModel(callsThenSays('pick')),
  }),
  agent({
    name: 'clumsy',
    instructions: '',
    model: scriptedModel(() => {
      throw new Error('Oh no.')
    }),
  }),
  // It never comes back, whoever asks it to: its effect is uncertain.
  agent({
    name: 'payer',
    instructions: '',
    tools: { pay: simpleTool(() => new Promise<string>(() => undefined)) },
    model: scriptedModel(callsThenSays('pay')),
  }),
]

let setting: Setting
let client: LegateClient
const asked: string[] = []

beforeAll(async () => {
  const store = sqliteStore(path.join(tempFolder(afterAll), 'routes.db'))
  setting = await startServer({}, { store, agents, engine: { graceMs: 50 } })
  const fetch = async (url: string, init: RequestInit) => {
    const { method = 'GET' } = init
    const { pathname } = new URL(url)
    asked.push(`${method} ${pathname}`)
    const answer = await globalThis.fetch(url, init)
    await checkAnswer(method, pathname, answer)
    return answer
  }
  client = connect({ url: setting.server.url, token: setting.token, fetch })
})
afterAll(() => setting[Symbol.asyncDispose]())

/** The runtime as the holder of this machine's token sees it. */
const own = () => setting.runtime.as(LOCAL_PRINCIPAL)

/** As it looks after it was sent. */
function sent(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

async function runToEnd(name = 'host', input: unknown = 'Go.') {
  const run = await client.run(name, input, { wait: 20 })
  expect(run).toMatchObject({ agent: name, state: 'ended', owner: 'local', input })
  return run
}

async function nodeOf(runId: Id, kind: string): Promise<Id> {
  const { nodes } = await client.nodes(runId)
  return nodes.find((node) => node.kind === kind)?.id ?? ''
}

async function waitsFor<Type extends InboxItem['type']>(type: Type): Promise<Extract<InboxItem, { type: Type }>> {
  const find = async () => (await client.inbox()).items.find((item) => item.type === type)
  await expect.poll(find).toBeDefined()
  return (await find()) as Extract<InboxItem, { type: Type }>
}

describe('every method of the client, against a server', () => {
  test('the server, agents and processes', async () => {
    expect(await client.info()).toMatchObject({ principal: { id: 'local' }, limits: { streamsPerPrincipal: 64 } })
    expect(await client.agents()).toEqual({ agents: sent(await own().agents()), next: null })
    expect((await client.agent('host')).subagents).toEqual(['child'])
    expect((await client.explain('careful', 'tool:look')).verdict).toBe('ask')
    const { processes } = await client.processes()
    expect(processes).toMatchObject([{ pid: process.pid, isAlive: true }])
    expect(await client.request('/v1/agents')).toEqual({ agents: sent(await own().agents()), next: null })
  })

  test('runs', async () => {
    const run = await runToEnd()
    const other = await runToEnd()
    const { runId, conversationId } = run

    expect(await client.look(runId)).toEqual(sent(await own().look(runId)))
    const { runs, next } = await client.runs({ agent: 'host', state: 'completed', limit: 1 })
    expect(runs).toEqual(sent(await own().runs({ agent: 'host', limit: 1 })))
    const older = await client.runs({ agent: 'host', limit: 1, before: String(next) })
    expect(older.runs).toEqual(sent((await own().runs({ agent: 'host' })).slice(1, 2)))
    expect(await client.conversations({ limit: 1 })).toEqual({
      conversations: sent(await own().conversations({ limit: 1 })),
      next: other.conversationId,
    })
    expect(await client.result(runId)).toMatchObject({ status: 'completed', runId })
    expect(await client.why(runId)).toEqual(sent(await own().why(runId)))
    expect(await client.usage(runId)).toEqual(sent(await own().usage(runId)))
    expect(await client.timeline(runId)).toEqual(sent(await own().timeline(runId)))
    expect(await client.otlp(runId)).toEqual(sent(await own().otlp(runId)))
    expect(await client.diff(runId, other.runId)).toEqual(sent(await own().diff(runId, other.runId)))
    expect(await client.explainRun(runId, 'tool:look')).toEqual(sent(await own().explain(runId, 'tool:look')))
    const page = await client.eventPage(runId, { limit: 3, types: ['run-start', 'run-end'] })
    expect(page).toEqual(sent(await own().eventPage(runId, { limit: 3, types: ['run-start', 'run-end'] })))
    const { nodes } = await client.nodes(runId, { from: 1, limit: 2 })
    expect(nodes.map(({ ordinal, runId: of }) => [ordinal, of])).toEqual([
      [1, runId],
      [2, runId],
    ])
    const stream: unknown[] = []
    for await (const event of client.events(runId, { after: 1, live: false })) stream.push(event)
    expect(stream).toEqual(sent((await own().eventPage(runId, { after: 1 })).events))
    expect(conversationId).toBe(run.rootId)
  })

  test('nodes', async () => {
    const { runId } = await runToEnd()
    const nodeId = await nodeOf(runId, 'agent_message')
    const taskId = await nodeOf(runId, 'task')

    expect(await client.nodeInfo(taskId)).toEqual(sent(await own().nodeInfo(taskId)))
    expect(await client.requestOf(nodeId)).toEqual(sent(await own().requestOf(nodeId)))
    expect((await client.context(nodeId)).nodes.map(({ kind }) => kind)).toContain('user_message')
    expect((await client.versions(nodeId)).nodes).toMatchObject([{ id: nodeId }])
    expect(await client.explainNode(nodeId, 'tool:look')).toEqual(await client.explainRun(runId, 'tool:look'))
    expect(await client.body(taskId)).toBe((await own().result(taskId)).text)
  })

  test('a conversation', async () => {
    const { conversationId, runId } = await runToEnd()
    const one = client.conversation(conversationId)

    expect(await one.get()).toMatchObject({ id: conversationId, agent: 'host', owner: 'local', activeRunId: null })
    expect(await client.tree(conversationId, { limitTurns: 3 })).toEqual(sent(await own().tree(conversationId)))
    const handle = await own().conversation(conversationId)
    expect(await one.transcriptPage({ limitTurns: 2 })).toEqual(sent(await handle.transcriptPage({ limitTurns: 2 })))
    const { messages } = await one.messagesPage({ limit: 10 })
    expect(messages).toEqual(sent(await handle.messagePage({ limit: 10 })))
    expect(await client.graph(conversationId, { turns: 3 })).toEqual(
      sent(await own().graph(conversationId, { turns: 3 })),
    )
    expect(await one.usageStats()).toEqual(sent(await handle.usageStats()))
    expect(await one.usageStats({ of: 'tree' })).toEqual(sent(await handle.usageStats({ of: 'tree' })))
    expect(await client.picture(conversationId, { of: 'graph', format: 'dot' })).toMatch(/^digraph/)
    const { sessions } = await one.sessions()
    expect(sessions).toEqual(sent(await handle.sessions()))
    expect(sessions).toHaveLength(1)
    await one.closeSession(sessions[0]?.id ?? '')
    expect((await one.sessions()).sessions).toEqual([])
    for await (const state of client.follow(conversationId)) {
      if (state.seq >= (await client.look(runId)).lastSeq) break
    }
    expect(await one.send('More.', { wait: 20 })).toMatchObject({ conversationId, state: 'ended' })
    expect(await one.observe('By the way.')).toEqual({ nodeId: expect.any(String) })
  })

  test('changes of history', async () => {
    const { conversationId, runId } = await runToEnd()
    const one = client.conversation(conversationId)
    const [said, answer] = [await nodeOf(runId, 'user_message'), await nodeOf(runId, 'agent_message')]

    const fork = await one.fork(answer, { key: 'k' })
    expect((await one.lanes()).lanes).toMatchObject([{ id: fork.conversationId }])
    const rerun = await one.rerun(await lastAnswer(runId))
    await client.result(rerun.runId ?? '')
    await one.adopt(await lastAnswer(runId))
    const edit = await one.edit(said, 'Better.')
    await client.result(edit.runId ?? '')
    const merged = await one.merge([fork.conversationId], { prompt: 'Both.' })
    await client.result(merged.runId ?? '')
    const hidden = await lastAnswer(edit.runId ?? '')
    await one.exclude(hidden)
    await one.include(hidden)
    const { summaryId } = await one.compress({ toRunId: edit.runId ?? '', summary: 'It went well.' })
    await one.uncompress(summaryId)
    const { nodeIds } = await one.compact(edit.runId ?? '', { keep: [] })
    expect(nodeIds.length).toBeGreaterThan(0)
    await one.archive({ mode: 'finish' })
    expect((await one.get()).archivedAt).toEqual(expect.any(Number))
    await expect(one.retry(answer)).rejects.toMatchObject({ status: 409 })
  })

  test('nodes that are stopped and skipped', async () => {
    const { conversationId, runId } = await client.run('careful', 'Go.')
    const { nodeId } = await waitsFor('approval')
    const one = client.conversation(conversationId)
    await expect(one.skip(await nodeOf(runId, 'user_message'), 'why')).rejects.toMatchObject({ status: 409 })
    await one.stop(nodeId ?? '', 'enough')
    expect(await client.result(runId)).toMatchObject({ status: expect.any(String) })
  })

  test('what waits for a person', async () => {
    const careful = await client.run('careful', 'Go.')
    const approval = await waitsFor('approval')
    expect((await client.approvals({ limit: 5 })).approvals).toEqual([approval.approval])
    const nodeId = approval.nodeId ?? ''
    const other = { allow: true, seen: '0'.repeat(64) }
    await expect(client.approve(nodeId, other)).rejects.toMatchObject({ code: 'conflict' })
    await client.approve(nodeId, { allow: true, seen: approval.approval.seen })
    expect(await client.result(careful.runId)).toMatchObject({ status: 'completed' })

    const curious = await client.run('curious', 'Go.')
    const question = await waitsFor('question')
    expect((await client.questions()).questions).toEqual([question.question])
    await client.answer(question.nodeId ?? '', '8080')
    const shop = await client.run('shop', 'Go.')
    const outside = async () => (await own().questions({ outside: true })).find(({ to }) => to === 'outside')
    await expect.poll(outside).toBeDefined()
    const { nodeId: callId = '', seen = '' } = (await outside()) ?? {}
    await client.giveResult(callId, { result: 'red', seen })
    expect(await client.result(shop.runId)).toMatchObject({ status: 'completed' })
    expect(await client.result(curious.runId)).toMatchObject({ status: 'completed' })

    const payer = await client.run('payer', 'Go.')
    await expect.poll(async () => (await client.nodes(payer.runId)).nodes.at(1)?.state).toBe('finished')
    await client.cancel(payer.runId, 'enough')
    expect((await client.result(payer.runId)).status).toBe('cancelled')
    const uncertain = await waitsFor('uncertain')
    const settled = await client.settle(uncertain.nodeId ?? '', { leave: true, seen: uncertain.seen })
    expect(settled).toEqual({ how: 'left', runId: null, obstacle: null })
    expect((await client.inbox({ limit: 100 })).items).toEqual(sent(await own().inbox({ limit: 100 })))
  })

  test('the feed and usage', async () => {
    const { conversationId, lastSeq } = await runToEnd()
    const feed = client.feed({ trees: { [conversationId]: lastSeq - 1 } })
    const first = await feed.next()
    expect(first.value).toMatchObject({ type: 'tree', data: { rootId: conversationId, event: { seq: lastSeq } } })
    const made = await client.run('host', 'Again.', { conversationId })
    const found: unknown[] = []
    for await (const { type, data } of client.feed({ after: first.value?.cursor ?? '' })) {
      found.push(type === 'change' ? data : { rootId: type })
      if (type === 'change' && data.types.includes('run-end')) break
    }
    expect(found).toContainEqual(expect.objectContaining({ rootId: made.rootId, agent: 'host', owner: 'local' }))
    await feed.return()
    const { usage } = await client.usageByDay({ owner: 'local' })
    expect(usage.find(({ agent: name }) => name === 'host')?.runs).toBeGreaterThan(1)
  })

  test('trees that are sent, taken and deleted', async () => {
    const { conversationId } = await runToEnd()
    const lines = await client.conversation(conversationId).export()
    expect(await client.forget(conversationId, 'moved')).toMatchObject({ owner: 'local' })
    await expect(client.conversation(conversationId).get()).rejects.toMatchObject({ status: 404, code: 'not_found' })
    expect(await client.import(lines)).toEqual({ conversationId })
    expect(await client.import(lines)).toEqual({ conversationId })
    expect(await client.conversation(conversationId).get()).toMatchObject({ id: conversationId })
    expect((await client.audit({ verify: true })).findings).toEqual([])
    const { tombstones } = await client.prune({ keep: 1_000, dryRun: true })
    expect(tombstones).toEqual([])
    expect(await client.forgetOwner('nobody', 'asked')).toEqual(sent(await own().forgetOwner('nobody')))
  })

  test('tokens', async () => {
    const made = await client.addToken({ name: 'reader', principal: { scopes: ['read'] } })
    const reader = connect({ url: setting.server.url, token: made.token })
    expect((await reader.info()).principal).toMatchObject({ id: 'local', scopes: ['read'] })
    expect((await client.tokens()).tokens.map(({ name }) => name).toSorted()).toEqual(['reader', 'this machine'])
    expect(await client.revokeToken(made.info.id, { cancel: true })).toEqual({ revoked: [made.info.id], cancelled: [] })
    await expect(reader.info()).rejects.toMatchObject({ status: 401 })
  })

  test('webhooks and owners', async () => {
    const made = await client.addWebhook({ url: 'https://hooks.example/legate', types: ['run.ended'] })
    const { id } = made.webhook
    expect((await client.webhooks()).webhooks).toEqual([await client.webhook(id)])
    expect((await client.deliveries(id, { limit: 5 })).deliveries).toEqual([])
    await expect(client.deliverAgain(id, 'none')).rejects.toMatchObject({ status: 404 })
    await client.removeWebhook(id)
    expect((await client.webhooks()).webhooks).toEqual([])
    expect(await client.keepOwner('ann', 30)).toEqual({ owner: 'ann', keepDays: 30 })
    expect(await client.owner('ann')).toEqual({ owner: 'ann', keepDays: 30 })
  })

  test('no request went to a route that is not in the table, and few routes have no method', () => {
    const routes = TABLE.map(({ method, path }) => ({
      name: `${method} ${path}`,
      form: new RegExp(`^${method} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    }))
    const unknown = asked.filter((request) => !routes.some(({ form }) => form.test(request)))
    const without = routes.filter(({ form }) => !asked.some((request) => form.test(request))).map(({ name }) => name)

    expect(unknown).toEqual([])
    expect(without.filter((name) => !OF_OTHERS.test(name))).toEqual([
      'GET /health',
      'GET /ready',
      'GET /metrics',
      'GET /v1/openapi.json',
    ])
  })
})

test('every answer in JSON was one that OpenAPI describes', async () => {
  const { runId, conversationId } = await runToEnd()
  const others = [
    `/v1/find?ending=${runId.slice(-8)}`,
    '/v1/trees',
    `/v1/trees/${conversationId}`,
    `/v1/trees/${conversationId}/events`,
    '/ai-sdk/host/chat-1/messages',
    '/ag-ui/host/capabilities',
  ]
  for (const path of others) expect((await setting.get(path)).status).toBe(200)
  expect((await setting.get(`/v1/runs/${runId}/events`, JSON_PAGE)).status).toBe(200)
  expect((await setting.post('/ai-sdk/host/chat-1/stop', {})).status).toBe(200)
  const open = await client.run('careful', 'Go.')
  await client.conversation(open.conversationId).send('And then?')
  const failed = await client.run('clumsy', 'Go.', { wait: 20 })
  expect(failed.state).toBe('ended')
  const node = await nodeOf(failed.runId, 'agent_message')
  expect(await client.conversation(failed.conversationId).retry(node)).toMatchObject({ runId: expect.any(String) })
  expect((await setting.get(`/v1/runs/${open.runId}/result`)).status).toBe(202)

  const all = TABLE.flatMap(jsonAnswersOf)
  const elsewhere = 'POST /v1/webhooks/{id}/deliveries/{delivery}/again 202'
  expect(all.filter((name) => !checkedAnswers.has(name) && name !== elsewhere)).toEqual([])
})

const JSON_PAGE = { headers: { accept: 'application/json' } }

/** Routes that others than this client use: `useChat`, clients of AG-UI and MCP, the command line with `--server`, and browsers, which get the inspector. */
const OF_OTHERS =
  /^\w+ \/(?:$|(?:new|c|diff|ops|assets)\b|ai-sdk\/|ag-ui\/|a2a\/|\.well-known\/|mcp$|v1\/(?:find|trees)\b)/

/** The last message of the agent in a run. */
async function lastAnswer(runId: Id): Promise<Id> {
  const { nodes } = await client.nodes(runId)
  return nodes.findLast(({ kind }) => kind === 'agent_message')?.id ?? ''
}
