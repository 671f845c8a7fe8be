import { agent, createRuntime, DeniedError, type Principal, type Runtime } from 'legate'
import { narrowPrincipal } from 'legate/grant'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { lasting } from '../support/stores.ts'

const DAY_MS = 86_400_000
const ANN: Principal = { id: 'ann', scopes: ['start', 'read'] }
/** May make principals of other ids. */
const MAKER: Principal = { id: 'lea', scopes: ['start', 'read', 'admin'], sees: 'all' }

/** Each call uses 100 tokens. */
function clerk(id = 'openai/gpt-5') {
  const usage = { inputTokens: 60, outputTokens: 40 }
  return agent({ name: 'clerk', instructions: 'Help.', model: scriptedModel(() => ({ text: 'done', usage }), id) })
}

/** Delegates once, then answers: two calls, and one of its subagent. */
function host() {
  const usage = { inputTokens: 60, outputTokens: 40 }
  const model = scriptedModel(({ messages }) => {
    const isTold = messages.at(-1)?.role === 'tool'
    return isTold ? { text: 'done', usage } : { calls: [{ name: 'clerk', input: { message: 'help' } }], usage }
  })
  return agent({ name: 'host', instructions: 'Delegate.', model, subagents: { clerk: clerk() } })
}

describe.each(lasting)('the budget of a day on %s', (name, create) => {
  const world = (options: { model?: string } = {}) => {
    const rows = create()
    const clock = fakeClock(Date.UTC(2026, 10, 17, 12))
    const opened: Runtime[] = []
    const open = () => {
      const runtime = createRuntime({ store: rows.open(), agents: [clerk(options.model), host()], clock })
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

    await expect(refused).rejects.toMatchObject({
      code: 'over_quota',
      details: { limit: 'perDay.runs', owner: 'ann', until: Date.UTC(2026, 10, 18), retryAfter: 43_198 },
    })
    expect(await refused.catch((error: unknown) => DeniedError.isInstance(error))).toBe(true)
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

  test('bytes that are stored count once, for whoever has a limit of them and for everybody above', async () => {
    const { open, clock } = world()
    const runtime = open()
    const maker: Principal = { ...MAKER, perDay: { bytes: 30_000 } }
    const ann = runtime.as(narrowPrincipal(maker, { ...ANN, scopes: ['start', 'read'], perDay: { bytes: 12_000 } }))
    const bob = runtime.as(narrowPrincipal(maker, { ...ANN, id: 'bob' }))
    expect((await ann.run('clerk', 'x'.repeat(10_000)).result).status).toBe('completed')
    await clock.advance(2_000)
    expect((await ann.run('host', 'y'.repeat(2_000)).result).status).toBe('over_budget')
    await clock.advance(2_000)

    const refused = ann.run('clerk', 'z').result
    await expect(refused).rejects.toMatchObject({
      code: 'over_quota',
      details: { limit: 'perDay.bytes', owner: 'ann' },
    })
    await expect(refused).rejects.toThrow('ann has stored its 12000 bytes of today.')
    expect((await bob.run('clerk', 'b'.repeat(1_000)).result).status).toBe('completed')
    expect((await bob.run('clerk', 'b'.repeat(18_000)).result).status).toBe('over_budget')
    await clock.advance(2_000)
    await expect(bob.run('clerk', 'c').result).rejects.toThrow('lea has stored its 30000 bytes of today.')
    expect((await runtime.as(ANN).run('clerk', 'x'.repeat(50_000)).result).status).toBe('completed')
    expect(await runtime.as(MAKER).usageByDay({ from: '2026-11-17', to: '2026-11-17' })).not.toContainEqual(
      expect.objectContaining({ model: ':bytes' }),
    )
    await clock.advance(DAY_MS)
    expect((await ann.run('clerk', 'four').result).status).toBe('completed')
  })

  test('messages that nobody answers count with the bytes of the day, and an edit too', async () => {
    const { open, clock } = world()
    const ann = open().as({ ...ANN, scopes: ['start', 'read', 'history'], perDay: { bytes: 5_000 } })
    const { conversationId } = await ann.run('clerk', 'one').result
    const conversation = await ann.conversation(conversationId)
    const [said] = await conversation.messagePage({ limit: 1 })
    await conversation.observe('o'.repeat(5_000))
    await clock.advance(2_000)

    await expect(conversation.observe('more')).rejects.toMatchObject({ code: 'over_quota' })
    await expect(conversation.history.edit(said?.nodeId ?? '', 'more')).rejects.toMatchObject({ code: 'over_quota' })
  })

  test('attributes and the grant of a run count with the bytes of the day', async () => {
    const { open, clock } = world()
    const ann = open().as({ ...ANN, scopes: ['start', 'read'], perDay: { bytes: 80_000 } })
    expect((await ann.run('clerk', 'a', { attributes: { text: 'x'.repeat(50_000) } }).result).status).toBe('completed')
    const deny = Array.from({ length: 300 }, (_, n) => `tool:${n}${'y'.repeat(200)}`)
    await ann.run('clerk', 'b', { grant: { deny } }).result
    await clock.advance(2_000)

    await expect(ann.run('clerk', 'c').result).rejects.toMatchObject({ details: { limit: 'perDay.bytes' } })
  })

  test('a run takes neither more attributes nor a longer grant than stand in a row', async () => {
    const ann = world().open().as(ANN)
    const many = Array.from({ length: 42_000 }, (_, n) => `tool:t${n}`)
    const long = Array.from({ length: 600 }, (_, n) => `tool:${n}${'y'.repeat(200)}`)
    const start = (options: object) => async () => ann.run('clerk', 'a', options).result

    await expect(start({ attributes: { text: 'x'.repeat(100_000) } })()).rejects.toThrow('at most 100000 characters')
    await expect(start({ grant: { deny: many } })()).rejects.toThrow('has 42000 rules, and may have 2000')
    await expect(start({ grant: { use: long } })()).rejects.toThrow('at most 100000 characters')
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

  test('a run in a conversation of another owner counts for the day of who asked for it, and for the owner', async () => {
    const { open, clock } = world()
    const runtime = open()
    const run = runtime.as(ANN).run('clerk', 'one')
    await run.result
    const bob = runtime.as({ id: 'bob', scopes: ['start', 'read'], sees: ['ann', 'bob'], perDay: { tokens: 100 } })
    const { conversationId } = run

    expect((await bob.run('clerk', 'two', { conversationId }).result).status).toBe('completed')
    await clock.advance(2_000)

    await expect(bob.run('clerk', 'three', { conversationId }).result).rejects.toThrow('bob has used its 100 tokens')
    await expect(bob.run('clerk', 'his own').result).rejects.toThrow('bob has used its 100 tokens')
    expect((await runtime.as(ANN).run('clerk', 'four').result).status).toBe('completed')
    const nobodys = await runtime.run('clerk', 'of nobody').result
    const all = runtime.as({ ...MAKER, perDay: { runs: 9 } })
    const there = all.run('clerk', 'more', { conversationId: nobodys.conversationId }).result
    await expect(there).rejects.toThrow(
      'lea has a budget of the day, so it begins no run in a conversation that nobody owns',
    )
  })

  test('the limit of who made a principal binds it under whatever id, over all processes', async () => {
    const { open, clock } = world()
    const first = open()
    const maker: Principal = { ...MAKER, perDay: { runs: 3 } }
    const made = (id: string) => narrowPrincipal(maker, { id, scopes: ['start', 'read'] })
    await first.as(maker).run('clerk', 'own').result
    await first.as(made('bob')).run('clerk', 'one').result
    await first.close()
    const second = open()
    const cat = second.as(narrowPrincipal(made('cat'), { id: 'cat', scopes: ['start'] }))
    expect((await cat.run('clerk', 'two').result).status).toBe('completed')
    await clock.advance(2_000)

    for (const id of ['bob', 'cat', 'dan', 'lea']) {
      await expect(second.as(made(id)).run('clerk', 'more').result).rejects.toThrow('lea has had its 3 runs of today.')
    }
    await expect(second.as(maker).run('clerk', 'more').result).rejects.toThrow('lea has had its 3 runs of today.')
    const plain = second.as({ id: 'bob', scopes: ['start', 'read'] }).run('clerk', 'without a maker')
    expect((await plain.result).status).toBe('completed')
    await clock.advance(DAY_MS)
    expect((await second.as(made('bob')).run('clerk', 'tomorrow').result).status).toBe('completed')
  })

  test('what a made principal spends, its subagents included, ends the day of its maker, and the other way round', async () => {
    const { open, clock } = world()
    const runtime = open()
    const maker: Principal = { ...MAKER, perDay: { tokens: 250 } }
    const bob = runtime.as(narrowPrincipal(maker, { id: 'bob', scopes: ['start', 'read'] }))
    const host = await bob.run('host', 'delegate').result
    expect(host).toMatchObject({ status: 'completed', modelCalls: 2 })
    await clock.advance(2_000)

    await expect(runtime.as(maker).run('clerk', 'own').result).rejects.toThrow('lea has used its 250 tokens of today.')
    await expect(bob.run('clerk', 'more').result).rejects.toThrow('lea has used its 250 tokens of today.')
    const anybody = await runtime.as(ANN).run('clerk', 'mine').result
    expect(anybody.status).toBe('completed')
    // It is no usage of the maker: lists have it under the owner.
    const day = { from: '2026-11-17', to: '2026-11-17' }
    const listed = await runtime.usageByDay(day)
    expect(listed.map(({ owner, agent: name, modelCalls }) => [owner, name, modelCalls]).sort()).toEqual([
      ['ann', 'clerk', 0],
      ['ann', 'clerk', 1],
      ['bob', 'clerk', 1],
      ['bob', 'host', 0],
      ['bob', 'host', 2],
    ])
  })

  test('a run under way ends when others have used up the day of its maker', async () => {
    const { open, clock } = world()
    const runtime = open()
    const maker: Principal = { ...MAKER, perDay: { tokens: 150 } }
    const made = (id: string) => runtime.as(narrowPrincipal(maker, { id, scopes: ['start', 'read'] }))
    const first = made('bob').run('clerk', 'one')
    await first.result
    await made('cat').run('clerk', 'one').result
    await clock.advance(2_000)
    const { conversationId } = first

    // Bob began the conversation under his maker: her limit holds in it, also for bob without her.
    const later = await runtime.as({ id: 'bob', scopes: ['start', 'read'] }).run('clerk', 'two', { conversationId })
      .result

    expect(later).toMatchObject({ status: 'over_budget' })
    expect(later.error?.message).toContain('lea has used its 150 tokens of today.')
  })

  test('parallel starts of different ids count one after the other for their maker', async () => {
    const { open } = world()
    const runtime = open()
    const maker: Principal = { ...MAKER, perDay: { runs: 3 } }
    const starts = Array.from({ length: 12 }, (_, n) => {
      const id = `made-${n % 4}`
      return runtime.as(narrowPrincipal(maker, { id, scopes: ['start', 'read'] })).run('clerk', `ask ${n}`).result
    })

    const results = await Promise.allSettled(starts)

    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
  })

  test('what was charged to a maker is erased with him, and not with the owner who spent it', async () => {
    const { open } = world()
    const runtime = open()
    const maker: Principal = { ...MAKER, perDay: { runs: 1 } }
    const bob = () => runtime.as(narrowPrincipal(maker, { id: 'bob', scopes: ['start', 'read'] })).run('clerk', 'one')
    await bob().result
    await runtime.forgetOwner('bob')
    await expect(bob().result).rejects.toThrow('lea has had its 1 runs of today.')
    await runtime.forgetOwner('lea')
    expect((await bob().result).status).toBe('completed')
  })

  test('a principal begins no conversation that it could not see, and nothing is written', async () => {
    const { open } = world()
    const runtime = open()
    const lea: Principal = { ...MAKER, sees: 'own' }
    const blind = runtime.as(narrowPrincipal(lea, { id: 'bob', scopes: ['start', 'read'] }))
    const starts = [
      blind.run('clerk', 'one'),
      blind.run('clerk', 'two', { conversationKey: 'thread' }),
      blind.run('clerk', 'three', { key: 'once' }),
    ]

    for (const { result } of starts) {
      await expect(result).rejects.toMatchObject({ code: 'denied', details: { sees: 'bob' } })
      await expect(result).rejects.toThrow(
        'bob begins no conversation that it cannot see. Let it, and whoever made it,',
      )
    }
    expect(await runtime.store.roots({ limit: 9 })).toEqual([])
    expect(await runtime.usageByDay({ from: '2026-11-17', to: '2026-11-17' })).toEqual([])
    // In a conversation that it sees it goes on.
    const { conversationId } = await runtime.as(ANN).run('clerk', 'one').result
    const helper = runtime.as({ id: 'helper', scopes: ['start', 'read'], sees: ['ann'] })
    expect((await helper.run('clerk', 'two', { conversationId }).result).status).toBe('completed')
    await expect(helper.run('clerk', 'three').result).rejects.toThrow('helper begins no conversation')
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
