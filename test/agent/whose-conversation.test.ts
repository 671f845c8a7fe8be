import { expect, test } from 'vitest'
import { z } from 'zod'
import { agent, createRuntime } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

test('a conversation goes on with its own agent only', async () => {
  const runtime = createRuntime()
  const first = agent({ name: 'first', instructions: '', model: scriptedModel(() => 'one') })
  const other = agent({ name: 'other', instructions: '', model: scriptedModel(() => 'two') })
  const { conversationId } = await runtime.run(first, 'hello').result

  const run = runtime.run(other, 'hello', { conversationId })

  await expect(run.result).rejects.toThrow(/is of "first", not "other"/)
  await runtime.close()
})

test('a child’s conversation is its host’s: nobody else writes into it (cybros A77)', async () => {
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
  const [link] = runtime.store.linksOf(run.id)

  const intruding = runtime.run(child, { q: 'y' }, { conversationId: link?.childConversationId ?? '' })

  await expect(intruding.result).rejects.toThrow(/only its host can go on with it/)
  await runtime.close()
})
