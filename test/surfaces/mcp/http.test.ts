import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { agent, type Json, type Principal, type Run, tool } from 'legate'
import { LOCAL_PRINCIPAL, type ServeOptions } from 'legate/server'
import { scriptedModel } from 'legate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type Setting, startServer } from '../../server/support/server.ts'
import { type Answer, connected, type Forms, message, newClient, send, textIn } from './support/clients.ts'

const published: string[] = []

const publish = tool({
  description: 'Publishes.',
  input: z.object({ what: z.string() }),
  execute: ({ what }) => {
    published.push(what)
    return `published ${what}`
  },
})

/** Publishes once and says how it went. */
function publisher(name: string, grant: object, what: string = name) {
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool'
      ? `It said: ${JSON.stringify(last.content)}`
      : { calls: [{ name: 'publish', input: { what } }] }
  })
  return agent({ name, description: 'Publishes.', instructions: 'Publish.', model, tools: { publish }, grant })
}

const writer = publisher('writer', { use: ['tool:publish'] })
const careful = publisher('careful', { use: ['tool:publish'], ask: ['tool:publish'] })
/** What it publishes does not fit into a form. */
const lengthy = publisher('lengthy', { use: ['tool:publish'], ask: ['tool:publish'] }, `${'x'.repeat(5_000)} and more`)

const host = agent({
  name: 'host',
  description: 'Asks the careful one.',
  instructions: 'Delegate.',
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool' ? 'Done by another.' : { calls: [{ name: 'careful', input: { message: 'Publish.' } }] }
  }),
  subagents: { careful },
})

const adder = agent({
  name: 'adder',
  description: 'Adds.',
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.object({ sum: z.number() }),
  reply: ({ a, b }) => ({ sum: a + b }),
})

const lengths = agent({
  name: 'lengths',
  input: z.string(),
  output: z.array(z.number()),
  reply: (text) => [text.length],
})

const recaller = agent({
  name: 'recaller',
  instructions: 'Recall.',
  model: scriptedModel(({ messages }) => `I was told ${messages.filter(({ role }) => role === 'user').length} things.`),
})

const sleeper = agent({
  name: 'sleeper',
  input: z.object({ ms: z.number() }),
  effect: 'pure',
  reply: async ({ ms }, { signal, progress }) => {
    progress('falls asleep')
    await sleep(ms, undefined, { signal })
    return `Slept ${ms} ms.`
  },
})

const asker = agent({
  name: 'asker',
  input: z.object({}),
  grant: { use: ['tool:ask_person'] },
  effect: 'pure',
  reply: async (_, { ask }) => `You like ${await ask('Which colour?')}.`,
})

const agents = [writer, careful, lengthy, host, adder, lengths, recaller, sleeper, asker]
const ANN: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'approve', 'approve:always'] }
const EVE: Principal = { id: 'eve', scopes: ['start', 'read', 'cancel'] }

async function opened(options: ServeOptions = {}): Promise<Setting> {
  const setting = await startServer(options, { agents })
  onTestFinished(() => setting[Symbol.asyncDispose]())
  return setting
}

async function clientOf(setting: Setting, principal: Principal, forms?: Forms) {
  return connected(setting.server.url, await setting.tokenFor(principal), newClient(forms))
}

async function rawOf(setting: Setting, principal: Principal) {
  const place = { url: setting.server.url, token: await setting.tokenFor(principal) }
  return (method: string, params: { readonly [key: string]: Json }, capabilities?: Json): Promise<Answer> =>
    send(place, message(method, params, capabilities))
}

async function ended(setting: Setting, runId: string): Promise<Awaited<Run['result']>> {
  return (await setting.runtime.attach(runId)).result
}

