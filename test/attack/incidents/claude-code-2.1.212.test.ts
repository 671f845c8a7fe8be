import { type AnyAgent, agent, type Json } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { openRuntime, resultsIn, toolNamesIn } from '../../support/reading.ts'
import { canaries, trying } from '../support/canary.ts'

/** A tool that starts a child took a mode from the model, and the child ran in it. */
const wishes: Readonly<Record<string, Json>> = {
  mode: 'bypassPermissions',
  permission_mode: 'auto',
  permissionMode: 'acceptEdits',
  grant: { use: ['tool:*', 'exec:*'] },
  tools: ['exec'],
  allowedTools: ['exec'],
  model: 'other/model',
  sandbox: 'off',
  isolation: 'none',
  policy_profile: 'full',
}

interface Door {
  readonly tool: string
  readonly input: { readonly [field: string]: Json }
  hostParts(worker: AnyAgent): object
}

const typed = { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] } as const

const doors: Readonly<Record<string, Door>> = {
  typed: {
    tool: 'work',
    input: { topic: 'x' },
    hostParts: (worker) => ({ subagents: { work: worker } }),
  },
  message: {
    tool: 'call_worker',
    input: { message: 'x' },
    hostParts: (worker) => ({ subagents: [worker] }),
  },
  background: {
    tool: 'subagent_run',
    input: { name: 'worker', prompt: 'x' },
    hostParts: (worker) => ({ tools: backgroundSubagents({ agent: worker }) }),
  },
}

const attempts = Object.keys(doors).flatMap((door) => Object.keys(wishes).map((wish) => [door, wish] as const))

test.each(attempts)('claude-code 2.1.212: the %s contract gives its child nothing for a "%s"', async (name, wish) => {
  const door = doors[name] as Door
  const { ran, tools } = canaries('read', 'exec')
  const worker = trying('worker', { tools, ...(name === 'typed' ? { extra: { input: typed } } : {}) })
  const model = scriptedModel((request) =>
    resultsIn(request).length > 0
      ? 'done'
      : { calls: [{ name: door.tool, input: { ...door.input, [wish]: wishes[wish] ?? null } }] },
  )
  const grant = { deny: ['tool:exec'] }
  const host = agent({ name: 'host', instructions: '', model, grant, ...door.hostParts(worker) })
  const runtime = openRuntime()
  const { status } = await runtime.run(host, 'go').result
  await runtime.idle()

  expect(status).toBe('completed')
  const isRefused = name === 'background' && wish !== 'policy_profile'
  expect(ran).toEqual(isRefused ? [] : ['read'])
  for (const request of worker.model.requests) expect(toolNamesIn(request)).not.toContain('exec')
  const offered = model.requests[0]?.tools.find((tool) => tool.name === door.tool)
  const { properties } = (offered?.inputSchema ?? {}) as { readonly properties?: object }
  const shown = Object.keys(properties ?? {})
  expect(shown.filter((field) => Object.hasOwn(wishes, field))).toEqual(name === 'background' ? ['policy_profile'] : [])
})
