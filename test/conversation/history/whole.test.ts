import { agent, type Runtime, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { chatSession } from 'legate/hooks'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { useWorld } from '../../support/agents.ts'
import { eventsOfType, localStore } from '../../support/rows.ts'
import { lasting } from '../../support/stores.ts'
import { expectLawful, say, shown } from './support.ts'

const ROUNDS = 60

function counter(options: { contextTurns?: number; input?: z.ZodType } = {}) {
  const model = scriptedModel(({ messages }) => `heard ${messages.filter(({ role }) => role === 'user').length}`)
  return { model, who: agent({ name: 'who', instructions: '', model, ...options }) }
}

const summedUp: Script = ({ messages }) =>
  String(messages.at(-1)?.content).startsWith('Sum up the conversation') ? 'SUMMARY' : 'ok'

/** A host that hands every input on to its expert, and says what it said. */
function hostOf(expert: ReturnType<typeof counter>['who'], options: object = {}) {
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return String(last.content)
    const known = messages.findLast(({ role, content }) => role === 'tool' && String(content).includes('session_id'))
    const sessionId = /session_id: (\S+)/.exec(String(known?.content ?? ''))?.[1]
    const input = { message: String(last?.content), ...(sessionId === undefined ? {} : { session_id: sessionId }) }
    return { calls: [{ name: 'ask', input }] }
  })
  return agent({ name: 'host', instructions: '', model, subagents: { ask: { agent: expert, ...options } } })
}

describe.each(lasting)('nothing is forgotten in silence, on %s', (_, create) => {
  const { start } = useWorld(create)

  async function talk(who: Parameters<Runtime['run']>[0], rounds: number): Promise<string> {
    let id: string | undefined
    for (const part of [0, 1]) {
      const { runtime } = start()
      for (let at = 0; at < rounds / 2; at++) {
        id = (await say(runtime, who, `${part}-${at}`, id)).run.conversationId
      }
      await runtime.close()
    }
    return id ?? ''
  }

  test('a conversation shows its model every round, also after a restart', async () => {
    const { model, who } = counter()

    const id = await talk(who, ROUNDS)

    expect(shown(model)).toHaveLength(ROUNDS * 2 - 1)
    const { runtime } = start()
    expect(eventsOfType(localStore(runtime), id, 'context-cut')).toEqual([])
    const last = (await (await runtime.conversation(id)).recentTurns()).at(-1)
    expect(last?.text).toBe(`heard ${ROUNDS}`)
    expect(await (await runtime.conversation(id)).contextFor(last?.nodeId ?? '')).toHaveLength(ROUNDS * 2)
  })

  test.each([
    ['a session of the message contract', {}, {}],
    [
      'a subagent that remembers',
      { input: z.object({ message: z.string() }) },
      { memory: 'session', briefing: 'none' },
    ],
  ])('%s shows every round', async (_name, contract, options) => {
    const { model, who } = counter(contract)

    await talk(hostOf(who, options), ROUNDS)

    expect(model.requests).toHaveLength(ROUNDS)
    expect(shown(model).filter((text) => /\b\d-\d+\b/.test(text))).toHaveLength(ROUNDS)
  })

  test('a chat shows every round, and only those that count', async () => {
    const { model, who } = counter()
    const { runtime } = start()
    const chat = who.use(chatSession()).activateChatSession('c', { runtime })
    for (let at = 0; at < ROUNDS; at++) await chat.generate(`q${at}`)

    expect(shown(model)).toHaveLength(ROUNDS * 2 - 1)
    expect(await chat.history()).toHaveLength(ROUNDS * 2)
    const conversation = await runtime.conversation(chat.conversationId)
    const said = (await conversation.transcript({ limitTurns: 1 }))[0]
    await (await conversation.history.edit(said?.nodeId ?? '', 'in other words')).result
    expect((await chat.history()).filter(({ role }) => role === 'user')).toHaveLength(ROUNDS)
  })

  test('configure({ contextTurns }) says how many from the next node on, also after a restart', async () => {
    const { model, who } = counter()
    const { runtime } = start()
    const id = (await say(runtime, who, 'q0')).run.conversationId
    await say(runtime, who, 'q1', id)
    await (await runtime.conversation(id)).configure({ contextTurns: 2 })
    await say(runtime, who, 'q2', id)
    await runtime.close()
    await say(start().runtime, who, 'q3', id)

    const asked = model.requests.map(({ messages }) => messages.filter(({ role }) => role === 'user').length)
    expect(asked).toEqual([1, 2, 2, 2])
  })

  test('where rounds are left out, an event says how many, once per run', async () => {
    const look = tool({ description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' })
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'ok' : { calls: [{ name: 'look', input: {} }] },
    )
    const who = agent({ name: 'who', instructions: '', model, tools: { look }, contextTurns: 3 })
    let id: string | undefined
    for (let at = 0; at < 6; at++) {
      const { runtime } = start()
      id = (await say(runtime, who, `q${at}`, id)).run.conversationId
      await runtime.close()
    }

    const { runtime } = start()
    const told = eventsOfType(localStore(runtime), id ?? '', 'context-cut')
    expect(told.map(({ shown: rounds, leftOut }) => [rounds, leftOut])).toEqual([
      [3, 1],
      [3, 2],
      [3, 3],
    ])
    const conversation = await runtime.conversation(id ?? '')
    const [turn] = localStore(runtime).turnsOf(conversation.id, { last: 1, limit: 1 })
    await conversation.history.compress({ toRunId: turn?.id ?? '', summary: 'the first two' })
    await say(runtime, who, 'q6', id)
    expect(eventsOfType(localStore(runtime), id ?? '', 'context-cut').at(-1)?.leftOut).toBe(2)
    expectLawful(localStore(runtime))
  })

  test('a child of the spawn tools is shown 50 rounds, and the event says so, also after restarts', async () => {
    const { model: childModel, who } = counter()
    const model = scriptedModel(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool' || String(last?.content).startsWith('<')) return String(last?.content)
      const child = /"child_conversation_id":"([^"]+)"/.exec(JSON.stringify(messages).replaceAll('\\', ''))?.[1]
      return child === undefined
        ? { calls: [{ name: 'subagent_spawn', input: { name: 'child', prompt: 'begin' } }] }
        : { calls: [{ name: 'subagent_send', input: { child_conversation_id: child, message: 'more' } }] }
    })
    const tools = { ...backgroundSubagents({ agent: who, wake: 'passive' }) }
    const host = agent({ name: 'host', instructions: '', model, tools })
    let id: string | undefined
    for (const [from, to] of [
      [0, 49],
      [49, 51],
      [51, 52],
    ] as const) {
      const { runtime } = start({ agents: [host, who] })
      for (let at = from; at < to; at++) {
        id = (await say(runtime, host, `q${at}`, id)).run.conversationId
        await runtime.idle()
      }
      await runtime.close()
    }

    const { runtime } = start()
    expect(childModel.requests).toHaveLength(52)
    const rounds = childModel.requests.map(({ messages }) => messages.filter(({ role }) => role === 'user').length)
    expect(rounds.slice(-4)).toEqual([49, 50, 50, 50])
    const told = eventsOfType(localStore(runtime), id ?? '', 'context-cut')
    expect(told.map(({ shown: rounds, leftOut }) => [rounds, leftOut])).toEqual([
      [50, 1],
      [50, 2],
    ])
  })
})

