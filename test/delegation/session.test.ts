import { type AnyAgent, agent } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { eventsOf, only, openRuntime, resultsIn, taskOf, tasksOf } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

/** The session a result names. */
function sessionIn(content: unknown): string {
  return /^session_id: (\S+)\n\n/.exec(String(content))?.[1] ?? 'none'
}

/** Answers with everything a user said to it so far. */
function rememberer(name = 'expert') {
  const model = scriptedModel(({ messages }) => {
    const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
    return `heard ${said.join(', ')}`
  })
  return { agent: agent({ name, instructions: `You are ${name}.`, model }), model }
}

function host(script: Script, subagents: Record<string, AnyAgent>) {
  const model = scriptedModel(script)
  return { agent: agent({ name: 'host', instructions: '', model, subagents }), model }
}

describe('the sessions of the message contract', () => {
  test('without an id a new session, with it the same child goes on and remembers', async () => {
    const expert = rememberer()
    const { agent: boss, model } = host(
      (request, call) => {
        const last = resultsIn(request).at(-1)?.content
        if (call === 0) return { calls: [{ name: 'ask', input: { message: 'one' } }] }
        if (call === 1) return { calls: [{ name: 'ask', input: { message: 'two', session_id: sessionIn(last) } }] }
        return 'done'
      },
      { ask: expert.agent },
    )
    const runtime = openRuntime()

    const run = runtime.run(boss, 'go')
    expect((await run.result).status).toBe('completed')

    const [first, second] = resultsIn(model.requests[2]).map(({ content }) => String(content))
    expect(first).toMatch(/^session_id: [0-9a-f-]{36}\n\nheard one$/)
    expect(second).toBe(`session_id: ${sessionIn(first)}\n\nheard one, two`)
    const links = localStore(runtime).linksOf(run.id)
    expect(links.map(({ childConversationId }) => childConversationId)).toEqual(Array(2).fill(sessionIn(first)))
    expect(links[0]?.id).not.toBe(links[1]?.id)
    expect(localStore(runtime).conversation(sessionIn(first))?.turnCount).toBe(2)
  })

  test('a session goes on in a later turn of the host too, and its events name the run that asks now', async () => {
    const expert = rememberer()
    const { agent: boss } = host(
      (request, call) => {
        const session = sessionIn(resultsIn(request).at(-1)?.content)
        if (call === 0) return { calls: [{ name: 'ask', input: { message: 'one' } }] }
        if (call === 2) return { calls: [{ name: 'ask', input: { message: 'two', session_id: session } }] }
        return 'done'
      },
      { ask: expert.agent },
    )
    const runtime = openRuntime()
    const first = runtime.run(boss, 'go')
    await first.result

    const second = runtime.run(boss, 'more', { conversationId: first.conversationId })
    const events = await eventsOf(second)

    expect(await second.result).toMatchObject({ status: 'completed', children: 1 })
    const childRuns = only(events, 'run-start').filter(({ agent: name }) => name === 'expert')
    expect(childRuns).toHaveLength(1)
    expect(childRuns[0]?.parentId).toBe(second.id)
    expect(expert.model.requests[1]?.messages.at(-1)?.content).toBe('two')
    expect(expert.model.requests[1]?.messages).toHaveLength(4)
  })

  test('two sessions of one agent are apart', async () => {
    const expert = rememberer()
    const { agent: boss, model } = host(
      (request, call) => {
        const sessions = resultsIn(request).map(({ content }) => sessionIn(content))
        if (call === 0) return { calls: ['a', 'b'].map((message) => ({ name: 'ask', input: { message } })) }
        if (call === 1) {
          return {
            calls: sessions.map((session_id, at) => ({ name: 'ask', input: { message: `more ${at}`, session_id } })),
          }
        }
        return 'done'
      },
      { ask: expert.agent },
    )

    await openRuntime().run(boss, 'go').result

    const said = resultsIn(model.requests[2]).map(({ content }) => String(content).split('\n\n')[1])
    expect(said).toEqual(['heard a', 'heard b', 'heard a, more 0', 'heard b, more 1'])
  })

  test('an empty id is not an id', async () => {
    const expert = rememberer()
    const { agent: boss, model } = host(
      (_request, call) =>
        call === 0
          ? { calls: ['', null].map((session_id) => ({ name: 'ask', input: { message: 'hi', session_id } })) }
          : 'done',
      { ask: expert.agent },
    )

    await openRuntime().run(boss, 'go').result

    const said = resultsIn(model.requests[1]).map(({ content }) => String(content))
    expect(said.every((text) => /^session_id: [0-9a-f-]{36}\n\nheard hi$/.test(text))).toBe(true)
    expect(sessionIn(said[0])).not.toBe(sessionIn(said[1]))
  })

  test('86, I9: an unknown id, another agent’s, the host’s own, another host’s: refused in the same words', async () => {
    const expert = rememberer('expert')
    const other = rememberer('other')
    const runtime = openRuntime()
    const elsewhere = host((_request, call) => (call === 0 ? ask('ask', 'hidden') : 'done'), { ask: expert.agent })
    const hidden = runtime.run(elsewhere.agent, 'go')
    await hidden.result
    const [foreign] = localStore(runtime).linksOf(hidden.id)
    const wrong: string[] = []
    const boss = host(
      (request, call) => {
        if (call === 0) return ask('other', 'mine')
        if (call > 1) return 'done'
        const others = sessionIn(resultsIn(request)[0]?.content)
        wrong.push('nope', others, run.conversationId, foreign?.childConversationId ?? '', hidden.conversationId)
        wrong.push('..', 'a/b', '\u0000', 'x'.repeat(10_000), '会话')
        return { calls: wrong.map((session_id) => ({ name: 'ask', input: { message: 'psst', session_id } })) }
      },
      { ask: expert.agent, other: other.agent },
    )

    const run = runtime.run(boss.agent, 'go')
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', children: 1 })
    const said = resultsIn(boss.model.requests[2]).slice(1)
    expect(said.map(({ content }) => String(content))).toEqual(
      wrong.map(
        (id) =>
          `Error: Session setup failed: there is no session ${id} in this conversation. Leave session_id out to start one.`,
      ),
    )
    expect(JSON.stringify(expert.model.requests)).not.toContain('psst')
    expect(
      tasksOf(runtime, run)
        .slice(1)
        .every(({ output }) => output.subagent === undefined),
    ).toBe(true)
  })

  test('I1, I9: a foreign id does not change who runs that conversation', async () => {
    const runtime = openRuntime()
    const open = makeGate()
    const entered = makeGate()
    const slow = scriptedModel(async (_request, call) => {
      if (call === 0) return 'ready'
      if (call === 1) {
        entered.open()
        await open.opened
        return { calls: [{ name: 'nothing', input: {} }] }
      }
      return 'said by the victim'
    }, 'victim/model')
    const victim = agent({ name: 'victim', instructions: '', model: slow })
    const intruderModel = scriptedModel(() => 'said by the intruder', 'intruder/model')
    const intruder = agent({ name: 'intruder', instructions: '', model: intruderModel })
    const boss = host(
      (request, call) => {
        if (call === 0) return ask('victim', 'hello')
        const session_id = sessionIn(resultsIn(request)[0]?.content)
        if (call > 1) return 'done'
        const names = ['victim', 'intruder', 'intruder']
        const ids = [session_id, session_id, run.conversationId]
        return { calls: names.map((name, at) => ({ name, input: { message: 'go on', session_id: ids[at] ?? '' } })) }
      },
      { victim, intruder },
    )

    const run = runtime.run(boss.agent, 'go')
    await entered.opened
    await new Promise((resolve) => setTimeout(resolve, 20))
    open.open()
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
    expect(resultsIn(boss.model.requests[2]).map(({ content }) => String(content).split('\n\n').at(-1))).toEqual([
      'ready',
      'said by the victim',
      expect.stringMatching(/^Error: Session setup failed: there is no session/),
      expect.stringMatching(/^Error: Session setup failed: there is no session/),
    ])
    expect(intruderModel.requests).toHaveLength(0)
    expect(only(await eventsOf(run), 'definition-changed')).toEqual([])
  })

  test('calls on one session wait for each other, and none is lost', async () => {
    const expert = rememberer()
    const { agent: boss, model } = host(
      (request, call) => {
        const session_id = sessionIn(resultsIn(request)[0]?.content)
        if (call === 0) return ask('ask', 'zero')
        if (call > 1) return 'done'
        return { calls: ['one', 'two', 'three'].map((message) => ({ name: 'ask', input: { message, session_id } })) }
      },
      { ask: expert.agent },
    )

    await openRuntime().run(boss, 'go').result

    const said = resultsIn(model.requests[2]).map(({ content }) => String(content).split('\n\n')[1])
    expect(said).toEqual(['heard zero', 'heard zero, one', 'heard zero, one, two', 'heard zero, one, two, three'])
  })

  test('after a failure the same session works, and the error names no session', async () => {
    const expertModel = scriptedModel(['fine', { error: new Error('no quota') }, 'fine again'])
    const expert = agent({ name: 'expert', instructions: '', model: expertModel })
    const { agent: boss, model } = host(
      (request, call) => {
        const session_id = sessionIn(resultsIn(request)[0]?.content)
        if (call === 0) return ask('ask', 'zero')
        if (call > 2) return 'done'
        return { calls: [{ name: 'ask', input: { message: `try ${call}`, session_id } }] }
      },
      { ask: expert },
    )

    await openRuntime().run(boss, 'go').result

    const said = resultsIn(model.requests[3]).map(({ content }) => String(content))
    expect(said[1]).toBe('Error: Execution error: no quota')
    expect(said[2]).toBe(`session_id: ${sessionIn(said[0])}\n\nfine again`)
  })

  test.each<[string, object, string]>([
    ['no message', {}, 'Error: Message is required'],
    ['null', { message: null }, 'Error: Message is required'],
    ['an empty one', { message: '' }, 'Error: Message is required'],
    ['a blank one', { message: ' \n' }, 'Error: Message is required'],
    ['one that is not a text', { message: 7 }, notAText('message')],
    ['a session that is not a text', { message: 'hi', session_id: 7 }, notAText('session_id')],
    ['a list for a session', { message: 'hi', session_id: ['x'] }, notAText('session_id')],
  ])('%s is refused in these words, and no agent runs', async (_, input, words) => {
    const expert = rememberer()
    const { agent: boss, model } = host(
      (_request, call) => (call === 0 ? { calls: [{ name: 'ask', input: input as never }] } : 'done'),
      { ask: expert.agent },
    )
    const runtime = openRuntime()

    const run = runtime.run(boss, 'go')
    await run.result

    expect(resultsIn(model.requests[1])[0]?.content).toBe(words)
    expect(expert.model.requests).toHaveLength(0)
    expect(taskOf(runtime, run).output.metadata).toMatchObject({
      unavailable: true,
      outcome: { status: 'invalid_input', conversation_id: '' },
    })
  })

  test('what the words say is there as data too: id, status, usage, value', async () => {
    const usage = { inputTokens: 5, outputTokens: 2 }
    const model = scriptedModel([{ text: '{"n":7}', usage }])
    const expert = agent({ name: 'expert', instructions: '', model, output: z.object({ n: z.number() }) })
    const { agent: boss, model: seen } = host((_request, call) => (call === 0 ? ask('ask', 'how many?') : 'done'), {
      ask: expert,
    })
    const runtime = openRuntime()

    const run = runtime.run(boss, 'go')
    await run.result

    const { content } = resultsIn(seen.requests[1])[0] ?? {}
    const session = sessionIn(content)
    expect(content).toBe(`session_id: ${session}\n\n{"n":7}`)
    expect(taskOf(runtime, run).output).toMatchObject({
      subagent: { child_conversation_id: session },
      metadata: {
        subagent: 'expert',
        supervisor: 'host',
        outcome: { status: 'completed', conversation_id: session, usage, output: { n: 7 } },
      },
    })
  })
})

