import { agent, type ConversationHandle, type Runtime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { useWorld } from '../../support/agents.ts'
import { localStore } from '../../support/rows.ts'
import { lasting } from '../../support/stores.ts'
import { echo, expectLawful, say, shown } from './support.ts'

/** Hands each input on to its expert, in the session that it was told of last. */
function hostOf(expert: ReturnType<typeof echo>, memory: 'session' | undefined) {
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return `done ${String(messages.findLast(({ role }) => role === 'user')?.content)}`
    const known = messages.findLast(({ role }) => role === 'tool')
    const id = /session_id: (\S+)/.exec(String(known?.content ?? ''))?.[1]
    const message = String(last?.content)
    return { calls: [{ name: 'ask', input: { message, ...(id === undefined ? {} : { session_id: id }) } }] }
  })
  const ask =
    memory === undefined ? { agent: expert.echo } : { agent: typed(expert), memory, briefing: 'none' as const }
  return agent({ name: 'host', instructions: '', model, subagents: { ask } })
}

/** The typed contract: it has one conversation, and no ids of sessions. */
function typed({ model }: ReturnType<typeof echo>) {
  return agent({ name: 'expert', instructions: '', model, input: z.object({ message: z.string() }) })
}

/** What the expert was told, in short. */
function heard({ model }: ReturnType<typeof echo>): string {
  const said = shown(model).filter((text) => !text.startsWith('re:'))
  return said.map((text) => /"message":"(\w+)"/.exec(text)?.[1] ?? text).join(' ')
}

describe.each(lasting)('a session whose host’s history is changed, on %s', (_, create) => {
  const { start } = useWorld(create)

  async function reopened(id: string): Promise<{ runtime: Runtime; talk: ConversationHandle }> {
    const { runtime } = start()
    return { runtime, talk: await runtime.conversation(id) }
  }

  describe.each([
    ['of the message contract', undefined],
    ['of a subagent that remembers', 'session' as const],
  ])('%s', (_name, memory) => {
    test('knows again what was said when an edit is taken back', async () => {
      const expert = echo('expert')
      const host = hostOf(expert, memory)
      const first = start().runtime
      const a = await say(first, host, 'A')
      const id = a.run.conversationId
      const b = await say(first, host, 'B', id)
      const edited = await (await (await first.conversation(id)).history.edit(b.user.id, 'C')).result
      expect(heard(expert)).toBe('A C')
      await first.close()

      const { runtime, talk } = await reopened(id)
      await talk.history.adopt(b.answer.id)
      await say(runtime, host, 'E', id)

      expect((await talk.transcript()).filter(({ role }) => role === 'user').map(({ text }) => text)).toEqual([
        'A',
        'B',
        'E',
      ])
      expect(heard(expert)).toBe('A B E')
      await talk.history.adopt(edited.answerNodeId ?? '')
      await say(runtime, host, 'D', id)
      expect(heard(expert)).toBe('A C D')
      await say(runtime, host, 'F', id)
      expect(heard(expert)).toBe('A C D F')
      expectLawful(localStore(runtime))
    })

    test('knows each of three versions, whichever is adopted', async () => {
      const expert = echo('expert')
      const host = hostOf(expert, memory)
      const { runtime } = start()
      const a = await say(runtime, host, 'A')
      const id = a.run.conversationId
      const talk = await runtime.conversation(id)
      const b = await say(runtime, host, 'B', id)
      const c = await (await talk.history.edit(b.user.id, 'C')).result
      await talk.history.adopt(b.answer.id)
      const e = await say(runtime, host, 'E', id)
      const g = await (await talk.history.edit(e.user.id, 'G')).result
      expect(heard(expert)).toBe('A B G')

      await talk.history.adopt(c.answerNodeId ?? '')
      await say(runtime, host, 'H', id)
      expect(heard(expert)).toBe('A C H')
      await talk.history.adopt(g.answerNodeId ?? '')
      await say(runtime, host, 'I', id)
      expect(heard(expert)).toBe('A B G I')
      await talk.history.adopt(e.answer.id)
      await say(runtime, host, 'J', id)
      expect(heard(expert)).toBe('A B E J')
      expectLawful(localStore(runtime))
    })

    test('forgets what its first message was edited to, and knows it when that is adopted', async () => {
      const expert = echo('expert')
      const host = hostOf(expert, memory)
      const { runtime } = start()
      const a = await say(runtime, host, 'A')
      const talk = await runtime.conversation(a.run.conversationId)
      await (await talk.history.edit(a.user.id, 'Z')).result
      expect(heard(expert)).toBe('Z')
      await talk.history.adopt(a.answer.id)
      await say(runtime, host, 'B', talk.id)
      expect(heard(expert)).toBe('A B')
      expectLawful(localStore(runtime))
    })
  })
})
