// Clients of the revision 2025-11-25 have a log: tools write into it, and warnings of runs stand in it.

import { agent, type Principal } from 'legate'
import { mcpServer } from 'legate/mcp'
import type { McpTool } from 'legate/mcp-server'
import { scriptedModel } from 'legate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { startServer } from '../../server/support/server.ts'
import { connected, newClient } from './support/clients.ts'

const noisy: McpTool = {
  name: 'noisy',
  description: 'Logs.',
  inputSchema: { type: 'object', properties: {} },
  call: async (_, { log }) => {
    await log('debug', 'small')
    await log('error', 'large')
    return { content: [] }
  },
}
/** Its server may not be started, so its runs warn. */
const poor = agent({
  name: 'poor',
  instructions: 'x',
  model: scriptedModel(() => 'Done.'),
  sources: { sums: mcpServer({ command: 'node', args: ['x.js'], required: false }) },
})
const ANN: Principal = { id: 'ann', scopes: ['start', 'read'] }

test.each([
  ['legacy', ['error: large', expect.stringContaining('warning: ')]],
  ['auto', []],
] as const)('a client of the kind %s hears what it wants to hear', async (mode, expected) => {
  const setting = await startServer({ mcp: { tools: [noisy] } }, { agents: [poor] })
  onTestFinished(() => setting[Symbol.asyncDispose]())
  const client = newClient(undefined, mode)
  const heard: string[] = []
  client.setNotificationHandler('notifications/message', ({ params }) => {
    heard.push(`${params.level}: ${String(params.data)}`)
  })
  await connected(setting.server.url, await setting.tokenFor(ANN), client)
  if (mode === 'legacy') await client.setLoggingLevel('warning')
  await client.callTool({ name: 'noisy', arguments: {} })
  await client.callTool({ name: 'poor', arguments: { message: 'Go.' } })
  expect(heard).toEqual(expected)
})
