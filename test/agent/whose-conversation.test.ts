import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { agent, createRuntime } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { localStore } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'

test('a conversation goes on with its own agent only', async () => {
  const runtime = createRuntime()
  const first = agent({ name: 'first', instructions: '', model: scriptedModel(() => 'one') })
  const other = agent({ name: 'other', instructions: '', model: scriptedModel(() => 'two') })
  const { conversationId } = await runtime.run(first, 'hello').result

  const run = runtime.run(other, 'hello', { conversationId })

  await expect(run.result).rejects.toThrow(/is of "first", not "other"/)
  await runtime.close()
})

test('a child’s conversation is its host’s: nobody else writes into it', async () => {
  const runtime = createRuntime()
  const child = agent({
    name: 'child',
    instructions: '',
    input: z.object({ q: z.string() }),
    model: scriptedModel(() => 'mine'),
  })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { q: 'x' } }] }, 'done'])
  const host = agent({ name: 'host', instructions: '', subagents: { ask: child }, model })
  const run = runtime.run(host, 'go')
  await run.result
  const [link] = localStore(runtime).linksOf(run.id)

  const intruding = runtime.run(child, { q: 'y' }, { conversationId: link?.childConversationId ?? '' })

  await expect(intruding.result).rejects.toThrow(/only its host can go on with it/)
  await runtime.close()
})

describe.each(lasting)('the owner of a conversation, in a store in %s', (_, create) => {
  test('I9: run with an owner goes on with that owner’s only; run without one, and every other door, ask for none', async () => {
    const rows = create()
    onTestFinished(() => rows.drop())
    const clerk = agent({ name: 'clerk', instructions: '', model: scriptedModel(() => 'hello') })
    const first = createRuntime({ store: rows.open() })
    const { conversationId, runId } = await first.run(clerk, 'one', { owner: 'ann' }).result
    const nobodys = await first.run(clerk, 'one').result
    await first.close()
    const runtime = createRuntime({ store: rows.open() })
    onTestFinished(() => runtime.close())
    const refusal = async (id: string) =>
      await runtime.run(clerk, 'mine?', { conversationId: id, owner: 'bob' }).result.then(
        () => 'it was taken',
        (error: Error) => error.message.replace(id, 'ID'),
      )

    const unknown = await refusal('01928c5e-5b00-7abc-8def-0123456789ab')
    expect(unknown).toBe('There is no conversation ID in this store.')
    expect([await refusal(conversationId), await refusal(nobodys.conversationId)]).toEqual([unknown, unknown])
    expect((await runtime.run(clerk, 'two', { conversationId, owner: 'ann' }).result).status).toBe('completed')

    expect((await runtime.run(clerk, 'three', { conversationId }).result).status).toBe('completed')
    expect(await (await runtime.conversation(conversationId)).transcript()).toHaveLength(6)
    expect((await (await runtime.attach(runId)).result).text).toBe('hello')
  })
})
