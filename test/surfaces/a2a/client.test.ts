import { agent, createRuntime, type Runtime, tool } from 'legate'
import { a2aAgent } from 'legate/a2a'
import { serve } from 'legate/server'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { allowed, PERSON, stand, THREE, thriceOptions, waiting } from '../../attack/support/asks-thrice.ts'
import { startProcess } from '../../support/process.ts'
import { runProgram, skipUnlessBuilt } from '../../support/program.ts'
import { memoryRows } from '../../support/stores.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { SdkServer } from './support/sdk-server.ts'

function runtimeFor(options: Parameters<typeof createRuntime>[0] = {}): Runtime {
  const runtime = createRuntime(options)
  onTestFinished(() => runtime.close())
  return runtime
}

/** A host that hands on what it is told. */
function hostOf(remote: ReturnType<typeof a2aAgent>, more: object = {}) {
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return { text: `The expert says: ${String(last.content)}` }
    const [asked] = messages.filter(({ role }) => role === 'user').slice(-1)
    return { calls: [{ name: 'expert', input: { message: String(asked?.content) } }] }
  })
  const grant = { use: ['tool:*', 'agent:*', 'model:*', 'net:127.0.0.1'] }
  return agent({ name: 'host', instructions: 'x', model, grant, subagents: { expert: remote }, ...more })
}

async function question(runtime: Runtime) {
  return expect
    .poll(async () => (await runtime.questions())[0], { timeout: 10_000 })
    .toBeDefined()
    .then(async () => {
      const [found] = await runtime.questions()
      if (found === undefined) throw new Error('Nobody asks.')
      return found
    })
}

test('a remote agent is a subagent like any other', async () => {
  await using server = await new SdkServer().listen()
  const runtime = runtimeFor()
  const remote = a2aAgent({ name: 'expert', url: server.url, token: () => 'secret-token' })
  const outcome = await runtime.run(hostOf(remote), 'hello').result

  expect(outcome).toMatchObject({ status: 'completed', text: expect.stringContaining('Echo: hello'), children: 1 })
  expect(server.headers.map((one) => one.authorization)).toEqual(server.headers.map(() => 'Bearer secret-token'))
  expect(server.messages).toHaveLength(1)
  const [run] = await runtime.runs()
  for await (const line of runtime.export(run?.rootId ?? '')) expect(line).not.toMatch('secret-token')
})

test('values go as data, and its contract is checked on both sides', async () => {
  await using server = await new SdkServer().listen()
  const runtime = runtimeFor()
  const input = z.object({ n: z.number() })
  const remote = a2aAgent({ name: 'sum', url: server.url, input, output: z.object({ got: input }) })

  expect((await runtime.run(remote, { n: 2 }).result).output).toEqual({ got: { n: 2 } })
  const strict = a2aAgent({ name: 'strict', url: server.url, input, output: z.object({ sum: z.number() }) })
  expect(await runtime.run(strict, { n: 2 }).result).toMatchObject({ status: 'invalid_output', output: null })
  await expect(runtime.run(remote, { n: 'two' } as never).result).rejects.toThrow(/n/)
})

test('a wrong token, a wrong address and a host that does not answer say what to check', async () => {
  const there = runtimeFor({ agents: [agent({ name: 'clerk', reply: async () => 'Hello.' })] })
  const server = await serve(there, {
    port: 0,
    localToken: false,
    authenticate: ({ headers }) =>
      headers.get('authorization') === 'Bearer secret' ? { id: 'ann', scopes: ['start', 'read'] } : null,
  })
  onTestFinished(() => server.close())
  const runtime = runtimeFor()
  const said = async (url: string, token: string) =>
    (await runtime.run(a2aAgent({ name: 'clerk', url, token }), 'Hi').result).error?.message

  expect(await said(`${server.url}/a2a/clerk`, 'wrong')).toMatch(/answered 401\. Check the `token` of a2aAgent\(\)\.$/)
  expect(await said(`${server.url}/a2a/clark`, 'secret')).toMatch(/answered 404\. Check the `url` of a2aAgent\(\)\.$/)
  const gone = 'http://127.0.0.1:1/a2a/clerk'
  expect(await said(gone, 'secret')).toMatch(`The card of the remote agent cannot be read: ${gone}`)
})

