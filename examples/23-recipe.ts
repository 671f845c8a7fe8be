// A recipe with a sub-recipe and a check runs as it is. Its children may do no more than the recipe was given, the answer
// counts only when the check passes, and all of it is in the rows: another process could go on without the file.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createRuntime } from 'legate'
import { recipeAgent } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { diskFiles } from 'legate/tools'

const cwd = mkdtempSync(path.join(tmpdir(), 'legate-recipe-'))
writeFileSync(
  path.join(cwd, 'report.yaml'),
  `title: Report
description: Writes a report about a topic.
prompt: "Write report.md about {{ topic }}."
parameters: [{ key: topic, input_type: string, requirement: required, description: what about }]
extensions: [{ type: builtin, name: developer }]
sub_recipes: [{ name: research, path: research.yaml, values: { topic: "{{ topic }}" } }]
retry: { max_retries: 2, checks: [{ type: shell, command: "grep -q QUIC report.md" }] }
`,
)
writeFileSync(
  path.join(cwd, 'research.yaml'),
  `title: Research
description: Finds out about a topic.
prompt: "Find out about {{ topic }}."
extensions: []
parameters: [{ key: topic, input_type: string, requirement: required, description: what about }]
`,
)

// A real model goes here, or into the recipe: settings: { goose_provider: ..., goose_model: ... }.
const model = scriptedModel(({ path: agents, messages }) => {
  if (agents.length > 1) return 'QUIC runs over UDP.'
  const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
  if (results.length === 0) return { calls: [{ name: 'subagent', input: { subrecipe: 'research' } }] }
  // The first try forgets to write the file: the check fails, and all begins again.
  if (results.length === 1 && model.requests.length > 4) {
    return { calls: [{ name: 'write_file', input: { path: 'report.md', content: results[0] ?? '' } }] }
  }
  return 'The report is written.'
})

const runtime = createRuntime({ model, files: diskFiles({ workspace: cwd }) })
const use = ['tool:*', 'agent:*', 'model:*', 'file.*:/workspace/**', 'exec:grep *']
const report = await recipeAgent(path.join(cwd, 'report.yaml'), { parameters: { topic: 'QUIC' }, cwd, grant: { use } })
const run = runtime.run(report)
for await (const event of run) if (event.type === 'retry') console.log('Again:', event.error)
const { status, children } = await run.result
await runtime.close()

assert.deepEqual([status, children], ['completed', 2])
assert.equal(readFileSync(path.join(cwd, 'report.md'), 'utf8'), 'QUIC runs over UDP.')
rmSync(cwd, { recursive: true })
