// A program can read the token of this machine. So others than the person at this machine start no program, unless code trusts them.

import path from 'node:path'
import {
  type AnyAgent,
  agent,
  createRuntime,
  type Grant,
  isLegateError,
  type Principal,
  type RuntimeOptions,
  tool,
} from 'legate'
import { isOfThisMachine } from 'legate/grant'
import { mcpServer } from 'legate/mcp'
import { openSubagents, recipeAgent } from 'legate/recipe'
import { handler, type ServeOptions, type Server, serve } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { developerTools, diskFiles, memoryFiles } from 'legate/tools'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LOCAL_PRINCIPAL } from '../../../src/server/identity/local-token.ts'
import { Tokens } from '../../../src/server/identity/tokens.ts'
import { recipe } from '../../recipe/open/support.ts'
import { openRuntime } from '../../support/reading.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { obedient } from '../support/obedient.ts'

const ALL: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*'] }
const ANN: Principal = { id: 'ann', scopes: ['start', 'read', 'history'] }
const CHOICES = /exec:\*.*fewer agents.*trustPrograms: true.*--trust-programs/s

const model = () => scriptedModel(() => 'ok')
const plain = (more: object) => agent({ name: 'who', instructions: '', model: model(), ...more })
const { shell } = developerTools()
const lead = plain({ name: 'lead', tools: { shell }, grant: ALL })
const clerk = plain({ name: 'clerk' })

async function startOf(who: AnyAgent, principal: Principal = ANN, options: RuntimeOptions = {}) {
  const files = memoryFiles({ owners: 'shared' })
  await using runtime = createRuntime({ files, model: model(), agents: [who], ...options })
  const outcome = await runtime
    .as(principal)
    .run(who.name, 'Go.')
    .result.then(
      ({ status }) => status,
      (error: unknown) => error,
    )
  return { outcome, kept: (await runtime.runs()).length }
}

