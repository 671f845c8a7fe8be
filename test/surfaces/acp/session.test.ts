// Editors: the client of ACP's own package against our agent, in one process.

import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import * as acp from '@agentclientprotocol/sdk'
import {
  type AnyAgent,
  agent,
  createRuntime,
  type Grant,
  type Principal,
  type Runtime,
  type RuntimeOptions,
  tool,
} from 'legate'
import { atThisMachine } from 'legate/grant'
import { scriptedModel } from 'legate/testing'
import { todoTools } from 'legate/tools'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { makeAgent } from '../../../src/server/protocols/acp/serve.ts'
import { allowed, asksThrice, stand, THREE } from '../../attack/support/asks-thrice.ts'
import { makeGate } from '../../support/gate.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const ME: Principal = atThisMachine({
  id: 'local',
  scopes: ['start', 'read', 'cancel', 'approve', 'approve:always', 'history'],
})
const FOLDER = '/home/ann/project'

const written: string[] = []
const write_file = tool({
  description: 'Writes.',
  input: z.object({ path: z.string(), content: z.string() }),
  execute: ({ path }) => {
    written.push(path)
    return `wrote ${path}`
  },
})

const WRITE = { name: 'write_file', input: { path: '/workspace/a.txt', content: 'new' } }

/** Writes a file once, and says so. */
const writer = agent({
  name: 'writer',
  instructions: 'Write.',
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'Written.' : { text: 'I write.', calls: [WRITE] },
  ),
  tools: { write_file },
  grant: { ask: ['tool:write_file'] },
})

/** Greets the first time, and writes when it is asked for another answer. */
function greeter() {
  let isGreeted = false
  const model = scriptedModel(({ messages }) => {
    if (messages.at(-1)?.role === 'tool') return 'Written.'
    if (isGreeted) return { calls: [WRITE] }
    isGreeted = true
    return 'Hello.'
  })
  return agent({ name: 'greeter', instructions: 'Greet.', model, tools: { write_file } })
}

const lead = agent({
  name: 'lead',
  instructions: 'Lead.',
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'All done.' : { calls: [{ name: 'writer', input: { message: 'Write.' } }] },
  ),
  subagents: { writer },
})

const planner = agent({
  name: 'planner',
  instructions: 'Plan.',
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'Planned.'
      : { calls: [{ name: 'todo_write', input: { content: '- [x] look\n- [ ] fix' } }] },
  ),
  tools: todoTools(),
})

const asker = agent({
  name: 'asker',
  grant: { use: ['tool:ask_person'] },
  effect: 'pure',
  reply: async (_, { ask }) => `You like ${await ask('Which colour?')}.`,
})

/** How an editor answers: a permission, and a form where it has forms. */
interface EditorManners {
  readonly choice?: Choice
  /** The first permission is answered only then, whatever happens meanwhile; no other is. */
  readonly until?: Promise<void>
  readonly reply?: acp.CreateElicitationResponse | null
}

type Choice = 'allow_once' | 'allow_always' | 'reject_once' | 'wait'

/** An editor that answers permissions in one way, and keeps what it was shown. */
class TestEditor {
  readonly updates: acp.SessionUpdate[] = []
  readonly asked: acp.RequestPermissionRequest[] = []
  readonly forms: acp.CreateElicitationRequest[] = []
  readonly agent: acp.ClientContext
  private readonly reply: acp.CreateElicitationResponse | null
  private readonly connection: acp.ClientConnection

  constructor(
    runtime: Runtime,
    own: AnyAgent | string,
    { choice = 'allow_once', reply = null, until }: EditorManners = {},
  ) {
    const app = makeAgent({ sdk: acp, agent: own, runtimeFor: async () => runtime.as(ME) })
    this.reply = reply
    const editor = acp
      .client({ name: 'test' })
      .onNotification(acp.methods.client.session.update, ({ params }) => void this.updates.push(params.update))
      .onRequest(acp.methods.client.session.requestPermission, async ({ params, signal }) => {
        this.asked.push(params)
        if (until !== undefined) await (this.asked.length === 1 ? until : new Promise(() => undefined))
        if (choice !== 'wait') return { outcome: { outcome: 'selected' as const, optionId: choice } }
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { outcome: { outcome: 'cancelled' as const } }
      })
      .onRequest(acp.methods.client.elicitation.create, ({ params }) => {
        this.forms.push(params)
        return reply ?? { action: 'cancel' }
      })
    this.connection = editor.connect(app)
    this.agent = this.connection.agent
    onTestFinished(() => this.connection.close())
  }

