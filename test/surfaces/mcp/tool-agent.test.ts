// Plain tools, offered over MCP as agents that call them once.

import { type Principal, tool } from 'legate'
import { toolAgent } from 'legate/mcp-server'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { startServer } from '../../server/support/server.ts'
import { connected, type Forms, newClient, textIn } from './support/clients.ts'

const published: string[] = []
const publish = tool({
  description: 'Publishes.',
  input: z.object({ what: z.string().min(2) }),
  execute: ({ what }) => {
    published.push(what)
    return `published ${what}`
  },
})
const add = tool({
  description: 'Adds.',
  input: z.object({ a: z.number(), b: z.number().default(1) }),
  output: z.object({ sum: z.number() }),
  effect: 'pure',
  execute: ({ a, b }) => ({ sum: a + b }),
})
const fail = tool({ description: 'Fails.', input: z.object({}), execute: () => Promise.reject(new Error('It burns.')) })

const agents = [
  toolAgent('add', add),
  toolAgent('publish', publish),
  toolAgent('fail', fail),
  toolAgent('ask_first', publish, { ask: true }),
]
const ANN: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'approve'] }

async function callsAs(principal: Principal, forms?: Forms) {
  published.length = 0
  const setting = await startServer({}, { agents })
  onTestFinished(() => setting[Symbol.asyncDispose]())
  const client = await connected(setting.server.url, await setting.tokenFor(principal), newClient(forms))
  const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args })
  return { client, call, runtime: setting.runtime }
}

test('a tool has its own schemas, and its result its value; the call is recorded', async () => {
  const { client, call, runtime } = await callsAs(ANN)
  const { tools } = await client.listTools()
  expect(tools.find(({ name }) => name === 'add')).toMatchObject({
    description: 'Adds.',
    inputSchema: { properties: { a: { type: 'number' } } },
    outputSchema: { properties: { sum: { type: 'number' } } },
  })
  expect((await call('add', { a: 2, b: 3 })).structuredContent).toEqual({ sum: 5 })
  expect((await call('add', { a: 2 })).structuredContent).toEqual({ sum: 3 })
  expect(textIn(await call('publish', { what: 'news' }))).toContain('published news')
  const runs = await runtime.runs()
  expect(runs.map(({ agent, owner }) => [agent, owner])).toEqual([
    ['publish', 'ann'],
    ['add', 'ann'],
    ['add', 'ann'],
  ])
})

test('what fails, does not fit, or is not allowed to the caller is an error that says so (I1)', async () => {
  const { call } = await callsAs({ ...ANN, grant: { deny: ['tool:publish'] } })
  const results = await Promise.all([
    call('fail', {}),
    call('publish', { what: 'x' }),
    call('publish', { what: 'news' }),
  ])
  expect(results.map(({ isError }) => isError)).toEqual([true, true, true])
  expect(textIn(results[0] ?? {})).toContain('It burns.')
  expect(textIn(results[2] ?? {})).toContain('not allowed')
  expect(published).toEqual([])
})

test('a person is asked first where the tool wants it', async () => {
  const asked: string[] = []
  const { call } = await callsAs(ANN, (message) => {
    asked.push(message)
    return { action: 'accept', content: { decision: 'allow_once' } }
  })
  expect(textIn(await call('ask_first', { what: 'news' }))).toContain('published news')
  expect([asked.length, published]).toEqual([1, ['news']])
})
