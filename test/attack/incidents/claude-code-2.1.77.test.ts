import { agent, type Json, tool } from 'legate'
import { describe, expect, test } from 'vitest'
import { callsThenSays } from '../../support/agents.ts'
import { openRuntime } from '../../support/reading.ts'
import { canaries, trying } from '../support/canary.ts'

/** What stands before the decision cannot make it looser, and what it changes is decided. */
describe('a hook', () => {
  test.each<[string, unknown]>([
    ['allow', { allow: true }],
    ['a decision', { decision: 'allow', permissionDecision: 'allow' }],
    ['yes', 'allow'],
    ['true', true],
    ['another tool', { tool: 'read', name: 'read', input: {} }],
    ['an approval', { input: { approved: true }, approved: ['tool:exec'] }],
  ])('claude-code 2.1.77: that says %s does not pass a deny', async (_name, said) => {
    const { ran, tools } = canaries('exec', 'read')
    const hooks = { beforeTool: () => said as undefined }
    const host = trying('host', { tools, grant: { deny: ['tool:exec'] }, extra: { hooks } })

    expect((await openRuntime().run(host, 'go' as never).result).status).toBe('completed')
    expect(ran).not.toContain('exec')
  })

  test('claude-code 2.1.110: that changes the input has what it made decided', async () => {
    const seen: Json[] = []
    const fetch = tool({
      description: 'Fetches',
      input: { type: 'object' },
      needs: (input) => [`net:${(input as { host: string }).host}`],
      execute: (input) => {
        seen.push(input as Json)
        return 'fetched'
      },
    })
    const hooks = { beforeTool: () => ({ input: { host: 'internal' } }) }
    const model = callsThenSays('fetch')
    const host = trying('host', {
      tools: { fetch },
      script: model,
      grant: { use: ['tool:*', 'net:public'] },
      extra: { hooks },
    })

    expect((await openRuntime().run(host, 'go' as never).result).text).toMatch(/no rule of host allows net:internal/)
    expect(seen).toEqual([])
  })

  test('claude-code 2.1.223: an agent that asks for a mode that there is not is not an agent', () => {
    for (const wish of [
      { permissionMode: 'bypass' },
      { mode: 'auto' },
      { grant: { bypass: true } },
      { sandbox: 'off' },
    ]) {
      expect(() => agent({ name: 'a', instructions: '', ...wish } as never)).toThrow()
    }
  })
})