function notAText(field: string): string {
  return `Error: Parameter validation failed for tool 'ask': ${field} must be a string\nPlease correct the parameters and try again.`
}

function ask(name: string, message: string) {
  return { calls: [{ name, input: { message } }] }
}

describe('a typed subagent with memory: session', () => {
  const Topic = z.object({ topic: z.string() })

  function shared(name = 'expert') {
    const model = scriptedModel(({ messages }) => `${messages.filter(({ role }) => role === 'user').length} so far`)
    return { model, agent: agent({ name, instructions: '', model, input: Topic }) }
  }

  function hostOf(below: ReturnType<typeof shared>['agent'], topics: readonly string[]) {
    const model = scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool')
      if (messages.at(-1)?.role === 'tool') return results.map(({ content }) => content).join(', ')
      return { calls: topics.map((topic) => ({ name: 'ask', input: { topic } })) }
    })
    const ask = { agent: below, memory: 'session', briefing: 'none' } as const
    return agent({ name: 'host', instructions: '', model, subagents: { ask } })
  }

  test('remembers what it was asked before, in this run and in later ones of the conversation', async () => {
    const runtime = openRuntime()
    const host = hostOf(shared().agent, ['a', 'b'])
    const first = runtime.run(host, 'go')
    expect((await first.result).text).toBe('1 so far, 2 so far')

    const second = runtime.run(host, 'again', { conversationId: first.conversationId })
    expect((await second.result).text).toBe('1 so far, 2 so far, 3 so far, 4 so far')
    const children = [first, second]
      .flatMap(({ id }) => localStore(runtime).linksOf(id))
      .map((link) => link.childConversationId)
    expect(new Set(children).size).toBe(1)
  })

  test('is told apart by any name of its tool', async () => {
    const model = scriptedModel([{ calls: [{ name: 'constructor', input: { topic: 'a' } }] }, 'done'])
    const subagents = { constructor: { agent: shared().agent, memory: 'session' as const } }
    const run = openRuntime().run(agent({ name: 'host', instructions: '', model, subagents }), 'go')

    expect((await run.result).text).toBe('done')
    expect(model.requests[1]?.messages.at(-1)?.content).toBe('1 so far')
  })

  test('is not shared with another conversation of the host, nor with another agent of that name of the tool', async () => {
    const runtime = openRuntime()
    const one = runtime.run(hostOf(shared().agent, ['a']), 'go')
    await one.result
    const other = runtime.run(hostOf(shared().agent, ['a']), 'go')
    expect((await other.result).text).toBe('1 so far')

    const changed = runtime.run(hostOf(shared('another').agent, ['a']), 'go', { conversationId: one.conversationId })
    expect((await changed.result).text).toMatch(/1 so far$/)
    expect(localStore(runtime).linksOf(changed.id)[0]?.childConversationId).not.toBe(
      localStore(runtime).linksOf(one.id)[0]?.childConversationId,
    )
  })

  test('starts anew when the one it had was closed', async () => {
    const runtime = openRuntime()
    const host = hostOf(shared().agent, ['a'])
    const first = runtime.run(host, 'go')
    await first.result
    const [link] = localStore(runtime).linksOf(first.id)

    await (await runtime.conversation(first.conversationId)).closeSession(link?.childConversationId ?? '')

    const second = runtime.run(host, 'again', { conversationId: first.conversationId })
    expect((await second.result).text).toMatch(/1 so far$/)
    expect(localStore(runtime).linksOf(second.id)[0]?.childConversationId).not.toBe(link?.childConversationId)
  })

  test('shows its host’s model the same schema', async () => {
    const { agent: below } = shared()
    const model = scriptedModel(() => 'nothing to ask')
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: { agent: below, memory: 'session' } },
    })
    await openRuntime().run(host, 'go').result

    expect(model.requests[0]?.tools[0]?.inputSchema).toEqual(below.input?.jsonSchema)
  })
})