test('an agent is a tool with its own schemas, and its result has its value', async () => {
  const client = await clientOf(await opened(), ANN)
  const { tools } = await client.listTools()
  const byName = new Map(tools.map((one) => [one.name, one]))
  expect([...byName.keys()].slice(0, agents.length)).toEqual(agents.map(({ name }) => name).sort())
  expect(byName.get('adder')).toMatchObject({
    description: 'Adds.',
    inputSchema: { properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
    outputSchema: { properties: { sum: { type: 'number' } } },
  })
  const sum = await client.callTool({ name: 'adder', arguments: { a: 2, b: 3 } })
  expect(sum.structuredContent).toEqual({ sum: 5 })
  expect(sum._meta?.['legate/run']).toMatchObject({ status: 'completed' })
  const list = await client.callTool({ name: 'lengths', arguments: { input: 'four' } })
  expect(list.structuredContent).toEqual({ output: [4] })
  const wrong = await client.callTool({ name: 'adder', arguments: { a: 'two' } })
  expect(wrong.isError).toBe(true)
  await expect(client.callTool({ name: 'nobody', arguments: {} })).rejects.toThrow('There is no tool')
})

test('a session is gone on with by the id that its first result names, or by a name of the caller', async () => {
  const setting = await opened()
  const client = await clientOf(setting, ANN)
  const told = (args: object, who = client) => who.callTool({ name: 'recaller', arguments: { message: 'x', ...args } })
  const say = async (args: object, who = client) => textIn(await told(args, who))
  const { session_id } = (await told({})).structuredContent as { session_id: string }
  expect(await say({ session_id })).toContain('I was told 2 things.')
  expect(await say({ session_id: 'mine' })).toContain('I was told 1 things.')
  expect(await say({ session_id: 'mine' })).toContain('I was told 2 things.')
  const other = await clientOf(setting, EVE)
  expect(await say({ session_id: 'mine' }, other)).toContain('I was told 1 things.')
  const foreign = await say({ session_id }, other)
  const unknown = await say({ session_id: '01890000-0000-7000-8000-00000000dead' }, other)
  expect(foreign.replace(session_id, 'X')).toBe(unknown.replace('01890000-0000-7000-8000-00000000dead', 'X'))
})

test('progress of a call names who does what', async () => {
  const client = await clientOf(await opened(), ANN)
  const heard: string[] = []
  const onprogress = ({ message: said = '' }) => heard.push(said)
  await client.callTool({ name: 'sleeper', arguments: { ms: 30 } }, { onprogress })
  expect(heard).toEqual(expect.arrayContaining(['sleeper: begins', 'sleeper: falls asleep']))
})

test.each(['auto', 'legacy'] as const)('a client that leaves cancels its call (%s)', async (mode) => {
  const setting = await opened()
  const client = await connected(setting.server.url, await setting.tokenFor(ANN), newClient(undefined, mode))
  const leaving = new AbortController()
  const called = client.callTool(
    { name: 'sleeper', arguments: { ms: 60_000 } },
    { signal: leaving.signal, onprogress: () => leaving.abort() },
  )
  await expect(called).rejects.toThrow()
  const run = await openRun(setting)
  expect((await ended(setting, run)).status).toBe('cancelled')
})

async function openRun({ runtime }: Setting): Promise<string> {
  for (;;) {
    const [run] = await runtime.runs({ limit: 1 })
    if (run !== undefined) return run.runId
    await sleep(5)
  }
}

test('a request at depth 2 is put to the person of a caller who may approve, and his word is recorded', async () => {
  const setting = await opened()
  published.length = 0
  const asked: string[] = []
  const forms: Forms = (said) => {
    asked.push(said)
    return { action: 'accept', content: { decision: 'allow_once', reason: 'Fine.' } }
  }
  const client = await clientOf(setting, ANN, forms)
  const result = await client.callTool({ name: 'host', arguments: { message: 'Go.' } })
  expect(textIn(result)).toContain('Done by another.')
  expect(asked).toEqual([expect.stringMatching(/^host > careful wants publish \{/)])
  expect(published).toEqual(['careful'])
})

test('a request that a form cannot show whole is shown and can only be denied there (I11)', async () => {
  const setting = await opened()
  published.length = 0
  const asked: { said: string; decisions: unknown }[] = []
  const client = await clientOf(setting, ANN, (said, schema) => {
    asked.push({ said, decisions: schema?.properties?.['decision'] })
    return asked.length === 1
      ? { action: 'accept', content: { decision: 'allow_once' } }
      : { action: 'accept', content: { decision: 'deny' } }
  })
  await client.callTool({ name: 'lengthy', arguments: { message: 'Go.' } })
  expect((await setting.runtime.approvals()).map(({ path }) => path.at(-1))).toEqual(['lengthy'])
  expect(asked[0]).toMatchObject({
    said: expect.stringContaining('too long to be shown whole here, so it can only be denied here'),
    decisions: { enum: ['deny'] },
  })
  expect(published).toEqual([])
})

test('a client of the older revision is asked in its session, which is nobody else’s', async () => {
  const setting = await opened()
  const token = await setting.tokenFor(ANN)
  const client = await connected(
    setting.server.url,
    token,
    newClient(() => ({ action: 'accept', content: { answer: 'blue' } }), 'legacy'),
  )
  expect(textIn(await client.callTool({ name: 'asker', arguments: {} }))).toBe('You like blue.')
  const session = (client.transport as { sessionId?: string }).sessionId ?? ''
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const inSession = (id: string, by: string) =>
    setting.post('/mcp', body, { token: by, headers: { 'mcp-session-id': id, accept: BOTH } })
  expect((await inSession(session, token)).status).toBe(200)
  const narrower = await setting.tokenFor({ ...ANN, scopes: ['read'] })
  const unknown = await inSession('00000000-0000-4000-8000-000000000000', narrower)
  expect(unknown.status).toBe(404)
  const foreign = await inSession(session, narrower)
  expect([foreign.status, await foreign.text()]).toEqual([404, await unknown.text()])
  const left = await setting.get('/mcp', { token, method: 'DELETE', headers: { 'mcp-session-id': session } })
  expect(left.status).toBe(200)
  expect((await inSession(session, token)).status).toBe(404)
})

test('sessions of many narrower tokens are refused at last, and close nobody else’s', async () => {
  const setting = await opened({ limits: { readsPerMinute: 100_000, perAddressPerMinute: 100_000 } })
  const open = async (token: string) => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
    const answer = await setting.post('/mcp', body, { token, headers: { accept: BOTH } })
    return { status: answer.status, id: answer.headers.get('mcp-session-id') ?? '', text: await answer.text() }
  }
  const status = async (token: string, id: string) => {
    const body = { jsonrpc: '2.0', id: 2, method: 'tools/list' }
    const headers = { 'mcp-session-id': id, accept: BOTH }
    return (await setting.post('/mcp', body, { token, headers })).status
  }
  const bob = await setting.tokenFor({ id: 'bob', scopes: ['read'] })
  const ann = await setting.tokenFor({ ...ANN, scopes: ['start', 'read', 'admin'] })
  const narrower = (n: number) => {
    const principal = { scopes: ['read'], agents: [`a${n}`] }
    return setting
      .post('/v1/tokens', { principal }, { token: ann })
      .then(async (made) => ((await made.json()) as { token: string }).token)
  }
  const [bobs, anns] = [await open(bob), await open(ann)]
  const first = await open(await narrower(0))
  expect([bobs.status, anns.status, first.status]).toEqual([200, 200, 200])

  // Sixty-two more are the most of one id; then only who has a session of its own gets another one.
  const made: string[] = []
  for (let n = 1; n <= 62; n++) made.push((await open(await narrower(n))).text)
  const refused = await open(await narrower(63))
  expect(refused.status).toBe(429)
  expect(refused.text).toContain('Your tokens have 64 sessions of MCP, which is the most. End some with DELETE.')
  expect(await status(bob, bobs.id)).toBe(200)
  expect(await status(ann, anns.id)).toBe(200)
  const again = await open(ann)
  expect(again.status).toBe(200)
  expect(await status(ann, anns.id)).toBe(404)
  expect((await open(bob)).status).toBe(200)
})

const BOTH = 'application/json, text/event-stream'

test('a client that subscribed to a run hears of it until it has ended', async () => {
  const setting = await opened()
  const client = await connected(setting.server.url, await setting.tokenFor(ANN), newClient(undefined, 'legacy'))
  const heard: string[] = []
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
  const run = setting.runtime.as(ANN).run('sleeper', { ms: 300 })
  await run[Symbol.asyncIterator]().next()
  await client.subscribeResource({ uri: `legate://runs/${run.id}` })
  await until(
    async () => heard.length,
    (count) => count > 0,
  )
  expect(heard[0]).toBe(`legate://runs/${run.id}`)
})

test('a client with forms answers there: it is not offered run_answer, and cannot call it', async () => {
  const setting = await opened()
  const client = await clientOf(setting, ANN, () => ({ action: 'decline' }))
  const names = (await client.listTools()).tools.map(({ name }) => name)
  expect(names).toContain('run_wait')
  expect(names).not.toContain('run_answer')
  await expect(client.callTool({ name: 'run_answer', arguments: {} })).rejects.toThrow('There is no tool')
})

test('declining denies it, and a question takes the answer of the form', async () => {
  const setting = await opened()
  published.length = 0
  const client = await clientOf(setting, ANN, (said) =>
    said.includes('colour') ? { action: 'accept', content: { answer: 'blue' } } : { action: 'decline' },
  )
  expect(textIn(await client.callTool({ name: 'careful', arguments: { message: 'Go.' } }))).toContain('It said')
  expect(published).toEqual([])
  expect(textIn(await client.callTool({ name: 'asker', arguments: {} }))).toBe('You like blue.')
})

test('a caller without the scope approve is not asked, and learns what the run waits for', async () => {
  const setting = await opened()
  let asked = 0
  const client = await clientOf(setting, EVE, () => {
    asked++
    return { action: 'accept', content: { decision: 'allow_once' } }
  })
  expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain('run_answer')
  const result = await client.callTool({ name: 'careful', arguments: { message: 'Go.' } })
  expect(textIn(result)).toMatch(/The run goes on.*tool:publish/s)
  expect(asked).toBe(0)
})

test('a state counts only for its caller, its arguments and as it was signed', async () => {
  const setting = await opened()
  const ann = await rawOf(setting, ANN)
  const capabilities = { elicitation: {} }
  const call = { name: 'careful', arguments: { message: 'Go.' } }
  const { result } = await ann('tools/call', call, capabilities)
  expect(result).toMatchObject({ resultType: 'input_required' })
  const { requestState = '', inputRequests = {} } = result as { requestState?: string; inputRequests?: object }
  const [key = ''] = Object.keys(inputRequests)
  const retry = {
    ...call,
    requestState,
    inputResponses: { [key]: { action: 'accept', content: { decision: 'deny' } } },
  }
  const bob = await rawOf(setting, { ...ANN, id: 'bob' })
  for (const answer of [
    await bob('tools/call', retry, capabilities),
    await ann('tools/call', { ...retry, arguments: { message: 'Other.' } }, capabilities),
    await ann('tools/call', { ...retry, requestState: `${requestState}x` }, capabilities),
  ]) {
    expect(answer.error?.code).toBe(-32_602)
  }
  const good = await ann('tools/call', retry, capabilities)
  expect(textIn(good.result as never)).toContain('It said')
})

test('a long call becomes a task that is polled, answered and cancelled; foreign tasks are unknown ones', async () => {
  const setting = await opened({ mcp: { waitMs: 0 } })
  const ann = await rawOf(setting, ANN)
  const eve = await rawOf(setting, EVE)
  const { result: task } = await ann('tools/call', { name: 'careful', arguments: { message: 'Go.' } })
  expect(task).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null, pollIntervalMs: 1_000 })
  const taskId = String(task?.['taskId'])
  const get = async () => (await ann('tasks/get', { taskId })).result
  const waiting = await until(get, (one) => one?.['status'] === 'input_required')
  const [key = ''] = Object.keys(waiting?.['inputRequests'] as object)
  const inputResponses = { [key]: { action: 'accept', content: { decision: 'allow_here' } } }
  const foreign = await eve('tasks/update', { taskId, inputResponses })
  const unknown = await eve('tasks/update', { taskId: '01890000-0000-7000-8000-00000000dead', inputResponses })
  expect(foreign).toEqual({ ...unknown, id: (foreign as { id?: number }).id })
  expect(foreign.error?.code).toBe(-32_602)
  expect((await ann('tasks/update', { taskId, inputResponses })).result).toMatchObject({ resultType: 'complete' })
  const done = await until(get, (one) => one?.['status'] === 'completed')
  expect(textIn(done?.['result'] as never)).toContain('It said')
  const { result: other } = await ann('tools/call', { name: 'sleeper', arguments: { ms: 60_000 } })
  const otherId = String(other?.['taskId'])
  await ann('tasks/cancel', { taskId: otherId })
  await until(
    async () => (await ann('tasks/get', { taskId: otherId })).result,
    (one) => one?.['status'] === 'cancelled',
  )
  expect((await ann('tasks/get', { taskId }, {})).error).toMatchObject({ code: -32_021 })
})

