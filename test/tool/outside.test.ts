import { type AnyAgent, agent, createRuntime, type Principal, type Run, type Runtime, tool } from 'legate'
import { handler } from 'legate/server'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { QUICK, startProcess } from '../support/process.ts'
import { lasting, stores } from '../support/stores.ts'

const ANN: Principal = { id: 'ann', scopes: ['start', 'read'] }

function shop(definition: { readonly by?: string; readonly timeoutMs?: number; readonly approval?: 'ask' } = {}) {
  const pick = tool({
    description: 'Lets the person pick a colour.',
    input: z.object({ colours: z.array(z.string()) }),
    output: z.object({ colour: z.string() }),
    execute: 'outside',
    ...definition,
  })
  const model = scriptedModel(({ messages }) => {
    const result = messages.find(({ role }) => role === 'tool')
    return result === undefined
      ? { calls: [{ name: 'pick', input: { colours: ['red', 'blue'] } }] }
      : `Read: ${JSON.stringify(result.content)}`
  })
  return agent({ name: 'shop', instructions: 'x', model, tools: { pick } })
}

function waiting(runtime: Pick<Runtime, 'questions'>) {
  return first(() => runtime.questions({ outside: true }))
}

async function first<T>(list: () => Promise<readonly T[]>): Promise<T> {
  for (;;) {
    const [found] = await list()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe.each(stores)('a tool that is executed outside, with a store in %s', (_, create) => {
  function open(host: AnyAgent) {
    const rows = create()
    const runtime = createRuntime({ store: rows.open(), agents: [host] })
    onTestFinished(async () => {
      await runtime.close()
      await rows.drop()
    })
    return runtime
  }

  test('waits as a row until its owner gives the result, which the model reads', async () => {
    const runtime = open(shop())
    const ann = runtime.as(ANN)
    const run = ann.run('shop', 'A shirt.')
    const asked = await waiting(runtime)

    expect(asked).toMatchObject({ to: 'outside', text: 'pick({"colours":["red","blue"]})', path: ['shop'] })
    expect(await runtime.questions()).toEqual([])
    expect((await runtime.why(run.id)).text).toContain('executed elsewhere')
    await expect(ann.answer(asked.nodeId, { result: { colour: 'red' } } as never)).rejects.toThrow('give `seen`')
    await expect(ann.answer(asked.nodeId, { result: { colour: 'red' }, seen: '0'.repeat(64) })).rejects.toMatchObject({
      code: 'conflict',
      details: { request: { seen: asked.seen } },
    })
    await ann.answer(asked.nodeId, { result: { colour: 'red' }, seen: asked.seen })
    expect((await run.result).text).toBe('Read: "{\\"colour\\":\\"red\\"}"')
    const types = (await eventsOf(run)).filter(({ nodeId }) => nodeId === asked.nodeId).map(({ type }) => type)
    expect(types).toEqual(['tool-call', 'question', 'answer', 'tool-result'])
    const { seen } = asked
    await expect(ann.answer(asked.nodeId, { result: { colour: 'blue' }, seen })).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  test('takes a result only as it was promised, and stays open for a better one; a failure has any form', async () => {
    const runtime = open(shop())
    const run = runtime.run(shop(), 'A shirt.', { owner: 'ann' })
    const { nodeId } = await waiting(runtime)

    await expect(runtime.answer(nodeId, { result: 'red' })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(runtime.answer(nodeId, { text: 'red' })).rejects.toThrow('give { result }')
    await expect(runtime.answer(nodeId, { result: 10n as never })).rejects.toThrow('not JSON')
    await runtime.answer(nodeId, { result: 'The page was closed.', isError: true })
    expect((await run.result).text).toContain('The page was closed.')
  })

  test('nobody but the owner, or the principal that the tool names, gives its result (I12)', async () => {
    const runtime = open(shop({ by: 'robot' }))
    const run = runtime.as({ ...ANN, scopes: ['start', 'read', 'approve'] }).run('shop', 'A shirt.')
    const { nodeId, seen } = await waiting(runtime)
    const word = { result: { colour: 'red' }, seen }
    const unknown = nodeId.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    const foreign = runtime.as({ id: 'bob', scopes: ['start', 'read', 'approve'] })

    const messageOf = async (id: string) => (await foreign.answer(id, word).catch((error: Error) => error))?.message
    expect((await messageOf(nodeId))?.replace(nodeId, 'X')).toBe((await messageOf(unknown))?.replace(unknown, 'X'))
    const owner = runtime.as(ANN)
    await expect(owner.answer(nodeId, word)).rejects.toMatchObject({ code: 'denied' })
    const reader = runtime.as({ id: 'robot', scopes: ['read'], sees: ['ann'] })
    await expect(reader.answer(nodeId, word)).rejects.toMatchObject({ code: 'denied' })
    await runtime.as({ id: 'robot', scopes: ['start'], sees: ['ann'] }).answer(nodeId, word)
    expect((await run.result).status).toBe('completed')
  })

  test('is allowed before it is asked for, like every call', async () => {
    const runtime = open(shop({ approval: 'ask' }))
    const run = runtime.run(shop({ approval: 'ask' }), 'A shirt.')
    const approval = await first(() => runtime.approvals())
    expect(await runtime.questions({ outside: true })).toEqual([])
    await runtime.answer(approval.nodeId, { allow: true })
    await runtime.answer((await waiting(runtime)).nodeId, { result: { colour: 'blue' } })
    expect((await run.result).text).toContain('blue')
  })

  test('is cancelled with its run', async () => {
    const runtime = open(shop())
    const run = runtime.run(shop(), 'A shirt.')
    const { nodeId } = await waiting(runtime)
    await run.cancel()

    expect((await run.result).status).toBe('cancelled')
    await expect(runtime.answer(nodeId, { result: { colour: 'red' } })).rejects.toMatchObject({ code: 'conflict' })
  })
})

test('a result is checked by the schema of the tool too: rules that JSON Schema cannot say', async () => {
  const output = z.object({ amount: z.number().refine((amount) => amount <= 100, 'too much') })
  const pay = tool({ description: 'x', input: z.object({}), output, execute: 'outside' })
  const model = scriptedModel([{ calls: [{ name: 'pay', input: {} }] }, 'Paid.'])
  const payer = agent({ name: 'payer', instructions: 'x', model, tools: { pay } })
  const runtime = createRuntime({ agents: [payer] })
  onTestFinished(() => runtime.close())
  const run = runtime.run(payer, 'Pay.')
  const { nodeId } = await waiting(runtime)

  await expect(runtime.answer(nodeId, { result: { amount: 1e6 } })).rejects.toThrow('too much')
  await expect(runtime.answer(nodeId, { result: '{"amount":1000}' })).rejects.toThrow('Nothing was answered')
  await runtime.answer(nodeId, { result: '{"amount":5}' })
  expect((await run.result).text).toBe('Paid.')
})

test('expires: the model reads that nobody executed it', async () => {
  const clock = fakeClock()
  const runtime = createRuntime({ clock })
  onTestFinished(() => runtime.close())
  const run = runtime.run(shop({ timeoutMs: 60_000 }), 'A shirt.')
  await waiting(runtime)
  await clock.advance(61_000)

  expect((await run.result).text).toContain('Nobody executed it in time.')
})

test.each(lasting)('survives its process, with a store in %s', async (_, create) => {
  const rows = create()
  const killed = startProcess(rows, { agents: [shop()], engine: QUICK, mayFail: true })
  const run = killed.runtime.run(shop(), 'A shirt.')
  run.result.catch(() => undefined)
  const { nodeId } = await waiting(killed.runtime)
  await killed.kill()
  const second = startProcess(rows, { agents: [shop()], engine: QUICK })
  onTestFinished(async () => {
    await second.runtime.close()
    await rows.drop()
  })
  const [open] = await second.runtime.resume()
  await second.runtime.answer(nodeId, { result: { colour: 'red' } })

  expect((await open?.result)?.text).toContain('red')
})

test('over HTTP the result is a POST of its owner', async () => {
  const runtime = createRuntime({ agents: [shop()] })
  onTestFinished(() => runtime.close())
  const serve = handler(runtime, { authenticate: ({ headers }) => ({ ...ANN, id: headers.get('x-user') ?? 'nobody' }) })
  const post = (path: string, user: string, body: object) =>
    serve(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { host: 'localhost', 'content-type': 'application/json', 'x-user': user },
        body: JSON.stringify(body),
      }),
    )
  const { runId } = (await (await post('/v1/runs', 'ann', { agent: 'shop', input: 'A shirt.' })).json()) as {
    runId: string
  }
  const { nodeId, seen } = await waiting(runtime)
  const result = { colour: 'red' }

  expect((await post(`/v1/calls/${nodeId}/result`, 'bob', { result, seen })).status).toBe(404)
  expect((await post(`/v1/calls/${nodeId}/result`, 'ann', { result: 5, seen })).status).toBe(400)
  expect((await post(`/v1/calls/${nodeId}/result`, 'ann', { result })).status).toBe(400)
  expect((await post(`/v1/calls/${nodeId}/result`, 'ann', { result, seen: '0'.repeat(64) })).status).toBe(409)
  expect((await post(`/v1/calls/${nodeId}/result`, 'ann', { result, seen })).status).toBe(204)
  expect((await post(`/v1/calls/${nodeId}/result`, 'ann', { result, seen })).status).toBe(409)
  expect((await (await runtime.attach(runId)).result).status).toBe('completed')
})

test.each([
  [{ by: 'ann', execute: () => 1 }, 'by is for tools that are executed outside'],
  [{ execute: 'outside', effect: 'pure' }, 'has no effect here'],
  [{ execute: 'elsewhere' }, 'execute'],
])('refuses %j', (definition, message) => {
  expect(() => tool({ description: 'x', input: { type: 'object' }, ...definition } as never)).toThrow(message)
})

async function eventsOf(run: Run) {
  const events = []
  for await (const event of run) events.push(event)
  return events
}
