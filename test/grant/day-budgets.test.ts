import { agent, createRuntime, type Principal, type Runtime } from 'legate'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { lasting } from '../support/stores.ts'

const DAY_MS = 86_400_000
const ANN: Principal = { id: 'ann', scopes: ['start', 'read'] }

/** Each call uses 100 tokens. */
function clerk(id = 'openai/gpt-5') {
  const usage = { inputTokens: 60, outputTokens: 40 }
  return agent({ name: 'clerk', instructions: 'Help.', model: scriptedModel(() => ({ text: 'done', usage }), id) })
}

describe.each(lasting)('the budget of a day on %s', (name, create) => {
  const world = (options: { model?: string } = {}) => {
    const rows = create()
    const clock = fakeClock(Date.UTC(2026, 10, 17, 12))
    const opened: Runtime[] = []
    const open = () => {
      const runtime = createRuntime({ store: rows.open(), agents: [clerk(options.model)], clock })
      opened.push(runtime)
      return runtime
    }
    onTestFinished(async () => {
      for (const runtime of opened) await runtime.close()
      await rows.drop()
    })
    return { open, clock }
  }

  test('so many runs of a day may be started, by whatever process, and again on the next day', async () => {
    const { open, clock } = world()
    const principal = { ...ANN, perDay: { runs: 2 } }
    const first = open()
    await first.as(principal).run('clerk', 'one').result
    await first.close()
    const second = open()
    await second.as(principal).run('clerk', 'two').result
    await clock.advance(2_000)

    const refused = second.as(principal).run('clerk', 'three').result

    await expect(refused).rejects.toMatchObject({ code: 'denied', details: { limit: 'perDay' } })
    await expect(refused).rejects.toThrow('ann has had its 2 runs of today.')
    expect((await second.as({ ...principal, id: 'bob' }).run('clerk', 'other').result).status).toBe('completed')
    await clock.advance(DAY_MS)
    expect((await second.as(principal).run('clerk', 'four').result).status).toBe('completed')
  })

  test('tokens are counted before each model call, of all conversations of the owner', async () => {
    const { open, clock } = world()
    const runtime = open()
    const ann = runtime.as({ ...ANN, perDay: { tokens: 150 } })
    for (const words of ['one', 'two']) {
      expect((await ann.run('clerk', words).result).status).toBe('completed')
      await clock.advance(2_000)
    }

    await expect(ann.run('clerk', 'three').result).rejects.toThrow('ann has used its 150 tokens of today.')
    const queued = runtime.as(ANN).run('clerk', 'without a limit')
    expect((await queued.result).status).toBe('completed')
  })

  test('a conversation stays under the budget of who created it, whoever goes on in it', async () => {
    const { open, clock } = world()
    const runtime = open()
    const run = runtime.as({ ...ANN, perDay: { tokens: 150 } }).run('clerk', 'one')
    await run.result
    await clock.advance(2_000)
    const admin = runtime.as({ id: 'root', scopes: ['start', 'admin'], sees: 'all' })
    const { conversationId } = run
    expect((await admin.run('clerk', 'two', { conversationId }).result).status).toBe('completed')
    await clock.advance(2_000)

    const third = await admin.run('clerk', 'three', { conversationId }).result

    expect(third).toMatchObject({ status: 'over_budget' })
    expect(third.error?.message).toContain('ann has used its 150 tokens of today.')
  })

  test('parallel starts and changes of history count one after the other', async () => {
    const { open } = world()
    const ann = open().as({ ...ANN, scopes: ['start', 'read', 'history'], perDay: { runs: 3 } })
    const results = await Promise.allSettled(Array.from({ length: 12 }, (_, n) => ann.run('clerk', `ask ${n}`).result))

    const done = results.filter(({ status }) => status === 'fulfilled')
    expect(done).toHaveLength(3)
    const [run] = await ann.runs({ state: 'completed' })
    const conversation = await ann.conversation(run?.conversationId ?? '')
    const [said] = await conversation.messagePage({ limit: 1 })
    await expect(conversation.history.edit(said?.nodeId ?? '', 'more')).rejects.toThrow(
      'ann has had its 3 runs of today.',
    )
  })

  test('whoever has a budget of the day begins runs in conversations of its own only', async () => {
    const { open } = world()
    const runtime = open()
    const run = runtime.as(ANN).run('clerk', 'one')
    await run.result
    const bob = runtime.as({ id: 'bob', scopes: ['start', 'read'], sees: ['ann', 'bob'], perDay: { runs: 5 } })

    const more = bob.run('clerk', 'two', { conversationId: run.conversationId }).result

    await expect(more).rejects.toThrow('in conversations of its own only')
  })

  test('dollars need a price', async () => {
    const { open, clock } = world({ model: 'nobody/knows' })
    const ann = open().as({ ...ANN, perDay: { usd: 1 } })
    await ann.run('clerk', 'one').result
    await clock.advance(2_000)

    await expect(ann.run('clerk', 'two').result).rejects.toThrow('The price of nobody/knows is not known')
  })

  test(`dollars are summed up (${name})`, async () => {
    const { open, clock } = world()
    const ann = open().as({ ...ANN, perDay: { usd: 0.0001 } })
    await ann.run('clerk', 'one').result
    await clock.advance(2_000)

    await expect(ann.run('clerk', 'two').result).rejects.toThrow('ann has used its 0.0001 US dollars of today.')
  })
})