async function until<T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read()
    if (holds(value)) return value
    await sleep(20)
  }
}

test('a client without Tasks gets the run of a long call, and the tools to wait for it, answer in it and stop it', async () => {
  const setting = await opened({ mcp: { waitMs: 20 } })
  const client = await clientOf(setting, { ...ANN, scopes: [...ANN.scopes, 'approve:model'] })
  const call = async (name: string, args: object) => textIn(await client.callTool({ name, arguments: { ...args } }))
  const runIn = (text: string) => /run_id: (\S+)/.exec(text)?.[1] ?? ''
  const run_id = runIn(await call('sleeper', { ms: 200 }))
  expect(await call('run_wait', { run_id })).toContain('Slept 200 ms.')
  expect(await call('run_get', { run_id })).toBe('sleeper: completed')
  const asking = runIn(await call('careful', { message: 'Go.' }))
  const shown = await call('run_get', { run_id: asking })
  const [, node_id = '', seen = ''] = /node_id (\S+), seen (\S+):/.exec(shown) ?? []
  expect(await call('run_answer', { run_id: asking, node_id, seen: '0'.repeat(64), decision: 'deny' })).toContain(
    'conflict',
  )
  await call('run_answer', { run_id: asking, node_id, seen, decision: 'deny' })
  expect(await call('run_wait', { run_id: asking })).toContain('It said')
  const long = runIn(await call('sleeper', { ms: 60_000 }))
  await call('run_cancel', { run_id: long })
  expect(await call('run_wait', { run_id: long })).toContain('The run ended cancelled')
})

