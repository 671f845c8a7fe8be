// Agents that work with files and remember, as a user's module. Their model makes the calls that its message lists as JSON.

import { agent } from 'legate'
import { mcpServer } from 'legate/mcp'
import { scriptedModel } from 'legate/testing'
import { developerTools, memoryTools } from 'legate/tools'

const model = scriptedModel(({ messages }) => {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const calls = JSON.parse(String(messages[at].content))
  const results = messages.slice(at + 1).flatMap((one) => (one.role === 'tool' ? [String(one.content)] : []))
  const [name, input] = calls[results.length] ?? []
  return name === undefined ? JSON.stringify(results) : { calls: [{ name, input }] }
})

const server = process.env.LEGATE_TEST_SERVER ?? ''
const use = ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/**', 'exec:*']

export const coder = agent({
  name: 'coder',
  instructions: 'You work.',
  model,
  tools: { ...developerTools(), ...memoryTools() },
  sources: server === '' ? {} : { odd: mcpServer({ command: 'node', args: [server, 'x'] }) },
  grant: { use, ask: ['file.write:/workspace/asked/**'] },
})

export const keeper = agent({ name: 'keeper', instructions: 'You remember.', model, tools: memoryTools() })
