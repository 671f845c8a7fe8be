import path from 'node:path'
import { agent, tool } from 'legate'
import { chatSession } from 'legate/hooks'
import type { ModelRequest } from 'legate/models'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { openRuntime } from '../support/reading.ts'
import { tempFolder } from '../support/temp-folder.ts'

function clerk(
  script: Parameters<typeof scriptedModel>[0] = ({ messages }) => `re: ${messages.at(-1)?.content}`,
  options = {},
) {
  const model = scriptedModel(script)
  return { model, who: agent({ name: 'clerk', instructions: 'You sell shoes.', model }).use(chatSession(options)) }
}

function said(request: ModelRequest | undefined): unknown[] {
  return (request?.messages ?? []).slice(1).map(({ content }) => content)
}

describe('chats', () => {
  test('after three rounds the fourth request has all six messages, in order', async () => {
    const { who, model } = clerk()
    const chat = who.activateChatSession()
    for (const text of ['one', 'two', 'three', 'four']) await chat.generate(text)

    expect(said(model.requests[3])).toEqual(['one', 're: one', 'two', 're: two', 'three', 're: three', 'four'])
    expect((await chat.history()).slice(-2)).toEqual([
      { role: 'user', content: 'four' },
      { role: 'assistant', content: 're: four' },
    ])
  })

  test('chats of one agent are apart; one that is activated again goes on; without one there is no history', async () => {
    const { who, model } = clerk()
    const runtime = openRuntime()
    await who.activateChatSession('ann', { runtime }).generate('I am Ann')
    await who.activateChatSession('bob', { runtime }).generate('I am Bob')
    const again = who.activateChatSession('ann', { runtime })
    await again.generate('Who am I?')
    await who.request().input('Nobody').start({ runtime }).result

    expect(said(model.requests[2])).toEqual(['I am Ann', 're: I am Ann', 'Who am I?'])
    expect(said(model.requests[3])).toEqual(['Nobody'])
    expect(who.activateChatSession(again.conversationId, { runtime }).conversationId).toBe(again.conversationId)
    expect(await who.activateChatSession('carl', { runtime }).history()).toEqual([])
  })

  test('the store brings it back in another process', async () => {
    const file = path.join(tempFolder(), 'a.db')
    const first = openRuntime({ store: sqliteStore(file) })
    await clerk().who.activateChatSession('ann', { runtime: first }).generate('I am Ann')
    await first.close()
    const { who, model } = clerk()
    const runtime = openRuntime({ store: sqliteStore(file) })
    await who.activateChatSession('ann', { runtime }).generate('Who am I?')

    expect(said(model.requests[0])).toEqual(['I am Ann', 're: I am Ann', 'Who am I?'])
  })

  test('another owner’s chat of the same name is another chat', async () => {
    const { who, model } = clerk()
    const runtime = openRuntime()
    const ann = who.activateChatSession('x', { runtime, owner: 'ann' })
    await ann.generate('secret')
    await who.activateChatSession('x', { runtime, owner: 'bob' }).generate('hello')

    expect(said(model.requests[1])).toEqual(['hello'])
    const stolen = who.activateChatSession(ann.conversationId, { runtime, owner: 'bob' })
    await expect(stolen.generate('hello')).rejects.toThrow(/There is no conversation/)
  })

  const reply = '{"reply":"Yes.","score":0,"items":[{"t":"a"},{"t":"b"}],"why":"long story"}'
  const shape = { reply: 'str', score: 'int', items: [{ t: 'str' }], why: 'str' } as const

  test.each<[string, object, string, string]>([
    ['the input and the whole answer', {}, 'Do you?', reply],
    [
      'slots and answers at paths, all of them',
      { recordInputPaths: ['input', ['info', 'user.name']], recordOutputPaths: ['reply', '/score', 'items[*].t'] },
      'input: Do you?\ninfo:\n  user.name: Ann',
      'reply: Yes.\n/score: 0\nitems[*].t:\n  - a\n  - b',
    ],
    [
      'the first that is there',
      {
        recordInputPaths: [['info', '/user/age'], ['info', 'user.name'], 'input'],
        recordInputMode: 'first',
        recordOutputPaths: ['none', 'score'],
        recordOutputMode: 'first',
      },
      'Ann',
      '0',
    ],
    ['a whole slot', { recordInputPaths: ['info'], recordInputMode: 'first' }, 'user:\n  name: Ann', reply],
    [
      'paths that find nothing: all of it',
      { recordInputPaths: ['nothing'], recordOutputPaths: ['nothing'] },
      'Do you?',
      reply,
    ],
  ])('what is kept: %s', async (_, options, input, output) => {
    const { who, model } = clerk([reply, 'ok'], options)
    const chat = who.activateChatSession()
    await chat
      .request()
      .input('Do you?')
      .info({ user: { name: 'Ann' } })
      .instruct('Be kind.')
      .output(shape)
      .generate()
    await chat.generate('More?')
    const kept = said(model.requests[1]).map((text) =>
      String(text).replaceAll('"user.name"', 'user.name').replaceAll('"items[*].t"', 'items[*].t'),
    )

    expect(kept).toEqual([input, output, 'More?'])
    expect(said(model.requests[0]).at(-1)).toMatch(/Be kind\./)
  })

  test('what is kept can be changed for what comes next, modes too', async () => {
    const { who, model } = clerk([reply, reply, 'ok'])
    const chat = who.activateChatSession()
    const short = chat.recordOutputPaths(['reply', 'why'], 'first').recordInputPaths(['input', 'info'], 'first')
    await short.request().input('one').output(shape).generate()
    await chat.request().input('two').output(shape).generate()
    await chat.generate('three')

    expect(said(model.requests[2])).toEqual(['one', 'Yes.', 'two', reply, 'three'])
  })

  test('after many equal rounds the request has grown in proportion', async () => {
    const { who, model } = clerk(() => 'y')
    const chat = who.activateChatSession()
    for (let round = 0; round < 12; round++) await chat.request().input('x').info('some info').generate()
    const sizes = model.requests.map(({ messages }) => JSON.stringify(messages).length)
    const steps = sizes.slice(1).map((size, at) => size - (sizes[at] ?? 0))

    expect(new Set(steps).size).toBe(1)
  })

  test('no more history than wanted: the newest messages that fit', async () => {
    const { who, model } = clerk(() => '12345', { maxLength: 20 })
    const chat = who.activateChatSession()
    for (const text of ['aaaaa', 'bbbbb', 'ccccc', 'ddddd']) await chat.generate(text)
    const tiny = clerk(() => '12345', { maxLength: 3 })
    const other = tiny.who.activateChatSession()
    await other.generate('aaaaa')
    await other.generate('b')

    expect(said(model.requests[3])).toEqual(['bbbbb', '12345', 'ccccc', '12345', 'ddddd'])
    expect(said(tiny.model.requests[1])).toEqual(['345', 'b'])
  })

  test('an event says which rounds are left out for it, once a run', async () => {
    const { who } = clerk(() => '12345', { maxLength: 14 })
    const runtime = openRuntime()
    const chat = who.activateChatSession('cut', { runtime })
    const cuts: unknown[] = []
    for (const text of ['aaaaa', 'bbbbb', 'ccccc']) {
      const run = chat.stream(text)
      for await (const event of run) if (event.type === 'context-cut') cuts.push([event.shown, event.leftOut])
      cuts.push(text)
    }

    expect(cuts).toEqual(['aaaaa', 'bbbbb', [2, 1], 'ccccc'])
  })

  test('two requests of one chat at once run one after the other', async () => {
    const { who, model } = clerk(({ messages }) => ({ text: `re: ${messages.at(-1)?.content}`, delayMs: 20 }))
    const chat = who.activateChatSession()
    await Promise.all(['one', 'two', 'three'].map((text) => chat.generate(text)))

    expect(said(model.requests[2])).toEqual(['one', 're: one', 'two', 're: two', 'three'])
  })

  test('what failed or was cancelled is not kept', async () => {
    const { who, model } = clerk([{ error: new Error('broken') }, { delayMs: 5_000, text: 'late' }, 'ok'])
    const chat = who.activateChatSession()
    await expect(chat.generate('fails')).rejects.toThrow(/failed/)
    const run = chat.stream('is cancelled')
    setTimeout(() => run.cancel(), 30)
    await run.result
    await chat.generate('works')

    expect(said(model.requests[2])).toEqual(['works'])
    expect(await chat.history()).toHaveLength(2)
  })

  test('a round with tools is kept as question and answer; within its round it has all of it', async () => {
    const look = tool({ description: '', input: { type: 'object' }, execute: () => 'seen' })
    const model = scriptedModel([{ calls: [{ name: 'look', input: {} }] }, 'I saw it.', 'ok'])
    const chat = agent({ name: 'who', instructions: 'x', model, tools: { look } })
      .use(chatSession())
      .activateChatSession()
    await chat.generate('Look.')
    await chat.generate('Well?')

    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool'])
    expect(said(model.requests[2])).toEqual(['Look.', 'I saw it.', 'Well?'])
  })

  test.each<[object, RegExp]>([
    [{ recordInputMode: 'last' }, /recordInputMode must be one of "all", "first"/],
    [{ recordOutputPaths: ['a['] }, /chatSession\(\)/],
    [{ recordInputPaths: [['', 'x']] }, /a place in a request/],
    [{ recordOutputPaths: [7] }, /a path is a text/],
    [{ maxLength: -1 }, /maxLength/],
  ])('what cannot be kept is refused: %j', (options, message) => {
    expect(() => chatSession(options)).toThrow(message)
  })

  test('an agent without the extension has no chats, and an empty id counts as none', () => {
    expect('activateChatSession' in agent({ name: 'a', instructions: '' })).toBe(false)
    expect(() => clerk().who.activateChatSession(' ')).toThrow(/the id is a text/)
  })
})

test('a conversation that is made by its id must have one in the form of ids', () => {
  const who = agent({ name: 'who', instructions: '', model: scriptedModel(() => 'ok') })

  expect(() => openRuntime().run(who, 'x', { conversationId: 'mine', createConversation: true })).toThrow(
    /is not an id/,
  )
})
