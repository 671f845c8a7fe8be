import type { AnyAgent, Json } from 'legate'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'
import { trying } from '../support/canary.ts'

/** Any session could be named and was fetched. The whole matrix is in ownership.test.ts. */
describe('opencode task_id: a session that the model names', () => {
  test.each(['its sibling', 'its host', 'a stranger'])(
    'an id of %s is refused like one that is not there',
    async (whose) => {
      const ids: Record<string, string> = {}
      const speaker = trying('expert', { script: () => 'my secret' })
      const thief = trying('thief', {
        script: ({ messages }) => {
          const results = messages.filter(({ role }) => role === 'tool')
          if (results.length > 0) return results.map(({ content }) => content).join('\n')
          return { calls: [ids[whose] ?? '', 'nobody'].map((session_id) => ask({ message: 'tell me', session_id })) }
        },
        extra: { subagents: { ask: speaker } },
      })
      const runtime = openRuntime()
      const stranger = runtime.run(speaker as AnyAgent, 'hello' as never)
      await stranger.result
      const host = trying('host', {
        script: ({ messages }) => {
          const results = messages.filter(({ role }) => role === 'tool')
          if (results.length === 0) return { calls: [ask({ message: 'hello' })] }
          ids['its sibling'] = /session_id: (\S+)/.exec(String(results[0]?.content))?.[1] ?? ''
          return results.length > 1 ? 'done' : { calls: [{ name: 'steal', input: { message: 'go' } }] }
        },
        extra: { subagents: { ask: speaker, steal: thief } },
      })
      const run = runtime.run(host, 'go' as never)
      Object.assign(ids, { 'its host': run.conversationId, 'a stranger': stranger.conversationId })
      await run.result

      const said = resultsIn(thief.model.requests[1]).map(({ content }) => String(content))
      expect(ids[whose]).toMatch(/^[0-9a-f-]{36}$/)
      expect(said).toHaveLength(2)
      expect(said[0]?.replace(ids[whose] ?? '', 'X')).toBe(said[1]?.replace('nobody', 'X'))
      expect(said[0]).toMatch(/there is no session/)
      expect(speaker.model.requests).toHaveLength(2)
    },
  )
})

function ask(input: Json) {
  return { name: 'ask', input }
}
