// Runs an agent whose server never answers a call, says that the call has begun, and waits to be killed.
import { agent, createRuntime } from 'legate'
import { mcpServer } from 'legate/mcp'
import { scriptedModel } from 'legate/testing'

const [server = '', word = ''] = process.argv.slice(2)
const who = agent({
  name: 'who',
  instructions: '',
  model: scriptedModel([{ calls: [{ name: 'odd__never', input: {} }] }]),
  sources: { odd: mcpServer({ command: 'node', args: [server, 'chatty', word] }) },
  grant: { use: ['tool:*', 'exec:node *'] },
})
for await (const { type } of createRuntime().run(who, 'go')) if (type === 'progress') process.stdout.write('ready\n')
