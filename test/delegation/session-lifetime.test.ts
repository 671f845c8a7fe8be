import { type AnyAgent, agent, type Runtime, type SubagentConfig } from 'legate'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { makeGate } from '../support/gate.ts'
import { openRuntime, resultsIn } from '../support/reading.ts'

/** Says how many messages it was sent in this session. */
function counter(name = 'expert'): AnyAgent {
  const model = scriptedModel(({ messages }) => `${messages.filter(({ role }) => role === 'user').length}`)
  return agent({ name, instructions: '', model })
}

interface Asked {
  readonly message: string
  readonly session_id?: string
}

/** A conversation of a host that asks its subagent what the test says, and gives the result's text. */
function talkWith(
  runtime: Runtime,
  settings: Partial<SubagentConfig>,
  options: { contextTurns?: number; name?: string } = {},
) {
  const model = scriptedModel((request) => {
    const last = request.messages.at(-1)
    if (last?.role === 'tool') return 'done'
    return {
      calls: (JSON.parse(String(last?.content)) as Asked[]).map((input) => ({ name: 'ask', input: { ...input } })),
    }
  })
  const subagents = { ask: { agent: counter(), ...settings } }
  const host = agent({ name: 'host', instructions: 'I host.', model, subagents, ...options })
  let conversationId: string | undefined
  const ask = async (...asked: Asked[]): Promise<string[]> => {
    const run = runtime.run(host, JSON.stringify(asked), conversationId === undefined ? {} : { conversationId })
    conversationId = run.conversationId
    await run.result
    return resultsIn(model.requests.at(-1))
      .slice(-asked.length)
      .map(({ content }) => String(content))
  }
  return { ask, model, conversation: () => runtime.conversation(conversationId ?? '') }
}

function sessionIn(text: string | undefined): string {
  return /^session_id: (\S+)\n\n/.exec(text ?? '')?.[1] ?? 'none'
}

