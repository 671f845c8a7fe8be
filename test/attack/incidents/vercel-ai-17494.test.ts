import { agent, type Json, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'

/** What was signed was joined with line ends, so that two calls had one signature. Pairs by chance are in approvals.test.ts. */
const calls: readonly (readonly [string, Json])[] = [
  ['send', { to: 'a', text: 'b\nc' }],
  ['send', { to: 'a\nb', text: 'c' }],
  ['send', { to: 'a', text: ['b', 'c'] }],
  ['send', { to: 'a', text: 'b\nc', more: null }],
  ['send\n', { to: 'a', text: 'b\nc' }],
]

test.each([0, 1, 2, 3])(
  'vercel/ai 17494: of calls that look alike, the one that is allowed runs (%i)',
  async (allowed) => {
    const sent: Json[] = []
    const send = tool({
      description: 'Sends',
      input: { type: 'object' },
      execute: (input) => {
        sent.push(input as Json)
        return 'sent'
      },
    })
    const model = scriptedModel((request) =>
      resultsIn(request).length === 0 ? { calls: calls.map(([name, input]) => ({ name, input })) } : 'done',
    )
    const worker = agent({ name: 'worker', instructions: '', model, tools: { send }, grant: { ask: ['tool:send'] } })
    const runtime = openRuntime()
    const run = runtime.run(worker, 'go')
    let asked = await runtime.approvals()
    while (asked.length < 4) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      asked = await runtime.approvals()
    }
    const inputs = calls.slice(0, 4).map(([, input]) => input)
    expect(asked.map(({ input }) => input)).toEqual(expect.arrayContaining(inputs))
    for (const { nodeId, input } of asked) {
      await runtime.answer(nodeId, { allow: JSON.stringify(input) === JSON.stringify(inputs[allowed]) })
    }
    await run.result

    expect(sent).toEqual([inputs[allowed]])
  },
)
