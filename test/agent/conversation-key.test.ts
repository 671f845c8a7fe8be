import { agent, conversationIdFor, createRuntime, DefinitionError, NotFoundError, type StartOptions } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openRuntime } from '../support/reading.ts'
import { lasting } from '../support/stores.ts'

function clerk(name = 'clerk') {
  const model = scriptedModel(({ messages }) => {
    return messages.flatMap(({ role, content }) => (role === 'user' ? [String(content)] : [])).join(', ')
  })
  return agent({ name, instructions: 'You sell shoes.', model })
}

describe.each(lasting)('a conversation that its caller has named, in a store in %s', (_, create) => {
  test('is begun once and gone on with, also by another process', async () => {
    const rows = create()
    onTestFinished(() => rows.drop())
    const first = createRuntime({ store: rows.open() })
    const where = { conversationKey: 'kgV3x-chat', owner: 'ann' }
    const one = first.run(clerk(), 'one', where)
    const two = first.run(clerk(), 'two', where)
    await Promise.all([one.result, two.result])
    await first.close()

    const second = createRuntime({ store: rows.open() })
    onTestFinished(() => second.close())
    const three = second.run(clerk(), 'three', where)

    expect((await three.result).text).toBe('one, two, three')
    expect(new Set([one, two, three].map((run) => run.conversationId))).toEqual(
      new Set([conversationIdFor(clerk(), 'kgV3x-chat', { owner: 'ann' })]),
    )
  })

  test('is another one for each owner and each agent, and begins anew when it was forgotten', async () => {
    const rows = create()
    onTestFinished(() => rows.drop())
    const runtime = openRuntime({ store: rows.open() })
    const say = async (name: string, options: StartOptions) =>
      (await runtime.run(clerk(name), 'hi', options).result).text
    const conversationKey = '1'

    const said = [
      await say('clerk', { conversationKey }),
      await say('clerk', { conversationKey, owner: 'ann' }),
      await say('clerk', { conversationKey, owner: 'bob' }),
      await say('baker', { conversationKey, owner: 'bob' }),
    ]
    expect(said).toEqual(['hi', 'hi', 'hi', 'hi'])
    expect(await say('clerk', { conversationKey, owner: 'bob' })).toBe('hi, hi')

    await runtime.forget(conversationIdFor(clerk(), conversationKey, { owner: 'bob' }))
    expect(await say('clerk', { conversationKey, owner: 'bob' })).toBe('hi')
    expect(await say('clerk', { conversationKey, owner: 'ann' })).toBe('hi, hi')
  })
})

test('I9: nobody reaches the conversation of a key under another owner by its id', async () => {
  const runtime = openRuntime()
  await runtime.run(clerk(), 'hi', { conversationKey: 'x', owner: 'ann' }).result
  const conversationId = conversationIdFor(clerk(), 'x', { owner: 'ann' })

  await expect(runtime.run(clerk(), 'hi', { conversationId, owner: 'bob' }).result).rejects.toThrow(NotFoundError)
})

test.each<[string, object]>([
  ['an empty key', { conversationKey: '' }],
  ['a key of spaces', { conversationKey: '  ' }],
  ['a key that is a number', { conversationKey: 5 }],
  ['a key and an id', { conversationKey: 'x', conversationId: '01928c5e-5b00-7abc-8def-0123456789ab' }],
  ['an empty owner', { owner: '' }],
  ['an owner that is a number', { owner: 7 }],
])('%s is refused where it is given', (_, options) => {
  const runtime = openRuntime()

  expect(() => runtime.run(clerk(), 'hi', options as StartOptions)).toThrow(DefinitionError)
})