describe('how long a session lives', () => {
  test('a session that was idle for longer than ttlMs has expired, and says so; using it keeps it', async () => {
    const clock = fakeClock(Date.now())
    const runtime = openRuntime({ clock })
    const { ask, conversation } = talkWith(runtime, { session: { ttlMs: 1_000 } })
    const session_id = sessionIn((await ask({ message: 'one' }))[0])

    await clock.advance(900)
    expect((await ask({ message: 'two', session_id }))[0]).toBe(`session_id: ${session_id}\n\n2`)
    await clock.advance(900)
    expect((await ask({ message: 'three', session_id }))[0]).toBe(`session_id: ${session_id}\n\n3`)
    expect((await (await conversation()).sessions()).map(({ expiresAt }) => expiresAt)).toEqual([clock.now() + 1_000])
    await clock.advance(1_001)

    expect((await ask({ message: 'four', session_id }))[0]).toBe(
      `Error: Session setup failed: the session ${session_id} has expired. Leave session_id out to start another.`,
    )
    expect(await (await conversation()).sessions()).toEqual([])
    expect(await (await runtime.conversation(session_id)).transcript()).toHaveLength(6)
  })

  test('a session that works is not idle', async () => {
    const clock = fakeClock(Date.now())
    const [entered, open] = [makeGate(), makeGate()]
    const model = scriptedModel(async (_, call) => {
      if (call === 1) {
        entered.open()
        await open.opened
      }
      return 'ok'
    })
    const slow = agent({ name: 'expert', instructions: '', model })
    const { ask } = talkWith(openRuntime({ clock }), { agent: slow, session: { ttlMs: 1_000 } })
    const session_id = sessionIn((await ask({ message: 'one' }))[0])
    const both = ask({ message: 'two', session_id }, { message: 'three', session_id })
    await entered.opened
    await clock.advance(5_000)
    open.open()

    expect((await both).map(sessionIn)).toEqual([session_id, session_id])
  })

  test('beyond max the one that was idle longest is closed; the others go on', async () => {
    const runtime = openRuntime()
    const { ask, conversation } = talkWith(runtime, { session: { max: 2 } })
    const [a = ''] = (await ask({ message: 'a' })).map(sessionIn)
    const [b = ''] = (await ask({ message: 'b' })).map(sessionIn)
    await new Promise((resolve) => setTimeout(resolve, 2))
    await ask({ message: 'more', session_id: a })
    const [c = ''] = (await ask({ message: 'c' })).map(sessionIn)

    expect(await ask({ message: 'x', session_id: b })).toEqual([
      `Error: Session setup failed: the session ${b} was closed. Leave session_id out to start another.`,
    ])
    expect((await ask({ message: 'x', session_id: a }, { message: 'x', session_id: c })).map(sessionIn)).toEqual([a, c])
    const held = await (await conversation()).sessions()
    expect(
      held.map(({ id, tool, agent: name, turns, about, isBusy }) => ({ id, tool, name, turns, about, isBusy })),
    ).toEqual([
      { id: a, tool: 'ask', name: 'expert', turns: 3, about: 'a', isBusy: false },
      { id: c, tool: 'ask', name: 'expert', turns: 2, about: 'c', isBusy: false },
    ])
    expect(await (await runtime.conversation(b)).transcript()).toHaveLength(2)
  })

  test('where all of them are busy, one more is refused in words', async () => {
    const open = makeGate()
    const model = scriptedModel(async () => {
      await open.opened
      return 'ok'
    })
    const slow = agent({ name: 'expert', instructions: '', model })
    const { ask } = talkWith(openRuntime(), { agent: slow, session: { max: 2 } })
    const three = ask({ message: 'a' }, { message: 'b' }, { message: 'c' })
    setTimeout(() => open.open(), 50)

    const said = await three
    expect(said.filter((text) => sessionIn(text) !== 'none')).toHaveLength(2)
    expect(said.filter((text) => sessionIn(text) === 'none')).toEqual([
      'Error: Session setup failed: 2 sessions are open, the limit, and all are busy. Go on in one of them, or wait.',
    ])
  })

  test('a session that is closed can be read and not gone on with; closing again changes nothing', async () => {
    const runtime = openRuntime()
    const { ask, conversation } = talkWith(runtime, {})
    const [a = '', b = ''] = (await ask({ message: 'a' }, { message: 'b' })).map(sessionIn)
    const talk = await conversation()

    await talk.closeSession(a)
    await talk.closeSession(a)

    expect((await talk.sessions()).map(({ id }) => id)).toEqual([b])
    expect((await ask({ message: 'x', session_id: a }))[0]).toMatch(
      /^Error: Session setup failed: the session .* was closed\./,
    )
    expect((await ask({ message: 'x', session_id: b }))[0]).toBe(`session_id: ${b}\n\n2`)
    expect(await (await runtime.conversation(a)).transcript()).toHaveLength(2)
  })

  test('I9: only the conversation that started it can close it; others are told as of an unknown one', async () => {
    const runtime = openRuntime()
    const mine = talkWith(runtime, {})
    const others = talkWith(runtime, {}, { name: 'other host' })
    const [a = ''] = (await mine.ask({ message: 'a' })).map(sessionIn)
    await others.ask({ message: 'b' })
    const talk = await others.conversation()

    const words = await Promise.all(
      [a, 'nope', '..', (await mine.conversation()).id].map((id) => talk.closeSession(id).catch(String)),
    )

    expect(words.map((text) => String(text).replace(/session \S+ of/, 'session X of'))).toEqual(
      Array(4).fill(`NotFoundError: There is no session X of the conversation ${talk.id}.`),
    )
    expect((await mine.ask({ message: 'more', session_id: a }))[0]).toBe(`session_id: ${a}\n\n2`)
  })

  test.each<[string, unknown, string]>([
    ['a number', 7, 'is 7'],
    ['an unknown key', { ttl: 1 }, 'has no option "ttl"'],
    ['a ttl of 0', { ttlMs: 0 }, 'ttlMs must be'],
    ['half a session', { max: 1.5 }, 'max must be'],
    ['more than are listed', { max: 65 }, 'max must be'],
    ['a store without load', { store: { save: () => undefined } }, 'needs save(session) and load(sessionId)'],
  ])('%s for `session` is refused when the host is defined', (_, session, words) => {
    const subagents = { ask: { agent: counter(), session: session as never } }

    expect(() => agent({ name: 'host', instructions: '', subagents })).toThrow(words)
  })
})

describe('a host whose earlier turns are cut off', () => {
  test('is told which sessions it holds, and only then', async () => {
    const { ask, model } = talkWith(openRuntime(), {}, { contextTurns: 2 })
    const about = `${'Tell me about QUIC, please. '.repeat(9)}`
    const [a = ''] = (await ask({ message: about })).map(sessionIn)
    const [b = ''] = (await ask({ message: 'b' })).map(sessionIn)
    const systems = () => model.requests.at(-1)?.messages.filter(({ role }) => role === 'system') ?? []
    expect(systems()).toEqual([{ role: 'system', content: 'I host.' }])

    await ask({ message: 'c', session_id: b })

    expect(JSON.stringify(model.requests.at(-1)?.messages.slice(2))).not.toContain(a)
    expect(systems()).toEqual([
      { role: 'system', content: 'I host.' },
      {
        role: 'system',
        content: [
          'Earlier turns of this conversation are not shown. These sessions with other agents are open; pass their session_id to go on with one:',
          `- ask: session_id ${a} ("Tell me about QUIC, please. Tell me about QUIC, please. Tell me about QUIC, ple…")`,
          `- ask: session_id ${b} ("b")`,
        ].join('\n'),
      },
    ])
  })

  test('is told nothing where it holds none', async () => {
    const { ask, model, conversation } = talkWith(openRuntime(), {}, { contextTurns: 1 })
    const [a = ''] = (await ask({ message: 'a' })).map(sessionIn)
    await (await conversation()).closeSession(a)
    await ask({ message: 'b', session_id: a })

    expect(model.requests.at(-1)?.messages.filter(({ role }) => role === 'system')).toHaveLength(1)
  })
})