test('the model of a client without forms answers a question, and allows nothing', async () => {
  const setting = await opened({ mcp: { waitMs: 20 } })
  published.length = 0
  const client = await clientOf(setting, ANN)
  const call = async (name: string, args: object) => textIn(await client.callTool({ name, arguments: { ...args } }))
  const names = (await client.listTools()).tools.map(({ name }) => name)
  expect(names).toContain('run_reply')
  expect(names).not.toContain('run_answer')
  await expect(call('run_answer', {})).rejects.toThrow('There is no tool')
  const begun = async (name: string, args: object) => {
    const run_id = /run_id: (\S+)/.exec(await call(name, args))?.[1] ?? ''
    const [, node_id = '', seen = ''] = /node_id (\S+), seen (\S+):/.exec(await call('run_get', { run_id })) ?? []
    return { run_id, node_id, seen }
  }
  const asking = await begun('asker', {})
  expect(await call('run_reply', { ...asking, answer: ' ' })).toContain('Give "answer"')
  expect(await call('run_reply', { ...asking, seen: '0'.repeat(64), answer: 'red' })).toContain('conflict')
  await call('run_reply', { run_id: asking.run_id, node_id: asking.node_id, answer: 'blue' })
  expect(await call('run_wait', { run_id: asking.run_id })).toBe('You like blue.')
  const careful = await begun('careful', { message: 'Go.' })
  expect(await call('run_reply', { ...careful, answer: 'allow_once' })).toContain('A person must allow it')
  expect(published).toEqual([])
})