  async begin() {
    const clientCapabilities = this.reply === null ? {} : { elicitation: { form: {} } }
    return this.agent.request<acp.InitializeResponse>(acp.methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities,
    })
  }

  async open(mcpServers: acp.McpServer[] = [], cwd = FOLDER): Promise<string> {
    const { session } = acp.methods.agent
    await this.begin()
    return (await this.agent.request(session.new, { cwd, mcpServers })).sessionId
  }

  async prompt(sessionId: string, text: string): Promise<string> {
    const prompt = [{ type: 'text' as const, text }]
    const { prompt: method } = acp.methods.agent.session
    return (await this.agent.request<acp.PromptResponse>(method, { sessionId, prompt })).stopReason
  }

  async load(sessionId: string) {
    await this.begin()
    return this.agent.request(acp.methods.agent.session.load, { sessionId, cwd: FOLDER, mcpServers: [] })
  }

  /** All text of one sort of update. */
  said(kind: 'agent_message_chunk' | 'user_message_chunk'): string {
    return this.updates
      .flatMap((one) => (one.sessionUpdate === kind && one.content.type === 'text' ? [one.content.text] : []))
      .join('')
  }

  of<Kind extends acp.SessionUpdate['sessionUpdate']>(kind: Kind) {
    return this.updates.filter((one) => one.sessionUpdate === kind) as Extract<
      acp.SessionUpdate,
      { sessionUpdate: Kind }
    >[]
  }
}

function runtimeOf(agents: readonly AnyAgent[], options: RuntimeOptions = {}): Runtime {
  const runtime = createRuntime({ agents, ...options })
  onTestFinished(() => runtime.close())
  return runtime
}

test('a prompt streams words, calls with diff and location, and asks before the call runs', async () => {
  written.length = 0
  const editor = new TestEditor(runtimeOf([writer]), 'writer')
  const session = await editor.open()
  expect(await editor.prompt(session, 'Go.')).toBe('end_turn')
  expect(editor.said('agent_message_chunk')).toBe('I write.Written.')
  const [call] = editor.of('tool_call')
  expect(call).toMatchObject({
    title: 'write_file /workspace/a.txt',
    kind: 'edit',
    locations: [{ path: `${FOLDER}/a.txt` }],
    content: [{ type: 'diff', path: `${FOLDER}/a.txt`, newText: 'new' }],
  })
  expect(editor.of('tool_call_update').map(({ status }) => status)).toEqual(['pending', 'in_progress', 'completed'])
  expect(editor.asked).toMatchObject([
    { toolCall: { toolCallId: call?.toolCallId }, options: [{ kind: 'allow_once' }, {}, {}] },
  ])
  expect(written).toEqual(['/workspace/a.txt'])
})

test('one call that asks for three things is asked three times, and what somebody else has allowed is taken back', async () => {
  const thrice = asksThrice()
  onTestFinished(() => thrice.runtime.close())
  const editor = new TestEditor(thrice.runtime, 'host', { choice: 'wait' })
  const said = editor.prompt(await editor.open(), 'Go.')
  const [first = '', second = '', third = ''] = THREE
  const asked = () => new Set(editor.asked.map(({ toolCall }) => toolCall.toolCallId))
  await expect.poll(() => editor.asked).toHaveLength(1)
  await allowed(thrice, first)
  await expect.poll(() => editor.asked).toHaveLength(2)
  expect([asked().size, ...(await stand(thrice))]).toEqual([1, [second], false])
  await allowed(thrice, second)
  await expect.poll(() => editor.asked).toHaveLength(3)
  await allowed(thrice, third)
  expect(await said).toBe('end_turn')
  expect(thrice.isDone()).toBe(true)
  // Each prompt says which of the three it is, and which rule asks.
  const prompts = editor.asked.map(({ toolCall }) => JSON.stringify([toolCall.title, toolCall.content]))
  expect(new Set(prompts).size).toBe(3)
  expect(prompts[0]).toContain('shell touch PWNED')
  expect(prompts[1]).toContain('exec:touch PWNED for shell')
  expect(prompts[2]).toContain('file.list:/workspace for shell')
  for (const prompt of prompts) expect(prompt).toMatch(/It needs your approval: host asks for /)
})

