import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { until } from '../../support/process.ts'
import { tasksOf } from '../../support/rows.ts'
import { stores } from '../../support/stores.ts'
import { expectLawful } from './support.ts'

describe.each(stores)('children in history, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  test('a child that was retried beside another is kept by a fork like any result', async () => {
    const gate = makeGate()
    let tries = 0
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(async ({ messages }) => {
        if (messages.at(-1)?.content === 'b') await gate.opened
        else if (++tries === 1) throw new Error('not today')
        return `re: ${String(messages.at(-1)?.content)}`
      }),
    })
    const calls = ['a', 'b'].map((message) => ({ name: 'ask', input: { message } }))
    const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : { calls }))
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child } })
    const { runtime } = start()
    const run = runtime.run(host, 'go')
    const failed = await until('one has failed', () =>
      tasksOf(world.store, run.id).find(({ state }) => state === 'finished'),
    )

    const talk = await runtime.conversation(run.conversationId)

    await talk.history.retry(failed.id)
    await until('it was done', () => tries === 2 && tasksOf(world.store, run.id).filter(isOver).length === 2)
    gate.open()
    const { answerNodeId } = await run.result
    const [other] = tasksOf(world.store, run.id).filter(({ id }) => id !== failed.id)
    const fork = await talk.history.fork(other?.id ?? '')
    await fork.run?.result

    expect(answerNodeId).not.toBeNull()
    const results = tasksOf(world.store, fork.run?.id ?? '').map(({ output }) => output.content)
    expect(results).toEqual([expect.stringContaining('re: a'), expect.stringContaining('re: b')])
    expectLawful(world.store)
  })
})

function isOver({ state }: { readonly state: string }): boolean {
  return state === 'finished'
}
