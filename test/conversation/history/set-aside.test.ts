import { agent, type ConversationHandle, type Runtime } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { localStore } from '../../support/rows.ts'
import { lasting } from '../../support/stores.ts'
import { echo, expectLawful, say, shown, textsOf } from './support.ts'

/** A host that starts a child in the background when it is told to, and the child, which waits for the gate. */
function hostAndChild() {
  const gate = makeGate()
  const childModel = scriptedModel(async () => {
    await gate.opened
    return 'read'
  })
  const child = agent({ name: 'reader', instructions: '', model: childModel })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'user' && last.content === 'start') {
      return { calls: [{ name: 'subagent_spawn', input: { name: 'log', prompt: 'Read.' } }] }
    }
    return String(last?.content).startsWith('[background]') ? 'told' : 'ok'
  })
  const tools = { ...backgroundSubagents({ agent: child }) }
  return { gate, child, host: agent({ name: 'host', instructions: '', model, tools }) }
}

/** What one process begins another goes on with; or one process does all of it. */
const WAYS = [
  ['in one process', false],
  ['with a restart before and after', true],
] as const
const ways = lasting.flatMap(([name, create]) => WAYS.map(([way, restarts]) => [name, way, create, restarts] as const))

describe.each(ways)('a turn that is set aside, on %s, %s', (_name, _way, create, restarts) => {
  const { start } = useWorld(create)

  async function edited(change: (talk: ConversationHandle, userId: string) => Promise<unknown>) {
    const parts = hostAndChild()
    const agents = [parts.host, parts.child]
    let { runtime } = start({ agents })
    const talkOf = async () => {
      if (restarts) {
        await runtime.close()
        runtime = start({ agents }).runtime
        await runtime.resume()
      }
      return runtime.conversation(one.run.conversationId)
    }
    const one = await say(runtime, parts.host, 'start')
    const childId = localStore(runtime).linksOf(one.run.id)[0]?.id ?? ''
    await change(await talkOf(), one.user.id)
    const talk = await talkOf()
    return { ...parts, runtime, talk, one, childId }
  }

  async function settled(runtime: Runtime, talk: ConversationHandle): Promise<string[]> {
    await runtime.idle()
    return (await talk.transcript()).map(({ text }) => text)
  }

  test('has its children in the background cancelled, and they wake nobody', async () => {
    const { runtime, talk, childId } = await edited(async (conversation, userId) => {
      await (await conversation.history.edit(userId, 'never mind')).result
    })

    expect(await settled(runtime, talk)).toEqual(['never mind', 'ok'])
    expect(localStore(runtime).turn(childId)?.outcome?.status).toBe('cancelled')
    expect(localStore(runtime).link(childId)?.deliveredTo).toBe('undeliverable')
    expectLawful(localStore(runtime))
  })

  test('keeps them if that is asked for: they go on, and wake nobody', async () => {
    const { runtime, talk, childId, gate } = await edited(async (conversation, userId) => {
      await (await conversation.history.edit(userId, 'never mind', { background: 'keep' })).result
    })
    gate.open()

    expect(await settled(runtime, talk)).toEqual(['never mind', 'ok'])
    expect(localStore(runtime).turn(childId)?.outcome).toMatchObject({ status: 'completed' })
    expect(localStore(runtime).link(childId)?.deliveredTo).toBe('undeliverable')
    expectLawful(localStore(runtime))
  })

  test('a turn that is adopted again while a kept child works is told of its end', async () => {
    const { runtime, talk, gate, one } = await edited(async (conversation, userId) => {
      await (await conversation.history.edit(userId, 'never mind', { background: 'keep' })).result
    })
    await talk.history.adopt(one.answer.id)
    gate.open()

    expect((await settled(runtime, talk)).at(-1)).toBe('told')
    expectLawful(localStore(runtime))
  })

  /** The first answer is adopted again while a child that the edited turn started is at work. */
  async function adopted(how: 'cancel' | 'keep' | undefined) {
    const parts = hostAndChild()
    const before = start({ agents: [parts.host, parts.child] })
    const one = await say(before.runtime, parts.host, 'hello')
    const edited = await (await before.runtime.conversation(one.run.conversationId)).history.edit(one.user.id, 'start')
    await edited.result
    await before.runtime.close()

    const { runtime } = start({ agents: [parts.host, parts.child] })
    const talk = await runtime.conversation(one.run.conversationId)
    await talk.history.adopt(one.answer.id, ...(how === undefined ? [] : [{ background: how }]))
    return { ...parts, runtime, talk, one, childId: localStore(runtime).linksOf(edited.id)[0]?.id ?? '' }
  }

  test.each([undefined, 'cancel'] as const)(
    'by adopt (%s) has its children in the background cancelled',
    async (how) => {
      const { runtime, talk, childId } = await adopted(how)

      expect(await settled(runtime, talk)).toEqual(['hello', 'ok'])
      expect(localStore(runtime).turn(childId)?.outcome).toMatchObject({ status: 'cancelled' })
      expect(localStore(runtime).link(childId)?.deliveredTo).toBe('undeliverable')
      expectLawful(localStore(runtime))
    },
  )

  test('by adopt keeps them if that is asked for, also when something else is set aside then', async () => {
    const { runtime, talk, one, childId, gate } = await adopted('keep')
    await (await talk.history.rerun(one.answer.id)).result
    const [said] = await talk.transcript()
    await (await talk.history.edit(said?.nodeId ?? '', 'never mind')).result
    gate.open()

    expect(await settled(runtime, talk)).toEqual(['never mind', 'ok'])
    expect(localStore(runtime).turn(childId)?.outcome).toMatchObject({ status: 'completed' })
    expect(localStore(runtime).link(childId)?.deliveredTo).toBe('undeliverable')
    expectLawful(localStore(runtime))
  })

  test('keeps the children whose calls the new turn keeps: a rerun is told of their end', async () => {
    const { runtime, talk, gate, one } = await edited(async () => undefined)
    await (await talk.history.rerun(one.answer.id)).result
    gate.open()

    expect((await settled(runtime, talk)).at(-1)).toBe('told')
    expectLawful(localStore(runtime))
  })

  test('refuses what is no choice', async () => {
    const { talk, one, gate } = await edited(async () => undefined)
    gate.open()
    await expect(talk.history.edit(one.user.id, 'x', { background: 'stop' as never })).rejects.toThrow(
      /"cancel", "keep"/,
    )
    await expect(talk.history.rerun(one.answer.id, { backgroud: 'keep' } as never)).rejects.toThrow(/"background"/)
  })

  test('archive({ mode: "cancel" }) cancels what works in the background', async () => {
    const { runtime, talk, childId } = await edited((conversation) => conversation.history.archive({ mode: 'cancel' }))

    expect(await settled(runtime, talk)).toEqual(['start', 'ok'])
    expect(localStore(runtime).turn(childId)?.outcome?.status).toBe('cancelled')
    expectLawful(localStore(runtime))
  })
})

