// Agents see files under logical paths. A host that writes can have a child that only reads, by its grant alone.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { agent, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { diskFiles, fileTools } from 'legate/tools'

const folder = mkdtempSync(path.join(tmpdir(), 'legate-example-'))
const files = diskFiles({ workspace: path.join(folder, 'out'), internal: path.join(folder, 'internal') })
writeFileSync(path.join(folder, 'internal/keys.txt'), 'secret')

const checker = agent({
  name: 'checker',
  description: 'Checks a report.',
  instructions: 'You check.',
  tools: fileTools(),
  grant: { use: ['tool:*', 'file.*:**'] }, // it would like to have everything
  // A real model goes here.
  model: scriptedModel(({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    if (results.length > 0) return results.join('\n')
    return {
      calls: [
        { name: 'read_text_file', input: { path: '/workspace/report.md', with_header: false } },
        { name: 'write_file', input: { path: '/workspace/report.md', content: 'All is well.' } },
        { name: 'read_text_file', input: { path: '/internal/keys.txt' } },
      ],
    }
  }),
})

const writer = agent({
  name: 'writer',
  instructions: 'You write reports.',
  tools: fileTools(),
  subagents: { check: checker },
  grant: { use: ['tool:*', 'agent:*', 'file.*:/workspace/**'], delegate: ['tool:*', 'file.read:/workspace/**'] },
  model: scriptedModel([
    { calls: [{ name: 'write_file', input: { path: '/workspace/report.md', content: 'Two plus two is five.' } }] },
    { calls: [{ name: 'check', input: { message: 'Check it.' } }] },
    'Checked.',
  ]),
})

const runtime = createRuntime({ files })
let checked = ''
for await (const event of runtime.run(writer, 'Report.')) {
  if (event.type === 'tool-result' && event.tool === 'check') checked = String(event.content)
}
await runtime.close()
console.log(checked)
assert.match(checked, /line1: Two plus two is five\./)
assert.match(checked, /no rule of writer allows file\.write:\/workspace\/report\.md/)
assert.match(checked, /no rule of writer allows file\.read:\/internal\/keys\.txt/)
assert.equal(readFileSync(path.join(folder, 'out/report.md'), 'utf8'), 'Two plus two is five.')
rmSync(folder, { recursive: true })
