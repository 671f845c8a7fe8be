import { agent, createRuntime, DefinitionError, NotFoundError, type StartOptions } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startProcess } from '../support/process.ts'
import { openRuntime } from '../support/reading.ts'
import { lasting, stores } from '../support/stores.ts'

/** Also one whose rows come later. */
const named = [...lasting, ...stores.filter(([name]) => name.includes('later'))]

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
      new Set([await second.conversationIdFor(clerk(), 'kgV3x-chat', { owner: 'ann' })]),
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

    await runtime.forget(await runtime.conversationIdFor(clerk(), conversationKey, { owner: 'bob' }))
    expect(await say('clerk', { conversationKey, owner: 'bob' })).toBe('hi')
    expect(await say('clerk', { conversationKey, owner: 'ann' })).toBe('hi, hi')
  })
})

test('I9: nobody reaches the conversation of a key under another owner by its id', async () => {
  const runtime = openRuntime()
  await runtime.run(clerk(), 'hi', { conversationKey: 'x', owner: 'ann' }).result
  const conversationId = await runtime.conversationIdFor(clerk(), 'x', { owner: 'ann' })

  await expect(runtime.run(clerk(), 'hi', { conversationId, owner: 'bob' }).result).rejects.toThrow(NotFoundError)
})

describe.each(named)('the key of a deleted conversation, in a store in %s', (_, create) => {
  test('begins a new conversation, the same in every process, deletion after deletion', async () => {
    const rows = create()
    onTestFinished(() => rows.drop())
    const where = { conversationKey: 'chat', owner: 'ann' }
    const ids: string[] = []
    for (let round = 0; round < 3; round++) {
      const { runtime } = startProcess(rows)
      const one = runtime.run(clerk(), 'one', where)
      const two = runtime.run(clerk(), 'two', where)
      const texts = [(await one.result).text, (await two.result).text]
      expect(texts).toEqual(['one', 'one, two'])
      expect(two.conversationId).toBe(one.conversationId)
      expect((await (await runtime.conversation(one.conversationId)).row())?.turnCount).toBe(2)
      await runtime.close()

      const other = startProcess(rows).runtime
      expect(await other.conversationIdFor(clerk(), 'chat', { owner: 'ann' })).toBe(one.conversationId)
      await other.forget(one.conversationId)
      ids.push(one.conversationId, await other.conversationIdFor(clerk(), 'chat', { owner: 'ann' }))
      await other.close()
    }
    expect(ids).toEqual([ids[0], ids[1], ids[1], ids[3], ids[3], ids[5]])
    expect(new Set(ids).size).toBe(4)
  })

  test('leads to the first conversation again when that was imported again', async () => {
    const rows = create()
    onTestFinished(() => rows.drop())
    const { runtime } = startProcess(rows)
    onTestFinished(() => runtime.close())
    const where = { conversationKey: 'chat' }
    const first = runtime.run(clerk(), 'one', where)
    await first.result
    const copy: string[] = []
    for await (const line of runtime.export(first.conversationId)) copy.push(line)
    await runtime.forget(first.conversationId)
    const second = runtime.run(clerk(), 'two', where)
    expect((await second.result).text).toBe('two')

    await runtime.import(copy)
    const third = runtime.run(clerk(), 'three', where)

    expect((await third.result).text).toBe('one, three')
    expect(third.conversationId).toBe(first.conversationId)
  })
})

test('conversationIdFor refuses a key that names nothing', async () => {
  const runtime = openRuntime()

  for (const key of ['', ' ']) await expect(runtime.conversationIdFor(clerk(), key)).rejects.toThrow(DefinitionError)
})

test.each<[string, object]>([
  ['an empty key', { conversationKey: '' }],
  ['a key of spaces', { conversationKey: '  ' }],
  ['a key that is a number', { conversationKey: 5 }],
  ['a key and an id', { conversationKey: 'x', conversationId: '01928c5e-5b00-7abc-8def-0123456789ab' }],
  ['an empty key of the run', { key: '' }],
  ['a key of the run that is a number', { key: 3 }],
  ['an empty owner', { owner: '' }],
  ['an owner that is a number', { owner: 7 }],
])('%s is refused where it is given', (_, options) => {
  const runtime = openRuntime()

  expect(() => runtime.run(clerk(), 'hi', options as StartOptions)).toThrow(DefinitionError)
})