/** Everybody who is somebody without being told so. */
const DEFAULTS: readonly [string, (setting: Setting) => Promise<string>][] = [
  ['the token of this machine', async ({ token }) => token],
  ['a token with all scopes that people have', (setting) => setting.tokenFor(LOCAL_PRINCIPAL)],
  ['a token with the scope approve', (setting) => setting.tokenFor(ANN)],
  ['a token that was made when it had ten scopes', storedToken],
]

test.each(DEFAULTS)('%s has no run_answer over MCP, with forms and without', async (_, tokenOf) => {
  const setting = await opened()
  published.length = 0
  const token = await tokenOf(setting)
  for (const client of [newClient(), newClient(() => ({ action: 'decline' })), newClient(undefined, 'legacy')]) {
    await connected(setting.server.url, token, client)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('careful')
    expect(tools.map(({ name }) => name)).not.toContain('run_answer')
    await expect(client.callTool({ name: 'run_answer', arguments: {} })).rejects.toThrow('There is no tool')
  }
  // What it could do for a person, it can.
  expect((await setting.get('/v1/approvals', { token })).status).toBe(200)
})

/** The row of a token of this machine, as servers wrote it before there was the scope `approve:model`. */
async function storedToken({ runtime }: Setting): Promise<string> {
  const scopes = 'start read cancel approve approve:always history delete export audit admin'.split(' ')
  const [id, secret] = ['0123456789abcdef', 'x'.repeat(43)]
  const data = {
    hash: createHash('sha256').update(secret).digest('hex'),
    name: 'this machine',
    principal: { id: 'local', scopes, sees: 'all' },
    createdAt: 1,
    expiresAt: null,
    lastUsedAt: null,
    parent: null,
  }
  await runtime.store.registry.put({ kind: 'token', id, owner: 'local', version: 1, at: 1, data })
  return `lgt_${id}_${secret}`
}

