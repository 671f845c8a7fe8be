import { type AnyAgent, type Outcome, type Runtime, tool } from 'legate'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { asking, canaries, trying } from '../support/canary.ts'

/** One way to start a child kept the rules, a second one forgot them. The whole matrix is in doors.test.ts. */
type Start = (
  child: AnyAgent,
  runtime: Runtime,
  delegate: (agent: AnyAgent, input: never) => Promise<Outcome>,
) => unknown

const ways: readonly (readonly [string, Start])[] = [
  ['context.delegate', (child, _runtime, delegate) => delegate(child, 'go' as never)],
  ['agent.generate', (child) => child.generate('go' as never).catch(() => undefined)],
  ['agent.stream', (child) => child.stream('go' as never).result],
  ['runtime.run', (child, runtime) => runtime.run(child, 'go' as never).result],
]

function hostWith(start: Start, runtime: Runtime, child: AnyAgent, extra: object): AnyAgent {
  const work = tool({
    description: 'Works',
    inputSchema: { type: 'object' },
    execute: async (_input, { delegate }) => {
      await start(child, runtime, delegate as never)
      return 'worked'
    },
  })
  return trying('host', { tools: { work }, extra })
}

describe.each(ways)('by %s inside a tool', (_name, start) => {
  test('GHSA-474h-prjg-mmw3: what the host may not pass on is not had by the second way', async () => {
    const { ran, tools } = canaries('read', 'exec')
    const runtime = openRuntime()
    const child = trying('child', { tools })
    await runtime.run(hostWith(start, runtime, child, { grant: { deny: ['tool:exec'] } }), 'go' as never).result

    expect(ran).toEqual(['read'])
  })

  test('CVE-2026-44997, GHSA-q3jj-46pq-826r: depth, number of children and who may be started are counted too', async () => {
    const leaf = trying('leaf', {})
    const child = asking(leaf)
    for (const extra of [{ budget: { depth: 1 } }, { grant: { deny: ['agent:leaf'] } }]) {
      const runtime = openRuntime()
      await runtime.run(hostWith(start, runtime, child, extra), 'go' as never).result
    }
    const runtime = openRuntime()
    const run = runtime.run(hostWith(start, runtime, child, { budget: { children: 0 } }), 'go' as never)

    expect((await run.result).children).toBe(0)
    expect(leaf.model.requests).toHaveLength(0)
  })

  test('agentscope-java 2477: also when the child is wrapped in another object that looks like it', async () => {
    const { ran, tools } = canaries('read', 'exec')
    const runtime = openRuntime()
    const child = trying('child', { tools })
    const wrapped = Object.create(child) as AnyAgent
    const host = hostWith(start, runtime, wrapped, { grant: { deny: ['tool:exec'] } })
    await runtime.run(host, 'go' as never).result

    expect(ran).not.toContain('exec')
  })
})