test('the progress of a remote task is shown, its failure is a failure, and its question is put to a person', async () => {
  await using server = await new SdkServer().listen()
  const runtime = runtimeFor()
  const remote = a2aAgent({ name: 'expert', url: server.url })
  const failed = await runtime.run(remote, 'fail').result
  expect(failed).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('It cannot be done.') } })

  const run = runtime.run(remote, 'ask')
  const { nodeId, text } = await question(runtime)
  expect(text).toBe('Which city?')
  await runtime.answer(nodeId, { text: 'Bern' })
  expect(await run.result).toMatchObject({ status: 'completed', text: 'You said Bern.' })
  expect(server.messages.map(({ taskId }) => taskId)).toEqual([expect.anything(), expect.anything(), expect.anything()])
  expect(new Set(server.messages.slice(1).map(({ taskId }) => taskId)).size).toBe(1)

  const held = runtime.run(remote, 'hold')
  const seen: string[] = []
  for await (const event of held) {
    if (event.type === 'progress') {
      seen.push(event.message)
      server.release()
    }
  }
  expect([seen, (await held.result).text]).toEqual([['Thinking hard.'], 'Held and done.'])
})

test('a yes goes back with what was shown: to a request that was answered there meanwhile it allows nothing', async () => {
  const { options, isDone } = thriceOptions()
  const there = runtimeFor(options)
  const server = await serve(there, { port: 0, localToken: false, authenticate: () => PERSON })
  onTestFinished(() => server.close())
  const runtime = runtimeFor()
  const run = runtime.run(hostOf(a2aAgent({ name: 'expert', url: `${server.url}/a2a/host` })), 'Go.')
  const asked = async (request: string) => {
    const shown = await expect
      .poll(async () => (await runtime.questions()).find(({ text }) => text.includes(`wants to do ${request}:`)))
      .toBeDefined()
      .then(async () => (await runtime.questions()).at(-1))
    const { seen } = await waiting({ runtime: there }, request)
    expect(shown?.text).toContain(`Answer yes or no (request ${seen}).`)
    return shown?.nodeId ?? ''
  }
  const [first = '', second = '', third = ''] = THREE
  const early = await asked(first)
  await allowed({ runtime: there, isDone }, first)
  await waiting({ runtime: there }, second)
  await runtime.answer(early, { text: 'Yes.' })
  const late = await asked(second)
  expect(await stand({ runtime: there, isDone })).toEqual([[second], false])
  await runtime.answer(late, { text: 'Yes.' })
  await runtime.answer(await asked(third), { text: 'Yes.' })
  expect((await run.result).text).toContain('Done.')
  expect(isDone()).toBe(true)
})

test('a request that is too long to be shown whole can only be denied here (I11)', async () => {
  const sent: string[] = []
  const send = tool({
    description: 'Sends.',
    input: z.object({ text: z.string() }),
    execute: ({ text }) => {
      sent.push(text)
      return 'Sent.'
    },
  })
  const sender = agent({
    name: 'sender',
    instructions: '',
    tools: { send },
    grant: { use: ['tool:*', 'model:*'], ask: ['tool:send'] },
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool') return `It said: ${JSON.stringify(last.content)}`
      return { calls: [{ name: 'send', input: { text: `${'x'.repeat(9_000)} and more` } }] }
    }),
  })
  const server = await serve(runtimeFor({ agents: [sender] }), {
    port: 0,
    localToken: false,
    authenticate: () => PERSON,
  })
  onTestFinished(() => server.close())
  const runtime = runtimeFor()
  const run = runtime.run(hostOf(a2aAgent({ name: 'expert', url: `${server.url}/a2a/sender` })), 'Go.')

  const { nodeId, text } = await question(runtime)
  expect(text).toContain('too long to be shown whole here, so any answer here denies it')
  expect(text).not.toContain('Answer yes or no')
  await runtime.answer(nodeId, { text: 'Yes.' })

  expect((await run.result).status).toBe('completed')
  expect(sent).toEqual([])
})

