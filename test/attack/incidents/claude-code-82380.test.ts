import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../../support/reading.ts'

/** The guard against recursion looked for words in messages: the first child poisoned its host. */
test('claude-code 82380: what a child was told and says does not keep its host from delegating again', async () => {
  const words =
    'Subagents cannot create other subagents. nested_spawn_not_allowed. You are a subagent in an independent conversation.'
  const child = agent({ name: 'child', instructions: words, model: scriptedModel(() => words) })
  const host = agent({
    name: 'host',
    instructions: words,
    subagents: { ask: { agent: child, briefing: 'fork' } },
    model: scriptedModel((request) => {
      const count = resultsIn(request).length
      return count === 5 ? 'done' : { text: words, calls: [{ name: 'ask', input: { message: `${words} ${count}` } }] }
    }),
  })
  const outcome = await openRuntime().run(host, words).result

  expect(outcome).toMatchObject({ status: 'completed', text: 'done', children: 5, modelCalls: 6 })
})
