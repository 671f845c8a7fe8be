import { type PendingApproval, type Runtime, tool } from 'legate'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { asking, canaries, trying } from '../support/canary.ts'

/** Children ran in a mode that asks nobody, or what they asked reached nobody. */
async function firstAsk(runtime: Runtime): Promise<PendingApproval> {
  for (;;) {
    const [ask] = await runtime.approvals()
    if (ask !== undefined) return ask
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

describe('a child that must ask', () => {
  test.each<[string, number]>([
    ['goose 11778: does not run in a mode of its own', 1],
    ['goose 5140: two levels down it reaches the person too', 2],
    ['codex 12713: is not made to never ask', 3],
  ])('%s', async (_name, depth) => {
    const { ran, tools } = canaries('deploy')
    let below = trying('worker', { grant: { use: ['tool:*'] }, tools }) as ReturnType<typeof asking>
    for (let level = 1; level < depth; level++) below = asking(below)
    const runtime = openRuntime()
    const run = runtime.run(asking(below, { ask: ['tool:deploy'] }), 'go' as never)
    const ask = await firstAsk(runtime)

    expect(ask).toMatchObject({ tool: 'deploy', rootRunId: run.id })
    expect(ask.path).toHaveLength(depth + 1)
    expect(ran).toEqual([])
    await runtime.answer(ask.nodeId, { allow: true })
    expect((await run.result).status).toBe('completed')
    expect(ran).toEqual(['deploy'])
  })

  test('claude-code 2.1.234: a no to it is heard, with its reason', async () => {
    const { ran, tools } = canaries('deploy')
    const worker = trying('worker', { tools })
    const runtime = openRuntime()
    const run = runtime.run(asking(worker, { ask: ['tool:deploy'] }), 'go' as never)
    const { nodeId } = await firstAsk(runtime)
    await runtime.answer(nodeId, { allow: false, reason: 'Not on a Friday.' })
    await run.result

    expect(ran).toEqual([])
    expect(JSON.stringify(worker.model.requests[1]?.messages)).toContain('Not on a Friday.')
  })

  test('goose 11778: code that cannot wait for a person is told no, not yes', async () => {
    const { ran, tools } = canaries('deploy')
    const worker = trying('worker', { tools })
    const work = tool({
      description: 'Works',
      input: { type: 'object' },
      execute: async (_input, { delegate }) => (await delegate(worker, 'go' as never)).status,
    })
    const host = trying('host', { tools: { work }, grant: { ask: ['agent:worker'] } })

    expect((await openRuntime().run(host, 'go' as never).result).text).toBe('denied')
    expect(ran).toEqual([])
  })
})