describe('agents that start programs', () => {
  test.each<[string, () => AnyAgent | Promise<AnyAgent>]>([
    ['a shell', () => lead],
    ['a shell for one program', () => plain({ tools: { shell }, grant: { use: ['tool:*', 'exec:git *'] } })],
    ['a shell, if a person allows it', () => plain({ tools: { shell }, grant: { use: ['tool:*'], ask: ['exec:*'] } })],
    ['an MCP server that is a program', () => plain({ sources: { odd: mcpServer({ command: 'odd' }) }, grant: ALL })],
    ['a subagent with a shell', () => plain({ subagents: { lead }, grant: { ...ALL, delegate: ALL.use ?? [] } })],
    ['subagents of files', () => plain({ tools: openSubagents({ discover: true }), grant: ALL })],
    [
      'a recipe with checks',
      async () => {
        const checked = recipe(
          'prompt: Go.\nextensions: []\nretry:\n  max_retries: 1\n  checks:\n    - {type: shell, command: "true"}\n',
        )
        return (await recipeAgent(checked, { grant: ALL })) as AnyAgent
      },
    ],
  ])('an agent with %s is started by no other principal, and nothing is recorded', async (_, make) => {
    const who = await make()
    const { outcome, kept } = await startOf(who)

    expect(isLegateError(outcome, 'programs_untrusted'), String(outcome)).toBe(true)
    expect((outcome as Error).message).toMatch(CHOICES)
    expect((outcome as Error).message).toContain(`"${who.name}"`)
    expect(kept).toBe(0)
    expect((await startOf(who, ANN, { trustPrograms: true })).kept).toBe(1)
    expect((await startOf(who, LOCAL_PRINCIPAL)).kept).toBe(1)
  })

  test.each<[string, () => AnyAgent, Partial<Principal>?]>([
    ['tools of your own', () => plain({ tools: { mine: tool({ description: 'd', input: {}, execute: () => 1 }) } })],
    ['a shell without a rule for programs', () => plain({ tools: { shell } })],
    ['a shell that its grant denies', () => plain({ tools: { shell }, grant: { ...ALL, deny: ['exec:*'] } })],
    ['a shell that the token denies', () => lead, { grant: { deny: ['exec:*'] } }],
    ['an MCP server elsewhere', () => plain({ sources: { odd: mcpServer({ url: 'https://odd.test/mcp' }) } })],
  ])('an agent with %s is started by everybody', async (_, make, more) => {
    const { outcome } = await startOf(make(), { ...ANN, ...more })
    expect(isLegateError(outcome, 'programs_untrusted'), String(outcome)).toBe(false)
  })

  test('whoever others made in the name of the person at this machine is not that person', async () => {
    const within: Principal = { id: 'ann', scopes: ['start', 'read', 'admin'], sees: ['local'] }
    const { outcome } = await startOf(lead, { id: 'local', scopes: ['start', 'read'], within })
    expect(outcome).toMatchObject({ code: 'programs_untrusted' })
  })

  test('the id of the person at this machine makes nobody that person, whoever says so', async () => {
    const named: Principal = { ...ANN, id: 'local' }
    expect((await startOf(lead, named)).outcome).toMatchObject({ code: 'programs_untrusted' })
    const runtime = openRuntime()
    const tokens = new Tokens(runtime.store.registry)
    const words = /the id "local" is the one of the person at this machine/
    await expect(tokens.make({ principal: named })).rejects.toThrow(words)
    const admin: Principal = { id: 'root', scopes: ['admin', 'start', 'read', 'history'], sees: 'all' }
    await expect(tokens.makeNarrower({ principal: admin, tokenId: null }, { principal: named })).rejects.toThrow(words)
    const answer = await handler(runtime, { authenticate: () => named, report: () => undefined })(
      new Request('http://localhost/v1'),
    )
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('scopes')])
    const own = { principal: { id: 'local', scopes: ['start' as const, 'read' as const] } }
    const made = await tokens.makeNarrower({ principal: LOCAL_PRINCIPAL, tokenId: null }, own)
    expect((await new Tokens(runtime.store.registry).principals()).map(isOfThisMachine)).toEqual([true])
    expect(made.info.principal.id).toBe('local')
  })

  test('the program itself starts them for an owner', async () => {
    const runtime = openRuntime({ files: memoryFiles({ owners: 'own' }) })
    expect((await runtime.run(lead, 'Go.', { owner: 'ann' }).result).status).toBe('completed')
  })

  test('a conversation of the person at this machine goes no further by the word of somebody else, in no way', async () => {
    const runtime = openRuntime({ agents: [lead], files: memoryFiles({ owners: 'shared' }) })
    const first = runtime.as(LOCAL_PRINCIPAL).run('lead', 'Go.')
    await first.result
    const ann = runtime.as({ ...ANN, sees: ['ann', 'local'] })
    const { conversationId } = first
    const conversation = await ann.conversation(conversationId)
    const said = await conversation.messagePage({})
    const ways = [
      () => ann.run('lead', 'On.', { conversationId }).result,
      () => conversation.history.rerun(said.at(-1)?.nodeId ?? ''),
      () => conversation.history.edit(said[0]?.nodeId ?? '', 'Other.'),
      () => conversation.history.fork(said[0]?.nodeId ?? ''),
    ]

    for (const way of ways) await expect(way()).rejects.toMatchObject({ code: 'programs_untrusted' })
    await runtime.as(LOCAL_PRINCIPAL).run('lead', 'On.', { conversationId }).result
  })

  test('a program that nobody saw coming is denied, also by a worker that trusts everybody', async () => {
    const started: string[] = []
    const sly = () =>
      agent({
        name: 'sly',
        instructions: '',
        model: obedient(),
        grant: ALL,
        tools: {
          own: tool({
            description: 'd',
            input: { type: 'object' },
            needs: () => ['exec:id'],
            execute: () => started.push('id'),
          }),
        },
      })
    const here = openRuntime({ agents: [sly()] })
    const { text } = await here.as(ANN).run('sly', JSON.stringify([['own', {}]])).result
    expect(text).toContain('trustPrograms denies exec:*')
    await here.run(sly(), JSON.stringify([['own', {}]])).result

    const file = path.join(tempFolder(), 'runs.db')
    const front = createRuntime({ store: sqliteStore(file), agents: [sly()], engine: { workers: 0 } })
    front.as(ANN).run('sly', JSON.stringify([['own', {}]]))
    await front.close()
    const worker = openRuntime({ store: sqliteStore(file), agents: [sly()], trustPrograms: true })
    const [run] = await worker.resume()

    expect((await run?.result)?.text).toContain('trustPrograms denies exec:*')
    expect(started).toEqual(['id'])
  })
})