test('a token gives the scope approve:model only where it has it, and the operator of the store may', async () => {
  const setting = await opened()
  const model = { principal: { scopes: ['approve:model'] } }
  for (const token of [setting.token, await storedToken(setting)]) {
    const refused = await setting.post('/v1/tokens', model, { token })
    expect([refused.status, await refused.text()]).toEqual([
      422,
      expect.stringContaining('cannot give the scope approve:model'),
    ])
  }
  const token = await setting.tokenFor({ ...ANN, scopes: ['approve', 'approve:model'] })
  expect((await setting.post('/v1/tokens', model, { token })).status).toBe(201)
})

test('runs, transcripts and results are resources of their owner only', async () => {
  const setting = await opened()
  const client = await clientOf(setting, ANN)
  const { _meta } = await client.callTool({ name: 'recaller', arguments: { message: 'x' } })
  const { runId, conversationId } = Object(_meta)['legate/run'] as { runId: string; conversationId: string }
  const { resources } = await client.listResources()
  expect(resources.map(({ uri }) => uri)).toContain(`legate://runs/${runId}`)
  const read = async (uri: string) => JSON.stringify((await client.readResource({ uri })).contents)
  expect(await read(`legate://runs/${runId}`)).toContain('completed')
  expect(await read(`legate://conversations/${conversationId}/transcript`)).toContain('I was told')
  const { answerNodeId } = await ended(setting, runId)
  expect(await read(`legate://results/${answerNodeId}`)).toContain('I was told')
  const eve = await clientOf(setting, EVE)
  await expect(eve.readResource({ uri: `legate://runs/${runId}` })).rejects.toThrow('Resource not found')
  expect((await eve.listResources()).resources).toEqual([])
})

