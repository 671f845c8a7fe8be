// A host hands work to the built-in worker. The worker uses files as far as the host passes them on, knows what the host
// has found so far, and its result says which tools it used.

import assert from 'node:assert/strict'
import { agent, createRuntime, tool } from 'legate'
import { generalWorker } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { memoryFiles } from 'legate/tools'

/** Makes these calls, one after the other, and then says what came of the last one. */
const script =
  (...calls: readonly { name: string; input: { [key: string]: string } }[]): Script =>
  ({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    const next = calls[results.length]
    return next === undefined ? (results.at(-1) ?? 'Nothing to do.') : { calls: [next] }
  }

const path = '/workspace/summary.md'
// Real models go here.
const workerModel = scriptedModel(
  script(
    { name: 'write_file', input: { path, content: 'QUIC is used by 31 % of sites.' } },
    { name: 'delete_file', input: { path } },
    { name: 'get_file_info', input: { path } },
  ),
)
const hostModel = scriptedModel(
  script({ name: 'search', input: { q: 'QUIC' } }, { name: 'work', input: { task: 'Write the summary.' } }),
)

const found = { description: 'Searches.', input: { type: 'object' }, execute: () => 'QUIC: 31 % of sites.' }
const host = agent({
  name: 'host',
  instructions: 'You find things out and have them written up.',
  model: hostModel,
  tools: { search: tool(found) },
  grant: { use: ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/**'] },
  subagents: {
    // It may write, but nothing may be deleted; and it is told the host's conversation.
    work: {
      agent: generalWorker({ model: workerModel }),
      briefing: 'fork',
      grant: { use: ['tool:*', 'file.*:/workspace/**'], deny: ['file.delete:**'] },
    },
  },
})
const files = memoryFiles()
const runtime = createRuntime({ files })
const run = runtime.run(host, 'Have a summary of QUIC written.')
const { text, conversationId } = await run.result
const nodes = (await runtime.store.tree(conversationId)).nodesOf(run.id)
const metadata = nodes.findLast(({ kind }) => kind === 'task')?.output.metadata?.['response_metadata']
console.log(text, metadata)
await runtime.close()
assert.deepEqual(metadata, { tool_trace: ['write_file', 'delete_file', 'get_file_info'] })
assert.equal(await files.open({ use: ['file.read:**'] }).readText(path), 'QUIC is used by 31 % of sites.')
assert.match(JSON.stringify(workerModel.requests[0]?.messages), /\[result of search\] QUIC: 31 % of sites/)