describe('a server', () => {
  async function shop(options: RuntimeOptions = {}) {
    const runtime = openRuntime({
      agents: [lead, clerk],
      files: diskFiles({ workspace: tempFolder(), owners: 'shared' }),
      ...options,
    })
    const tokens = new Tokens(runtime.store.registry)
    const open = async (more: ServeOptions = {}): Promise<Server> => {
      const server = await serve(runtime, { port: 0, localTokenFile: path.join(tempFolder(), 't'), ...more })
      onTestFinished(() => server.close())
      return server
    }
    return { runtime, tokens, open }
  }

  test('does not start where a token of others or a login reaches such an agent, and names them with all choices', async () => {
    const { tokens, open } = await shop()
    await tokens.make({ principal: ANN })
    await tokens.make({ principal: { id: 'bob', scopes: ['read'] } })
    const refused = /lead \(ann\)\..*--trust-programs.*trustPrograms: true.*--agents.*--grant-deny 'exec:\*'/s

    await expect(open()).rejects.toMatchObject({ code: 'programs_untrusted', message: expect.stringMatching(refused) })
    const other = await shop()
    const authenticate = () => null
    await expect(other.open({ authenticate })).rejects.toThrow('lead (whoever logs in)')
    const oidc = { issuer: 'https://login.test', audience: 'legate' }
    await expect(other.open({ oidc })).rejects.toThrow('lead (whoever logs in)')
    await expect(other.open()).resolves.toBeDefined()
  })

  test.each<[string, Partial<Principal>, RuntimeOptions?, number?]>([
    ['may start other agents only', { agents: ['clerk'] }],
    ['denies programs', { grant: { deny: ['exec:*'] } }],
    ['starts nothing', { scopes: ['read'] }],
    ['has expired', {}, {}, 1],
    ['is trusted', {}, { trustPrograms: true }],
    ['meets a runtime that denies programs', {}, { grant: { deny: ['exec:*'] } }],
  ])('starts where the only token %s', async (_, more, options, expiresAt = null as never) => {
    const { tokens, open } = await shop(options)
    await tokens.make({ principal: { ...ANN, ...more }, expiresAt })
    await expect(open()).resolves.toBeDefined()
  })

  test('refuses such a start with a token that was made while it runs, and says why', async () => {
    const { open } = await shop()
    const { url, token = '' } = await open()
    const ask = (secret: string, to: string, body: unknown) =>
      fetch(url + to, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const made = await ask(token, '/v1/tokens', { principal: ANN })
    const anns = ((await made.json()) as { token: string }).token
    const refused = await ask(anns, '/v1/runs?wait=20', { agent: 'lead', input: 'Go.' })

    expect([refused.status, await refused.json()]).toEqual([
      422,
      expect.objectContaining({ code: 'programs_untrusted', detail: expect.stringMatching(CHOICES) }),
    ])
    expect((await ask(anns, '/v1/runs?wait=20', { agent: 'clerk', input: 'Go.' })).status).toBeLessThan(300)
    expect((await ask(token, '/v1/runs?wait=20', { agent: 'lead', input: 'Go.' })).status).toBeLessThan(300)
  })
})
