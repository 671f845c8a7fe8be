import { agent } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

/** A key that says where something goes was taken for the right to look at it. */
test('GHSA-wcxr-59v9-rxr8: no name, key, title or id of another conversation opens it', async () => {
  const runtime = openRuntime()
  const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'my secret') })
  const victim = agent({
    name: 'victim',
    instructions: '',
    tools: { ...backgroundSubagents({ agent: child, wake: 'passive' }) },
    model: scriptedModel((request) =>
      resultsIn(request).length === 0
        ? { calls: [{ name: 'subagent_spawn', input: { name: 'Helper', prompt: 'work', title: 'main' } }] }
        : 'started',
    ),
  })
  const run = runtime.run(victim, 'go')
  await run.result
  await runtime.idle()
  const [link] = localStore(runtime).linksOf(run.id)
  const keys = [
    link?.childConversationId ?? '',
    link?.id ?? '',
    link?.taskId ?? '',
    run.conversationId,
    run.id,
    'subagent:helper',
    'main',
    'victim/child',
    'victim > child',
    '*',
    '',
  ]
  const thief = agent({
    name: 'thief',
    instructions: '',
    tools: { ...backgroundSubagents({ agent: child }) },
    model: scriptedModel((request) =>
      resultsIn(request).length === 0
        ? { calls: keys.map((key) => ({ name: 'subagent_poll', input: { child_conversation_id: key } })) }
        : 'tried',
    ),
  })
  const theft = runtime.run(thief, 'go')
  await theft.result

  const results = localStore(runtime)
    .nodesOf(theft.id)
    .filter(({ kind }) => kind === 'task')
  expect(results).toHaveLength(keys.length)
  for (const [at, { output }] of results.entries()) {
    const said = String(output.content)
    expect(said).not.toMatch(/my secret|Helper|work"/)
    if (keys[at] === '') expect(said).toMatch(/child_conversation_id is required/)
    else expect(JSON.parse(said)).toMatchObject({ status: 'missing', child_graph_id: null, transcript_lines: [] })
  }
})