test('a token that denies publishing binds what it starts through MCP, children included (I1)', async () => {
  const setting = await opened()
  published.length = 0
  const client = await clientOf(setting, { ...ANN, grant: { deny: ['tool:publish'] } }, () => ({
    action: 'accept',
    content: { decision: 'allow_once' },
  }))
  await client.callTool({ name: 'writer', arguments: { message: 'Go.' } })
  await client.callTool({ name: 'host', arguments: { message: 'Go.' } })
  expect(published).toEqual([])
})

test('scopes, agents and limits of the token hold', async () => {
  const setting = await opened({ limits: { startsPerMinute: 1 } })
  const narrow = await clientOf(setting, { ...EVE, agents: ['add*'] })
  expect((await narrow.listTools()).tools.map(({ name }) => name)).toEqual([
    'adder',
    'run_list',
    'run_get',
    'run_wait',
    'run_cancel',
  ])
  await narrow.callTool({ name: 'adder', arguments: { a: 1, b: 1 } })
  expect(textIn(await narrow.callTool({ name: 'adder', arguments: { a: 1, b: 1 } }))).toContain('Too many starts')
  const reader = await clientOf(setting, { id: 'reader', scopes: ['read'] })
  expect((await reader.listTools()).tools.map(({ name }) => name)).toEqual(['run_list', 'run_get', 'run_wait'])
})

test('tools, prompts and resources of a program need the scopes of a caller, and its code learns who calls', async () => {
  const prompt = { description: 'A prompt.', arguments: [], get: () => ({ messages: [] }) }
  const setting = await opened({
    mcp: {
      tools: [
        {
          name: 'own',
          description: 'Says who calls.',
          inputSchema: { type: 'object' },
          call: (_, { principal }) => ({ content: [{ type: 'text', text: principal }] }),
        },
      ],
      prompts: [
        { ...prompt, name: 'plain' },
        { ...prompt, name: 'of-writer', agent: 'writer' },
      ],
      resources: [
        {
          uri: 'own://x',
          name: 'x',
          description: 'x',
          read: async (uri, _, { principal }) => [{ uri, text: principal }],
        },
      ],
    },
  })
  const ann = await clientOf(setting, { ...ANN, agents: ['adder'] })
  expect(textIn(await ann.callTool({ name: 'own', arguments: {} }))).toBe('ann')
  expect((await ann.readResource({ uri: 'own://x' })).contents).toMatchObject([{ text: 'ann' }])
  expect((await ann.listPrompts()).prompts.map(({ name }) => name)).toEqual(['plain'])
  await expect(ann.getPrompt({ name: 'of-writer' })).rejects.toThrow('There is no such prompt')
  const none = await clientOf(setting, { id: 'none', scopes: ['cancel'] })
  expect((await none.listPrompts()).prompts).toEqual([])
  expect((await none.listResources()).resources).toEqual([])
  await expect(none.getPrompt({ name: 'plain' })).rejects.toThrow('There is no such prompt')
  await expect(none.callTool({ name: 'own', arguments: {} })).rejects.toThrow('There is no tool')
  await expect(none.readResource({ uri: 'own://x' })).rejects.toThrow('Resource not found')
})

