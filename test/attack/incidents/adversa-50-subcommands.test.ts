import { expect, test } from 'vitest'
import { openRuntime } from '../../support/reading.ts'
import { canaries, trying } from '../support/canary.ts'

/** After a number of commands the check fell from deny to ask. Here no number makes a verdict weaker. */
test.each([1, 49, 50, 51, 1_000])(
  'Adversa 50 subcommands: %i calls before it, and deny is still deny',
  async (before) => {
    const { ran, tools } = canaries('read', 'exec')
    const calls = [...Array.from({ length: before }, () => 'read'), 'exec'].map((name, n) => ({ name, input: { n } }))
    const host = trying('host', {
      tools,
      grant: { deny: ['tool:exec'], ask: ['tool:other'] },
      script: ({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : { calls }),
      extra: { budget: { toolCalls: 5_000 } },
    })
    const runtime = openRuntime()
    await runtime.run(host, 'go' as never).result

    expect(ran).toHaveLength(before)
    expect(ran).not.toContain('exec')
    expect(await runtime.approvals()).toEqual([])
  },
)

test('Adversa 50 subcommands: a thousand rules before it, and deny is still deny', async () => {
  const { ran, tools } = canaries('read', 'exec')
  const many = Array.from({ length: 1_000 }, (_, n) => `tool:x${n}*y`)
  const grant = { use: ['tool:*', ...many], ask: many, deny: [...many, 'tool:exec'] }
  await openRuntime().run(trying('host', { tools, grant }), 'go' as never).result

  expect(ran).toEqual(['read'])
})
