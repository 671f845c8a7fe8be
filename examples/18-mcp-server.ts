// Tools of an MCP server: started under the grant, shared with a subagent, asked for when they change, ended with the run.
// Its server is a package of its own: npm i @modelcontextprotocol/server-filesystem
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { agent, createRuntime } from 'legate'
import { mcpServer } from 'legate/mcp'
import { scriptedModel } from 'legate/testing'

const require = createRequire(import.meta.url)
const server = path.join(
  path.dirname(require.resolve('@modelcontextprotocol/server-filesystem/package.json')),
  'dist/index.js',
)
const folder = mkdtempSync(path.join(tmpdir(), 'legate-example-'))
const files = mcpServer({ command: 'node', args: [server, folder] })

const writer = agent({
  name: 'writer',
  instructions: 'You write notes.',
  sources: { files },
  grant: { use: ['tool:*', 'exec:node *'] },
  model: scriptedModel([
    { calls: [{ name: 'files__write_file', input: { path: path.join(folder, 'note.txt'), content: 'Hello.' } }] },
    'Written.',
  ]),
})

const host = agent({
  name: 'host',
  instructions: 'You delegate, and check.',
  sources: { files },
  subagents: { write: writer },
  grant: {
    use: ['tool:files__read_*', 'agent:*', 'exec:node *'],
    delegate: ['tool:*', 'exec:node *'],
    ask: ['tool:files__write_*'],
  },
  model: scriptedModel([
    { calls: [{ name: 'write', input: { message: 'Write a note.' } }] },
    { calls: [{ name: 'files__read_text_file', input: { path: path.join(folder, 'note.txt') } }] },
    'It says hello.',
  ]),
})

const runtime = createRuntime()
const run = runtime.run(host, 'Have a note written.')
for await (const event of run) {
  if (event.type === 'tool-result') console.log(`${event.path.join(' > ')}: ${event.tool} = ${event.content}`)
  if (event.type !== 'approval-request' || event.nodeId === null) continue
  console.log(`${event.path.join(' > ')} wants ${event.request}`)
  await runtime.answer(event.nodeId, { allow: true, by: 'ann' })
}
await runtime.close()

assert.equal((await run.result).text, 'It says hello.')
assert.equal(readFileSync(path.join(folder, 'note.txt'), 'utf8'), 'Hello.')