describe.each(lasting)('near the end of the window, on %s', (_, create) => {
  const { start } = useWorld(create)

  test('a conversation with a model that nobody knows is summed up before 128,000 tokens, not as system, also after a restart', async () => {
    const model = scriptedModel(summedUp)
    const who = agent({ name: 'who', instructions: 'Be brief.', model })
    const first = start()
    let id: string | undefined
    for (let at = 0; at < 5; at++) {
      id = (await say(first.runtime, who, `${at} ${'x'.repeat(100_000)}`, id)).run.conversationId
    }
    const [system, summary] = model.requests.at(-1)?.messages ?? []
    await first.runtime.close()
    const { runtime } = start()
    await say(runtime, who, 'and?', id)

    expect(eventsOfType(localStore(runtime), id ?? '', 'compaction').map(({ change }) => change)).toEqual(['automatic'])
    expect(system).toEqual({ role: 'system', content: 'Be brief.' })
    expect(summary).toMatchObject({ role: 'user', content: expect.stringContaining('SUMMARY') })
    expect(model.requests.at(-1)?.messages.slice(0, 2)).toEqual([system, summary])
  })

  test('a chat is shown the summary, then what came after it', async () => {
    const model = scriptedModel(summedUp)
    const who = agent({ name: 'who', instructions: '', model })
    const { runtime } = start({ compaction: { windowTokens: 2_000 } })
    const chat = who.use(chatSession()).activateChatSession('c', { runtime })
    for (let at = 0; at < 12; at++) await chat.generate(`q${at} ${'x'.repeat(1_000)}`)

    expect(shown(model)[0]).toContain('SUMMARY')
    expect(shown(model).filter((text) => text.includes('SUMMARY'))).toHaveLength(1)
    expect(shown(model).at(-1)).toContain('q11')
    expect((await chat.history())[0]?.content).toContain('SUMMARY')
  })

  test('a summary that fails is not tried again at every turn, and an event says that it failed', async () => {
    let tried = 0
    const model = scriptedModel(({ messages }) => {
      if (!String(messages.at(-1)?.content).startsWith('Sum up the conversation')) return 'ok'
      tried++
      throw new Error('no')
    })
    const who = agent({ name: 'who', instructions: '', model })
    const first = start({ compaction: { windowTokens: 5_000 } })
    let id = (await say(first.runtime, who, 'x'.repeat(15_000))).run.conversationId
    for (let at = 0; at < 4; at++) id = (await say(first.runtime, who, `q${at}`, id)).run.conversationId
    await first.runtime.close()
    const { runtime } = start({ compaction: { windowTokens: 5_000 } })
    for (let at = 0; at < 4; at++) await say(runtime, who, `r${at}`, id)

    expect(tried).toBe(1)
    const told = () => eventsOfType(localStore(runtime), id, 'compaction').map(({ change }) => change)
    expect(told()).toEqual(['failed'])
    await say(runtime, who, 'y'.repeat(4_000), id)
    expect(tried).toBe(2)
    expect(told()).toEqual(['failed', 'failed'])
    for (let at = 0; at < 21; at++) await say(runtime, who, `s${at}`, id)
    expect(tried).toBe(3)
    expectLawful(localStore(runtime))
  })
})