test('a late choice for the first request allows nothing of the second', async () => {
  const thrice = asksThrice()
  onTestFinished(() => thrice.runtime.close())
  const gate = makeGate()
  const editor = new TestEditor(thrice.runtime, 'host', { choice: 'allow_once', until: gate.opened })
  editor.prompt(await editor.open(), 'Go.').catch(() => undefined)
  const [first = '', second = ''] = THREE
  await expect.poll(() => editor.asked).toHaveLength(1)
  await allowed(thrice, first)
  await expect.poll(() => editor.asked).toHaveLength(2)
  gate.open()
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(await stand(thrice)).toEqual([[second], false])
})

test('a call of a subagent is asked for in the editor, its words are shown, and its session can be loaded to read', async () => {
  written.length = 0
  const runtime = runtimeOf([lead, writer])
  const editor = new TestEditor(runtime, 'lead')
  const session = await editor.open()
  expect(await editor.prompt(session, 'Go.')).toBe('end_turn')
  expect(editor.asked[0]?.toolCall.title).toBe('writer: write_file /workspace/a.txt')
  expect(written).toHaveLength(1)
  const child = editor.of('tool_call_update').find(({ _meta }) => _meta?.['legate/child'] !== undefined)
  const { sessionId } = Object(child?._meta)['legate/child'] as { sessionId: string }
  const words = editor
    .of('tool_call_update')
    .filter(({ toolCallId, content }) => toolCallId === child?.toolCallId && content)
  expect(JSON.stringify(words.at(-1)?.content)).toContain('Written.')
  const reader = new TestEditor(runtime, 'lead')
  await reader.load(sessionId)
  expect(reader.said('user_message_chunk')).toBe('Write.')
  expect(reader.said('agent_message_chunk')).toBe('I write.Written.')
  await expect(reader.prompt(sessionId, 'Me too.')).rejects.toThrow('you can read it')
})

test('denying refuses the call, and allow_always is not asked again', async () => {
  written.length = 0
  const no = new TestEditor(runtimeOf([writer]), 'writer', { choice: 'reject_once' })
  expect(await no.prompt(await no.open(), 'Go.')).toBe('end_turn')
  expect(no.of('tool_call_update').at(-1)?.status).toBe('failed')
  expect(written).toEqual([])
  const always = new TestEditor(runtimeOf([writer]), 'writer', { choice: 'allow_always' })
  const session = await always.open()
  await always.prompt(session, 'Go.')
  await always.prompt(session, 'Again.')
  expect(always.asked).toHaveLength(1)
  expect(written).toHaveLength(2)
})

test('a loaded session has everything that was said and done, and goes on', async () => {
  const runtime = runtimeOf([writer])
  const first = new TestEditor(runtime, 'writer')
  const session = await first.open()
  await first.prompt(session, 'Go.')
  const { sessions } = await first.agent.request(acp.methods.agent.session.list, {})
  expect(sessions).toMatchObject([{ sessionId: session }])
  const second = new TestEditor(runtime, 'writer')
  await second.load(session)
  expect(second.said('user_message_chunk')).toBe('Go.')
  expect(second.said('agent_message_chunk')).toBe('I write.Written.')
  expect(second.of('tool_call')).toEqual(first.of('tool_call'))
  expect(second.asked).toEqual([])
  expect(await second.prompt(session, 'Again.')).toBe('end_turn')
})