test('each message of a batch counts', async () => {
  const setting = await opened({ limits: { readsPerMinute: 10 } })
  const token = await setting.tokenFor(ANN)
  const batch = (count: number) => Array.from({ length: count }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
  const sent = await setting.post('/mcp', batch(20), { token, headers: { accept: BOTH } })
  expect(sent.status).toBe(429)
  const wide = await opened()
  const held = await wide.post('/mcp', batch(65), { token: await wide.tokenFor(ANN), headers: { accept: BOTH } })
  expect(held.status).toBe(429)
})

test('a conversation of an agent that the token may not see is an unknown one', async () => {
  const setting = await opened()
  const ann = await clientOf(setting, ANN)
  const first = await ann.callTool({ name: 'writer', arguments: { message: 'Go.' } })
  const { session_id: own } = first.structuredContent as { session_id: string }
  const narrow = await clientOf(setting, { ...ANN, agents: ['recaller'] })
  const say = async (session_id: string) => {
    const said = textIn(await narrow.callTool({ name: 'recaller', arguments: { message: 'x', session_id } }))
    return said.replace(session_id, 'X')
  }
  expect(await say(own)).toBe(await say('01890000-0000-7000-8000-00000000dead'))
})

test('a wrong token, another origin and an invalid message are refused', async () => {
  const setting = await opened()
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  expect((await setting.post('/mcp', body, { token: null })).status).toBe(401)
  expect((await setting.post('/mcp', body, { headers: { origin: 'https://evil.example' } })).status).toBe(403)
  expect((await setting.post('/mcp', { no: 'message' })).status).toBe(400)
  expect((await setting.get('/mcp')).status).toBe(400)
})

test.each([
  ['before its call has ended', 2_500],
  ['after its call has ended', 300],
])('a client whose connection breaks comes back to its session %s, and has the answer', async (_, ms) => {
  const setting = await opened()
  const asked: (string | null)[] = []
  /** Breaks the connection of the call once its stream has begun. */
  const breaking = async (url: string | URL, init?: RequestInit) => {
    const headers = new Headers(init?.headers)
    if (init?.method === 'GET' && headers.has('last-event-id')) asked.push(headers.get('last-event-id'))
    const answer = await fetch(url, init)
    const isCall = typeof init?.body === 'string' && init.body.includes('"tools/call"')
    return isCall && asked.length === 0 ? new Response(firstOf(answer.body), answer) : answer
  }
  const client = newClient(undefined, 'legacy')
  const headers = { authorization: `Bearer ${await setting.tokenFor(ANN)}` }
  const place = new URL(`${setting.server.url}/mcp`)
  await client.connect(new StreamableHTTPClientTransport(place, { requestInit: { headers }, fetch: breaking }))

  const answer = await client.callTool({ name: 'sleeper', arguments: { ms } })
  expect(textIn(answer)).toContain(`Slept ${ms} ms.`)
  expect(asked).toHaveLength(1)
  expect(await setting.runtime.runs()).toMatchObject([{ agent: 'sleeper', status: 'completed' }])

  const session = String((client.transport as StreamableHTTPClientTransport).sessionId)
  const eve = { authorization: `Bearer ${await setting.tokenFor(EVE)}`, accept: 'text/event-stream' }
  const taken = await fetch(place, {
    headers: { ...eve, 'mcp-session-id': session, 'last-event-id': String(asked[0]) },
  })
  expect(taken.status).toBe(404)
})

/** The first piece of a body, and then a broken connection. */
function firstOf(body: Response['body']): ReadableStream<Uint8Array> {
  const reader = body?.getReader()
  let isBegun = false
  return new ReadableStream({
    pull: async (controller) => {
      if (isBegun) {
        await reader?.cancel()
        return controller.error(new Error('The connection broke.'))
      }
      isBegun = true
      const { value } = (await reader?.read()) ?? {}
      if (value !== undefined) controller.enqueue(value)
    },
  })
}
