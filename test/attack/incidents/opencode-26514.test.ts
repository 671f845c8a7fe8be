import { type AnyAgent, agent, type Json } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { fileTools, memoryFiles } from 'legate/tools'
import { expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'
import { canaries } from '../support/canary.ts'

/** An agent that may only read, to plan, had a subagent write for it; whether it could depended on who called. */
const PLAN = { use: ['agent:*', 'tool:read', 'tool:read_*', 'tool:subagent_*', 'file.read:/workspace/**'] }

const doors: Readonly<Record<string, (worker: AnyAgent) => { parts: object; call: { name: string; input: Json } }>> = {
  'a message': (worker) => ({
    parts: { subagents: [worker] },
    call: { name: 'call_builder', input: { message: 'build' } },
  }),
  'a run in the background': (worker) => ({
    parts: { tools: { ...backgroundSubagents({ agent: worker }) } },
    call: { name: 'subagent_run', input: { name: 'builder', prompt: 'build', policy_profile: 'full' } },
  }),
  'a host of its own': (worker) => ({
    parts: { subagents: { call_builder: middle(worker) } },
    call: { name: 'call_builder', input: { message: 'build' } },
  }),
}

test.each(Object.keys(doors))('opencode 26514, 26597: who may only read has nothing written, by %s', async (name) => {
  const { ran, tools } = canaries('read', 'edit')
  const files = memoryFiles()
  const calls = [
    { name: 'read', input: {} },
    { name: 'edit', input: {} },
    { name: 'write_file', input: { path: '/workspace/plan.md', content: 'done' } },
  ]
  const builder = agent({
    name: 'builder',
    instructions: '',
    tools: { ...tools, ...fileTools() },
    grant: { use: ['tool:*', 'file.*:**', 'model:*'] },
    model: scriptedModel((request) => (resultsIn(request).length === 0 ? { calls } : 'built')),
  })
  const { parts, call } = doors[name]?.(builder as AnyAgent) ?? { parts: {}, call: { name: '', input: null } }
  const planner = agent({
    name: 'planner',
    instructions: '',
    grant: PLAN,
    model: scriptedModel((request) => (resultsIn(request).length === 0 ? { calls: [call] } : 'planned')),
    ...parts,
  })
  const runtime = openRuntime({ files })
  expect((await runtime.run(planner, 'plan').result).status).toBe('completed')
  await runtime.idle()

  expect(ran).toEqual(['read'])
  const reader = files.open({ use: ['file.*:**'] })
  await expect(reader.readText('/workspace/plan.md')).rejects.toThrow(/not found/i)
})

function middle(worker: AnyAgent): AnyAgent {
  return agent({
    name: 'middle',
    instructions: '',
    grant: { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**'], delegate: ['tool:*', 'model:*', 'file.*:**'] },
    subagents: [worker],
    model: scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: [{ name: 'call_builder', input: { message: 'build' } }] } : 'done',
    ),
  }) as AnyAgent
}
