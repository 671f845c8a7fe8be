// Calls an agent as a tool of MCP: of a process that speaks over stdio, and of a server that speaks HTTP.
import { agent, createRuntime } from 'legate'
import { mcpServer } from 'legate/mcp'
import { serve } from 'legate/server'
import { scriptedModel } from 'legate/testing'
import { clerk } from './agents.mjs'

const runtime = createRuntime({ agents: [clerk] })
const server = await serve(runtime, { port: 0, localTokenFile: 'serve.token' })
const legate = ['node_modules/legate/dist/cli/main.js', 'mcp', 'agents.mjs', '--store', 'offered.db']
const sources = {
  stdio: mcpServer({ command: 'node', args: legate }),
  http: mcpServer({ url: `${server.url}/mcp`, headers: { authorization: `Bearer ${server.token}` } }),
}
for (const [name, source] of Object.entries(sources)) {
  const caller = agent({
    name: 'caller',
    instructions: 'You ask the clerk.',
    sources: { [name]: source },
    grant: { use: ['tool:*', 'exec:node *', 'net:127.0.0.1'] },
    model: scriptedModel(({ messages }) => {
      const said = JSON.stringify(messages.at(-1))
      return said.includes('Good morning.')
        ? 'It greets.'
        : { calls: [{ name: `${name}__clerk`, input: { message: 'Hello' } }] }
    }),
  })
  const { text, error } = await runtime.run(caller, 'Go.').result
  console.log(name, error?.message ?? text)
}
await server.close()
await runtime.close()