describe.each(lasting)('what is made anew, on %s', (_, create) => {
  const { start } = useWorld(create)

  test('a merge is made for its own prompt, and keeps the attributes of its lane, also after a restart', async () => {
    const { model, echo: who } = echo()
    const before = start({ agents: [who] })
    const first = before.runtime.run(who, 'one', { attributes: { tenant: 'acme' } })
    const { answerNodeId } = await first.result
    const talkBefore = await before.runtime.conversation(first.conversationId)
    const lane = await talkBefore.history.fork(answerNodeId ?? '')
    await say(before.runtime, who, 'left', lane.id)
    const one = await talkBefore.history.merge([lane.id], { prompt: 'short' })
    await one.result
    await before.runtime.close()

    const { runtime } = start({ agents: [who] })
    const talk = await runtime.conversation(first.conversationId)
    const again = await talk.history.merge([lane.id], { prompt: 'short' })
    const other = await talk.history.merge([lane.id], { prompt: 'long' })
    await other.result

    expect(again.id).toBe(one.id)
    expect(other.id).not.toBe(one.id)
    expect(shown(model).at(-1)).toBe('long')
    expect(localStore(runtime).turn(one.id)?.attributes).toEqual(localStore(runtime).turn(first.id)?.attributes)
    expect(JSON.stringify(localStore(runtime).turn(other.id)?.attributes)).toContain('acme')
    expectLawful(localStore(runtime))
  })

  test('an edited request keeps its slots and its output', async () => {
    const model = scriptedModel(() => '{"title":"x"}')
    const who = agent({ name: 'who', instructions: '', model })
    const first = start({ agents: [who] })
    const run = who
      .request()
      .input('Write')
      .info({ language: 'German' })
      .output(z.object({ title: z.string() }))
      .start({ runtime: first.runtime })
    expect(await run.result).toMatchObject({ status: 'completed', output: { title: 'x' } })
    await first.runtime.close()

    const { runtime } = start({ agents: [who] })
    const talk = await runtime.conversation(run.conversationId)
    const [said] = await talk.transcript()
    const edited = await talk.history.edit(said?.nodeId ?? '', 'Rewrite')
    const outcome = await edited.result
    const asked = shown(model).join('\n')

    expect(outcome).toMatchObject({ status: 'completed', output: { title: 'x' } })
    expect(asked).toContain('German')
    expect(asked).toContain('Rewrite')
    expect(asked).not.toContain('Write\n')
    const rerun = await (await talk.history.rerun(outcome.answerNodeId ?? '')).result
    expect(rerun).toMatchObject({ status: 'completed', output: { title: 'x' } })
    expect(shown(model).join('\n')).toContain('Rewrite')
  })

  test('a message that was put in by hand is edited, and edited once more after a restart', async () => {
    const { model, echo: who } = echo()
    const first = start({ agents: [who] })
    const { run } = await say(first.runtime, who, 'one')
    const before = await first.runtime.conversation(run.conversationId)
    const byHand = await before.mutate((m) => {
      return { turnId: m.runId, nodeId: m.createNode({ kind: 'user_message', content: 'two' }).id }
    })
    await (await first.runtime.attach(byHand.turnId)).result
    await (await before.history.edit(byHand.nodeId, 'deux')).result
    expect(await textsOf(before)).toEqual(['one', 're: one', 'deux', 're: deux'])
    await first.runtime.close()

    const { runtime } = start({ agents: [who] })
    const talk = await runtime.conversation(run.conversationId)
    await (await talk.history.edit((await talk.transcript()).at(-2)?.nodeId ?? '', 'zwei')).result

    expect(await textsOf(talk)).toEqual(['one', 're: one', 'zwei', 're: zwei'])
    expect(shown(model).at(-1)).toBe('zwei')
    expectLawful(localStore(runtime))
  })

  test('versions lists what adopt can go back to, also what an edit replaced, also after a restart', async () => {
    const { echo: who } = echo()
    const first = start({ agents: [who] })
    const one = await say(first.runtime, who, 'one')
    const before = await first.runtime.conversation(one.run.conversationId)
    const two = await say(first.runtime, who, 'two', before.id)
    const deux = await (await before.history.edit(two.user.id, 'deux')).result
    await first.runtime.close()

    const { runtime } = start({ agents: [who] })
    const talk = await runtime.conversation(before.id)
    const zwei = await (await talk.history.edit((await talk.transcript()).at(-2)?.nodeId ?? '', 'zwei')).result
    const all = [two.answer.id, deux.answerNodeId, zwei.answerNodeId]

    for (const id of all) expect((await talk.history.versions(id ?? '')).map((node) => node.id)).toEqual(all)
    await talk.history.adopt(two.answer.id)
    expect((await talk.history.versions(two.answer.id)).map(({ id }) => id)).toEqual(all)
    expect((await talk.history.versions(one.answer.id)).map(({ id }) => id)).toEqual([one.answer.id])
    expect(await textsOf(talk)).toEqual(['one', 're: one', 'two', 're: two'])
  })
})
