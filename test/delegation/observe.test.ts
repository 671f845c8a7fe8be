import { agent, InputError } from 'legate'
import { readTrees, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { brokenGraph } from '../../src/testing/crash/aftermath.ts'
import { unsettled } from '../../src/testing/crash/laws.ts'
import { makeGate } from '../support/gate.ts'
import { eventsOf, openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const listener = (model = scriptedModel(() => 'ok')) => ({
  model,
  who: agent({ name: 'listener', instructions: '', model }),
})

async function talk() {
  const { model, who } = listener()
  const runtime = openRuntime()
  const first = await runtime.run(who, 'one').result
  const conversation = await runtime.conversation(first.conversationId)
  const next = (text: string) => runtime.run(who, text, { conversationId: first.conversationId }).result
  return { model, who, runtime, conversation, next, conversationId: first.conversationId }
}

describe('observe adds a message without starting a turn', () => {
  test('no model is called, and the next turn’s model sees it in its place', async () => {
    const { model, conversation, next } = await talk()

    await conversation.observe('By the way: it rains.')
    expect(model.requests).toHaveLength(1)
    await next('two')

    expect(model.requests[1]?.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'one'],
      ['assistant', 'ok'],
      ['user', 'By the way: it rains.'],
      ['user', 'two'],
    ])
  })

  test.each([
    ['user', 'user'],
    ['developer', 'system'],
    ['agent', 'assistant'],
  ] as const)('said by %s it is read as %s', async (role, read) => {
    const { model, conversation, next } = await talk()

    await conversation.observe({ role, content: 'It rains.' })
    await next('two')

    expect(model.requests[1]?.messages.at(-2)).toMatchObject({ role: read, content: 'It rains.' })
  })

  test('the message may hold pictures, and people see it in the transcript', async () => {
    const { model, conversation, next } = await talk()
    const content = [
      { type: 'text', text: 'Look.' },
      { type: 'image', mediaType: 'image/png', data: 'aGk=' },
    ] as const

    const nodeId = await conversation.observe(content)
    await next('two')

    expect(model.requests[1]?.messages.at(-2)).toEqual({ role: 'user', content })
    const lines = await conversation.recentTurns()
    expect(lines.map(({ text }) => text)).toEqual(['one', 'ok', 'Look.', 'two', 'ok'])
    expect(lines[2]).toMatchObject({ nodeId, role: 'user', state: 'finished' })
  })

  test('while a turn runs it comes after it: what that turn’s model is shown stays as it is', async () => {
    const held = makeGate()
    const model = scriptedModel(async (_request, call) => {
      if (call === 1) await held.opened
      return `answer ${call}`
    })
    const { who } = listener(model)
    const runtime = openRuntime()
    const { conversationId } = await runtime.run(who, 'one').result
    const running = runtime.run(who, 'two', { conversationId })
    const conversation = await runtime.conversation(conversationId)

    await conversation.observe('In between.')
    held.open()
    await running.result
    await runtime.run(who, 'three', { conversationId }).result

    expect(model.requests[2]?.messages.map(({ content }) => content)).toEqual([
      ...['one', 'answer 0', 'two', 'answer 1', 'In between.', 'three'],
    ])
  })

  test('many at once are all there, each once', async () => {
    const { model, conversation, next } = await talk()
    const texts = Array.from({ length: 20 }, (_, at) => `note ${at}`)

    await Promise.all(texts.map((text) => conversation.observe(text)))
    await next('two')

    const seen = model.requests[1]?.messages.map(({ content }) => String(content)) ?? []
    expect(seen.filter((text) => text.startsWith('note')).sort()).toEqual([...texts].sort())
  })

  test('leaves a tree in which every law holds', async () => {
    const { runtime, conversation, next, conversationId } = await talk()
    await conversation.observe('It rains.')
    await next('two')

    const [tree] = readTrees(localStore(runtime)).filter(({ conversations }) => conversations.has(conversationId))
    expect(tree?.turns.size).toBe(3)
    expect(tree && [...brokenGraph(tree), ...unsettled(tree)]).toEqual([])
  })

  test('readers of a run do not see it as part of theirs', async () => {
    const { runtime, who, conversation, conversationId } = await talk()
    await conversation.observe('It rains.')

    const run = runtime.run(who, 'two', { conversationId })
    const events = await eventsOf(run)

    expect(JSON.stringify(events)).not.toContain('It rains.')
    const page = await conversation.eventPage({ types: ['message'] })
    expect(JSON.stringify(page)).toContain('It rains.')
  })

  test.each([
    [''],
    ['  '],
    [[]],
    [null],
    [7],
    [undefined],
    [{ role: 'tool', content: 'x' }],
    [{ role: 'user' }],
    [{ role: 'user', content: 'x', name: 'y' }],
    [{ role: 'user', content: [{ type: 'reasoning', text: 'x' }] }],
    [() => 'x'],
  ])('%j is refused, and nothing is added', async (message) => {
    const { runtime, conversation, conversationId } = await talk()

    await expect(conversation.observe(message as never)).rejects.toThrow(InputError)
    expect(localStore(runtime).conversation(conversationId)?.turnCount).toBe(1)
  })
})