test('a permission that waits is asked again when the session is loaded', async () => {
  written.length = 0
  const runtime = runtimeOf([writer])
  const gone = new TestEditor(runtime, 'writer', { choice: 'wait' })
  const session = await gone.open()
  const left = gone.prompt(session, 'Go.').catch(() => undefined)
  while (gone.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  const back = new TestEditor(runtime, 'writer')
  await back.load(session)
  while (!back.said('agent_message_chunk').includes('Written.')) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(back.asked).toHaveLength(1)
  expect(written).toHaveLength(1)
  await left
})

test('cancelling ends the prompt, and what was asked answers nothing', async () => {
  written.length = 0
  const editor = new TestEditor(runtimeOf([writer]), 'writer', { choice: 'wait' })
  const session = await editor.open()
  const prompted = editor.prompt(session, 'Go.')
  while (editor.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await editor.agent.notify(acp.methods.agent.session.cancel, { sessionId: session })
  expect(await prompted).toBe('cancelled')
  expect(written).toEqual([])
})

test('a list of what is to do is a plan, and a question is answered by the next prompt', async () => {
  const runtime = runtimeOf([planner, asker])
  const plans = new TestEditor(runtime, 'planner')
  await plans.prompt(await plans.open(), 'Go.')
  expect(plans.of('plan')[0]?.entries).toMatchObject([
    { content: 'look', status: 'completed' },
    { content: 'fix', status: 'pending' },
  ])
  const asks = new TestEditor(runtime, 'asker')
  const session = await asks.open()
  expect(await asks.prompt(session, 'Go.')).toBe('end_turn')
  expect(asks.said('agent_message_chunk')).toBe('Which colour?')
  expect(await asks.prompt(session, 'Blue')).toBe('end_turn')
  expect(asks.said('agent_message_chunk')).toContain('You like Blue.')
})

test('a mode narrows what follows; retry answers again; closing ends what goes on', async () => {
  written.length = 0
  const editor = new TestEditor(runtimeOf([writer]), 'writer')
  const session = await editor.open()
  const { setMode, close } = acp.methods.agent.session
  await editor.agent.request(setMode, { sessionId: session, modeId: 'chat' })
  await editor.prompt(session, 'Go.')
  expect(written).toEqual([])
  await editor.agent.request(setMode, { sessionId: session, modeId: 'auto' })
  expect(await editor.prompt(session, '/retry')).toBe('end_turn')
  await expect(editor.agent.request(setMode, { sessionId: session, modeId: 'root' })).rejects.toThrow()
  await editor.agent.request(close, { sessionId: session })
  await expect(editor.prompt(session, 'Go.')).rejects.toThrow()
})

test.each(['chat', 'approve'] as const)('retry is bound by the mode %s too', async (modeId) => {
  written.length = 0
  const editor = new TestEditor(runtimeOf([greeter()]), 'greeter', { choice: 'reject_once' })
  const sessionId = await editor.open()
  await editor.prompt(sessionId, 'Go.')
  await editor.agent.request(acp.methods.agent.session.setMode, { sessionId, modeId })
  await editor.prompt(sessionId, '/retry')
  expect([written.length, editor.asked.length]).toEqual([0, modeId === 'approve' ? 1 : 0])
  expect((await editor.load(sessionId)).modes?.currentModeId).toBe('auto')
})

test('the session of another owner does not exist', async () => {
  const runtime = runtimeOf([writer])
  const { conversationId } = await runtime.run(writer, 'Go.', { owner: 'eve' })
  const editor = new TestEditor(runtime, 'writer')
  await editor.open()
  const foreign = await editor.load(conversationId).catch((error: Error) => error.message)
  const unknown = await editor.load('01890000-0000-7000-8000-00000000dead').catch((error: Error) => error.message)
  expect(foreign).toBe(unknown)
})

test('a question is a form where the editor has forms, and a person who turns it down is a fact', async () => {
  const runtime = runtimeOf([asker])
  const asks = new TestEditor(runtime, 'asker', { reply: { action: 'accept', content: { answer: 'Red' } } })
  expect(await asks.prompt(await asks.open(), 'Go.')).toBe('end_turn')
  expect(asks.forms).toMatchObject([
    { mode: 'form', message: 'Which colour?', requestedSchema: { required: ['answer'] } },
  ])
  expect(asks.said('agent_message_chunk')).toContain('You like Red.')
  const shy = new TestEditor(runtime, 'asker', { reply: { action: 'decline' } })
  await shy.prompt(await shy.open(), 'Go.')
  expect(shy.said('agent_message_chunk')).toContain('does not answer')
})

test('a question that waits is asked again with a form when the session is loaded', async () => {
  const runtime = runtimeOf([asker])
  const plain = new TestEditor(runtime, 'asker')
  const session = await plain.open()
  await plain.prompt(session, 'Go.')
  const forms = new TestEditor(runtime, 'asker', { reply: { action: 'accept', content: { answer: 'Green' } } })
  await forms.load(session)
  while (!forms.said('agent_message_chunk').includes('You like Green.'))
    await new Promise((done) => setTimeout(done, 5))
  expect(forms.forms).toHaveLength(1)
})

const root = path.resolve(import.meta.dirname, '../../..')
const everything: acp.McpServer = {
  name: 'My sums',
  command: process.execPath,
  args: [path.join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'],
  env: [{ name: 'API_TOKEN', value: 'sesame-12345' }],
}

/** Adds with the editor's server where it has it, and says what it read. */
function adder(grant?: Grant) {
  const model = scriptedModel(({ messages, tools }) => {
    const last = messages.findLastIndex(({ role }) => role === 'user')
    const result = messages.slice(last).find(({ role }) => role === 'tool')
    if (result !== undefined) return `I read: ${String(result.content)}`
    const sum = tools.find(({ name }) => name === 'My_sums__get-sum')
    return sum === undefined ? 'I cannot add.' : { calls: [{ name: sum.name, input: { a: 2, b: 3 } }] }
  })
  return agent({ name: 'adder', instructions: 'Add.', model, ...(grant === undefined ? {} : { grant }) })
}

test('a path outside of the folder is no place to follow the agent to', async () => {
  const paths = ['/etc/passwd', '/workspace/../x', 'b.txt']
  const model = scriptedModel([{ calls: paths.map((one) => ({ name: 'look_at', input: { path: one } })) }, 'Done.'])
  const look_at = tool({ description: 'x', input: z.object({ path: z.string() }), execute: () => 'seen' })
  const looker = agent({ name: 'looker', instructions: 'Look.', model, tools: { look_at } })
  const editor = new TestEditor(runtimeOf([looker]), looker)
  await editor.prompt(await editor.open(), 'Go.')
  expect(editor.of('tool_call').map(({ locations }) => locations)).toEqual([
    undefined,
    undefined,
    [{ path: `${FOLDER}/b.txt` }],
  ])
})

test('servers of the editor are started when the person allows it, and asked for once in a conversation', async () => {
  const own = adder({ use: ['model:*'] })
  const editor = new TestEditor(runtimeOf([own]), own, { choice: 'allow_always' })
  const session = await editor.open([everything], root)
  await editor.prompt(session, '2 + 3?')
  expect(editor.said('agent_message_chunk')).toContain('The sum of 2 and 3 is 5.')
  expect(editor.asked).toHaveLength(1)
  expect(editor.asked[0]?.toolCall.title).toContain('server-everything')
  expect(JSON.stringify([editor.asked, editor.updates])).not.toContain('sesame-12345')
  await editor.prompt(session, 'Once more?')
  expect(editor.asked).toHaveLength(1)
})

test('a run goes on without a server that the person denies, or that the agent may not start', async () => {
  const plain = adder()
  const no = new TestEditor(runtimeOf([plain]), plain, { choice: 'reject_once' })
  expect(await no.prompt(await no.open([everything], root), '2 + 3?')).toBe('end_turn')
  expect([no.asked.length, no.said('agent_message_chunk')]).toEqual([1, 'I cannot add.'])
  const strict = adder({ deny: ['exec:*'] })
  const never = new TestEditor(runtimeOf([strict]), strict)
  await never.prompt(await never.open([everything], root), '2 + 3?')
  expect([never.asked.length, never.said('agent_message_chunk')]).toEqual([0, 'I cannot add.'])
  const other = new TestEditor(runtimeOf([plain]), plain)
  await other.prompt(await other.open([], root), '2 + 3?')
  expect([other.asked.length, other.said('agent_message_chunk')]).toEqual([0, 'I cannot add.'])
})

test('a secret that the editor hands over is decided by every layer, and asked for together with the program', async () => {
  const open = { use: ['model:*', 'tool:*', 'exec:*', 'net:*', 'secret:*'] }
  expect((await asked(open))?.toolCall.rawInput).toMatchObject({ secrets: ['API_TOKEN'] })

  const refused: readonly [Grant, Grant | undefined][] = [
    [{ ...open, deny: ['secret:*'] }, undefined],
    [open, { deny: ['secret:API_*'] }],
    [open, { use: ['model:*', 'tool:*', 'exec:*', 'net:*'] }],
  ]
  for (const [grant, runtime] of refused) expect(await asked(grant, runtime)).toBeUndefined()

  async function asked(grant: Grant, runtime?: Grant) {
    const own = adder(grant)
    const editor = new TestEditor(runtimeOf([own], runtime === undefined ? {} : { grant: runtime }), own)
    await editor.prompt(await editor.open([everything], root), '2 + 3?')
    const isThere = editor.said('agent_message_chunk').includes('The sum of 2 and 3 is 5.')
    expect([isThere, editor.asked.length]).toEqual(editor.asked.length === 0 ? [false, 0] : [true, 1])
    return editor.asked[0]
  }
})

test('a header of the editor names no variable of this process', async () => {
  process.env['LEGATE_CANARY'] = 'canary-4711'
  const heard: string[] = []
  const server = createServer((request, response) => {
    heard.push(JSON.stringify([request.url, request.headers]))
    response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const name = `$${'{'}LEGATE_CANARY}`
  const own = adder({ use: ['model:*', 'tool:*', 'exec:*', 'net:*', 'secret:*'] })
  const editor = new TestEditor(runtimeOf([own]), own)
  const servers: acp.McpServer[] = [
    { type: 'http', name: 'far', url, headers: [{ name: 'Authorization', value: `Bearer ${name}` }] },
    { type: 'http', name: 'path', url: `${url}/${name}`, headers: [] },
  ]
  await editor.prompt(await editor.open(servers, root), '2 + 3?')
  expect(editor.asked.length).toBeGreaterThan(0)
  expect(heard.join()).not.toContain('canary-4711')
})

test.each([
  ['no grant', undefined],
  ['a grant for every program', { use: ['model:*', 'tool:*', 'exec:*', 'net:*'] }],
])('a server whose command line has blanks, quotes and stars is asked for: %s', async (_, grant) => {
  const mark = path.join(tempFolder(), 'it started')
  const program = `require('fs').writeFileSync(${JSON.stringify(mark)}, "2 * 3 isn't 5")`
  const loud: acp.McpServer = { name: 'loud', command: process.execPath, args: ['-e', program, '*', ''], env: [] }
  const own = adder(grant)
  const editor = new TestEditor(runtimeOf([own]), own, { choice: 'reject_once' })
  expect(await editor.prompt(await editor.open([loud], root), '2 + 3?')).toBe('end_turn')
  expect([editor.asked.length, existsSync(mark)]).toEqual([1, false])
})

test('a server that speaks SSE is refused, and what the agent takes is announced', async () => {
  const own = adder()
  const editor = new TestEditor(runtimeOf([own]), own)
  await expect(editor.open([{ type: 'sse', name: 'old', url: 'http://127.0.0.1:9', headers: [] }])).rejects.toThrow(
    'SSE',
  )
  const { agentCapabilities } = await editor.begin()
  expect(agentCapabilities?.mcpCapabilities).toEqual({ http: true, sse: false })
})