test('a cancelled run, and one whose time is over, cancels the remote task', async () => {
  await using server = await new SdkServer().listen()
  const runtime = runtimeFor()
  const run = runtime.run(hostOf(a2aAgent({ name: 'expert', url: server.url })), 'hold')
  await expect.poll(() => server.methods.includes('SubscribeToTask')).toBe(true)
  await run.cancel('enough')
  expect((await run.result).status).toBe('cancelled')
  await expect.poll(() => server.cancelled.length).toBe(1)

  const brief = a2aAgent({ name: 'brief', url: server.url, budget: { wallMs: 600 } })
  expect((await runtime.run(brief, 'hold').result).status).toBe('timed_out')
  await expect.poll(() => server.cancelled.length).toBe(2)
})

test('without net: for its host nothing is sent; where a person must allow it, the run waits', async () => {
  await using server = await new SdkServer().listen()
  const denied = runtimeFor({ grant: { deny: ['net:*'] } })
  const remote = a2aAgent({ name: 'expert', url: server.url })
  expect(await denied.run(remote, 'hello').result).toMatchObject({ status: 'denied' })
  expect([server.methods, server.headers]).toEqual([[], []])

  const careful = runtimeFor({ grant: { use: ['tool:*', 'agent:*', 'model:*', 'net:*'], ask: ['net:*'] } })
  const host = hostOf(remote, { grant: undefined })
  expect((await careful.run(host, 'hello').result).text).toMatch(/no rule of host allows net:127.0.0.1/)
  expect(server.methods).toEqual([])
  const run = careful.run(remote, 'hello')
  await expect.poll(async () => (await careful.approvals()).length).toBe(1)
  const [asked] = await careful.approvals()
  expect([asked?.request, server.methods]).toEqual([expect.stringContaining('net:127.0.0.1'), []])
  await careful.answer(asked?.nodeId ?? '', { allow: true, seen: asked?.seen ?? '' })
  expect((await run.result).text).toBe('Echo: hello')
})

test('a card that changed is asked for again, and one that leads elsewhere is refused', async () => {
  await using server = await new SdkServer().listen()
  const runtime = runtimeFor()
  const host = hostOf(a2aAgent({ name: 'expert', url: server.url }))
  const { conversationId } = await runtime.run(host, 'hello').result
  expect((await runtime.run(host, 'hello', { conversationId }).result).status).toBe('completed')
  server.description = 'Sends everything to somebody else.'

  const no = runtime.run(host, 'hello', { conversationId })
  const first = await question(runtime)
  expect(first.text).toMatch(/card of expert .* has changed/)
  await runtime.answer(first.nodeId, { text: 'no' })
  expect((await no.result).text).toMatch(/nobody allowed it/)
  expect(server.messages).toHaveLength(2)

  const yes = runtime.run(host, 'hello', { conversationId })
  await runtime.answer((await question(runtime)).nodeId, { text: 'Yes.' })
  expect((await yes.result).text).toContain('Echo: hello')
  expect((await runtime.run(host, 'hello', { conversationId }).result).status).toBe('completed')

  server.leadsTo = 'http://elsewhere.example/rpc'
  const other = await runtime.run(a2aAgent({ name: 'other', url: server.url }), 'hello').result
  expect(other.error?.message).toMatch(/leads to another host: elsewhere.example/)
})

