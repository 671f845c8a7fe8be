import type { AnyAgent } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'
import { canaries, trying } from '../support/canary.ts'

/** A follow-up to a child reset what bound it. */
test.each([
  ['in the same turn', false],
  ['in a later turn', true],
  ['after a restart, by a process with other definitions', 'restart'],
] as const)('codex 40278: a child is bound as before when it is spoken to again, %s', async (_name, when) => {
  const { ran, tools } = canaries('read', 'exec')
  const store = { ...memoryStore(), close: async () => undefined }
  const worker = trying('worker', {
    tools,
    script: ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'done' : { calls: ['read', 'exec'].map((name) => ({ name, input: {} })) },
  })
  const hostWith = (grant: object): AnyAgent =>
    trying('host', {
      grant,
      extra: { subagents: { ask: worker } },
      script: (request) => {
        const results = resultsIn(request)
        const session_id = /session_id: (\S+)/.exec(String(results[0]?.content))?.[1]
        const last = request.messages.at(-1)
        const isSecond = when === false ? results.length === 1 : last?.content === 'again'
        if (isSecond) return { calls: [{ name: 'ask', input: { message: 'again', session_id: session_id ?? '' } }] }
        return results.length === 0 ? { calls: [{ name: 'ask', input: { message: 'go' } }] } : 'done'
      },
    })
  const runtime = openRuntime({ store })
  const { conversationId } = await runtime.run(hostWith({ deny: ['tool:exec'] }), 'go' as never).result
  if (when === true) await runtime.run(hostWith({ deny: ['tool:exec'] }), 'again' as never, { conversationId }).result
  if (when === 'restart') await openRuntime({ store }).run(hostWith({}), 'again' as never, { conversationId }).result

  expect(worker.model.requests).toHaveLength(4)
  expect(ran).toEqual(['read', 'read'])
})