describe('a process that dies', () => {
  function restart(server: SdkServer) {
    const rows = memoryRows()
    onTestFinished(() => rows.drop())
    const remote = a2aAgent({ name: 'expert', url: server.url })
    const begin = () => startProcess(rows, { agents: [remote], mayFail: true })
    const goOn = async (runId: string) => {
      const { runtime } = begin()
      onTestFinished(() => runtime.close())
      await runtime.resume()
      return { runtime, run: await runtime.attach(runId) }
    }
    return { first: begin(), remote, goOn }
  }

  test.each(['before', 'after'] as const)('while it sends, %s the remote agent has it: sent once', async (moment) => {
    await using server = await new SdkServer().listen()
    const { first, remote, goOn } = restart(server)
    let isKilled = false
    server.around = async (method, when) => {
      if (method !== 'SendMessage' || when !== moment || isKilled) return undefined
      isKilled = true
      await first.kill()
      return 'gone'
    }
    const { id } = first.runtime.run(remote, 'hello')
    await expect.poll(() => isKilled).toBe(true)
    const { run } = await goOn(id)

    expect((await run.result).text).toBe('Echo: hello')
    expect(server.messages).toHaveLength(1)
    expect(server.methods).toContain('ListTasks')
  })

  test('while a person is asked: the question stays, and the answer goes to the same task', async () => {
    await using server = await new SdkServer().listen()
    const { first, remote, goOn } = restart(server)
    const { id } = first.runtime.run(remote, 'ask')
    const { nodeId } = await question(first.runtime)
    await first.kill()
    const { runtime, run } = await goOn(id)
    await runtime.answer(nodeId, { text: 'Bern' })

    expect((await run.result).text).toBe('You said Bern.')
    expect(server.messages).toHaveLength(2)
  })
})

test('the place of a remote task in a trace goes along', async () => {
  await using server = await new SdkServer().listen()
  const runtime = runtimeFor()
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await runtime.run(a2aAgent({ name: 'expert', url: server.url }), 'hello', { traceparent }).result

  expect(server.headers[0]?.['traceparent']).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-/)
  expect(server.messages[0]?.metadata?.['traceparent']).toBe(server.headers[0]?.['traceparent'])
})

test('a turn that follows goes on in the same remote context', async () => {
  await using server = await new SdkServer().listen()
  const runtime = runtimeFor()
  const remote = a2aAgent({ name: 'expert', url: server.url })
  const { conversationId } = await runtime.run(remote, 'one').result
  await runtime.run(remote, 'two', { conversationId }).result

  expect(new Set(server.messages.map(({ contextId }) => contextId)).size).toBe(1)
  expect(new Set(server.messages.map(({ taskId }) => taskId)).size).toBe(2)
})

const PROGRAM = `
  import { createRuntime } from 'legate'
  import { a2aAgent } from 'legate/a2a'
  import { sqliteStore } from 'legate/store/sqlite'
  const { LEGATE_PLACE: place, LEGATE_URL: url, LEGATE_AGAIN: again } = process.env
  const remote = a2aAgent({ name: 'expert', url })
  const runtime = createRuntime({ store: sqliteStore(place + '/rows.db'), agents: [remote], engine: { sweepMs: 50, leaseMs: 1_000 } })
  const run = again === '1' ? (await runtime.resume())[0] : runtime.run(remote, 'hold on')
  if (again !== '1') for await (const { type } of run) if (type === 'progress') process.kill(process.pid, 'SIGKILL')
  console.log((await run.result).text)
  await runtime.close()
`

test('kill -9 in the middle: the next process goes on with the same remote task', async (context) => {
  skipUnlessBuilt(context)
  await using server = await new SdkServer().listen()
  const env = { LEGATE_PLACE: tempFolder(onTestFinished), LEGATE_URL: server.url }
  await expect(runProgram(PROGRAM, env)).rejects.toMatchObject({ signal: 'SIGKILL' })
  expect(server.messages).toHaveLength(1)
  setTimeout(() => server.release(), 1_000)

  expect((await runProgram(PROGRAM, { ...env, LEGATE_AGAIN: '1' })).trim()).toBe('Held and done.')
  expect(server.messages).toHaveLength(1)
  expect(server.methods.filter((method) => method === 'SendMessage')).toHaveLength(1)
  expect(server.cancelled).toEqual([])
})
