import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, type StartOptions, tool } from 'legate'
import type { Briefing, SessionDocument, SessionStore } from 'legate/background'
import { jsonSession } from 'legate/store/json'
import { scriptedModel } from 'legate/testing'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { freshId } from '../../src/core/base/id.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import type { Store } from '../../src/core/store/store.ts'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { remoteStore } from '../support/remote.ts'
import { localStore } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'
import { tempFolder } from '../support/temp-folder.ts'

let folder: string
let copies: string
/** The conversation of the host, which the application names: it is the same in every process. */
let home: string

beforeEach(() => {
  folder = tempFolder()
  home = freshId(Date.now())
  copies = path.join(folder, 'copies')
})

interface Parts {
  readonly store?: SessionStore
  readonly briefing?: Briefing
  readonly hostName?: string
  readonly name?: string
  readonly rows?: Store
}

/** What a process says and hears; each call of this is another process with its own memory. */
function world(parts: Parts = {}) {
  const {
    store = jsonSession(copies) as SessionStore,
    hostName = 'host',
    name = 'expert',
    rows,
    briefing = 'none',
  } = parts
  const warnings: string[] = []
  const warn = (message: string) => warnings.push(message)
  const logger = { debug: () => undefined, info: () => undefined, warn, error: warn }
  const look = tool({ description: 'Look', input: { type: 'object' }, effect: 'pure', execute: () => 'seen' })
  const childModel = scriptedModel(({ messages }) => {
    const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
    if (said.at(-1) === 'look' && messages.at(-1)?.role === 'user') return { calls: [{ name: 'look', input: {} }] }
    return `heard ${said.join(', ')}`
  })
  const expert = agent({ name, instructions: '', model: childModel, tools: { look } })
  const model = scriptedModel(({ messages, path }) => {
    if (path.length > 1) return 'SUMMED UP'
    const last = messages.at(-1)
    return last?.role === 'tool' ? 'done' : { calls: JSON.parse(String(last?.content)) }
  })
  const subagents = { ask: { agent: expert, session: store, briefing } }
  const host = agent({ name: hostName, instructions: '', model, subagents })
  const runtime = openRuntime({ logger, ...(rows === undefined ? {} : { store: rows }) })
  const ask = async (message: string, session_id?: string, options: StartOptions = {}): Promise<string> => {
    const calls = [{ name: 'ask', input: session_id === undefined ? { message } : { message, session_id } }]
    const where = { conversationId: home, createConversation: true }
    await runtime.run(host, JSON.stringify(calls), { ...where, ...options }).result
    return String(resultsIn(model.requests.at(-1)).at(-1)?.content)
  }
  return { ask, warnings, childModel, runtime, model }
}

function sessionIn(text: string): string {
  return /^session_id: (\S+)\n\n/.exec(text)?.[1] ?? 'none'
}

function document(id: string): SessionDocument {
  return JSON.parse(readFileSync(path.join(copies, `${id}.json`), 'utf8'))
}

const refusal = (id: string) =>
  `Error: Session setup failed: there is no session ${id} in this conversation. Leave session_id out to start one.`

describe('a conversation that is copied to a folder', () => {
  test.each<Briefing>([() => ({ hint: 'be short' }), 'summary'])(
    'a briefing (%s) stays data from the host',
    async (briefing) => {
      const session = sessionIn(await world({ briefing }).ask('one'))
      expect(document(session).turns[0]?.messages.map(({ role }) => role)).toEqual(['briefing', 'user', 'assistant'])

      const second = world()
      await second.ask('two', session)

      const shown = second.childModel.requests[0]?.messages ?? []
      expect(shown.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'user'])
      expect(shown[0]?.content).toMatch(/^\[Data from "host"/)
    },
  )

  test('79 and 80: after a restart of a host that remembers nothing, the session goes on where it was', async () => {
    const session = sessionIn(await world().ask('one'))
    expect(document(session)).toMatchObject({
      session_id: session,
      agent: 'expert',
      turn_count: 1,
      host: { agent: 'host' },
    })

    const second = world()
    expect(await second.ask('look', session)).toBe(`session_id: ${session}\n\nheard one, look`)
    const third = world()
    expect(await third.ask('three', session)).toBe(`session_id: ${session}\n\nheard one, look, three`)

    expect(third.childModel.requests[0]?.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'user', 'assistant', 'tool', 'assistant', 'user'],
    ])
    expect(document(session).turns.map(({ messages }) => messages.map(({ role }) => role).join(' '))).toEqual([
      'user assistant',
      'user assistant tool assistant',
      'user assistant',
    ])
    expect(third.warnings).toEqual([])
    expect(readdirSync(copies)).toEqual([`${session}.json`])
  })

  test('without a store a session does not survive its host', async () => {
    const session = sessionIn(await world().ask('one'))
    rmSync(copies, { recursive: true })

    expect(await world().ask('two', session)).toBe(refusal(session))
  })

  test('two are apart; deleting one leaves the other, deleting none is nothing; all are listed', async () => {
    const store = jsonSession(copies)
    expect(store.list()).toEqual([])
    const first = world()
    const [a, b] = [sessionIn(await first.ask('a')), sessionIn(await first.ask('b'))]
    writeFileSync(path.join(copies, 'notes.json'), '{"mine":true}')
    expect(store.list().sort()).toEqual([a, b].sort())

    expect([store.delete(a), store.delete(a), store.delete('..'), store.delete('notes')]).toEqual([
      true,
      false,
      false,
      true,
    ])

    expect(store.list()).toEqual([b])
    const second = world()
    expect(await second.ask('x', a)).toBe(refusal(a))
    expect(await second.ask('x', b)).toBe(`session_id: ${b}\n\nheard b, x`)
  })

  test('what a person changed in a document, in the middle, shorter or empty, is what was said', async () => {
    const first = world()
    const session = sessionIn(await first.ask('one'))
    const file = path.join(copies, `${session}.json`)
    const whole = document(session)
    const edit = (turns: unknown) => writeFileSync(file, JSON.stringify({ ...whole, turns }))
    const said = (content: string) => ({ status: 'completed', messages: [{ role: 'user', content }] })

    edit([said('changed'), said('longer')])
    expect(await world().ask('x', session)).toBe(`session_id: ${session}\n\nheard changed, longer, x`)
    expect(document(session).turn_count).toBe(3)
    edit([said('shorter')])
    expect(await world().ask('x', session)).toBe(`session_id: ${session}\n\nheard shorter, x`)
    edit([])
    expect(await world().ask('x', session)).toBe(`session_id: ${session}\n\nheard x`)
    rmSync(file)
    expect(await world().ask('x', session)).toBe(refusal(session))
  })

  test('a call whose result somebody took out of the document is not shown to a model', async () => {
    const first = world()
    const session = sessionIn(await first.ask('look'))
    const whole = document(session)
    const turns = whole.turns.map((turn) => ({
      ...turn,
      messages: turn.messages.filter(({ role }) => role !== 'tool'),
    }))
    writeFileSync(path.join(copies, `${session}.json`), JSON.stringify({ ...whole, turns }))

    const second = world()
    await second.ask('two', session)

    const [request] = second.childModel.requests
    expect(request?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(JSON.stringify(request?.messages)).not.toContain('"calls":[{')
  })

  test.each([
    ['is not JSON', () => '{"format":'],
    ['is something else', () => '[1]'],
    ['is of another session', (whole: SessionDocument) => JSON.stringify({ ...whole, session_id: 'another' })],
    ['is of a newer version', (whole: SessionDocument) => JSON.stringify({ ...whole, version: 2 })],
    [
      'has turns that are none',
      (whole: SessionDocument) => JSON.stringify({ ...whole, turns: [{ messages: [{ role: 'root', content: 'x' }] }] }),
    ],
    [
      'has content that is none',
      (whole: SessionDocument) =>
        JSON.stringify({ ...whole, turns: [{ messages: [{ role: 'user', content: { x: 1 } }] }] }),
    ],
    [
      'is nested too deep',
      (whole: SessionDocument) =>
        JSON.stringify(whole).replace('"turns":[', `"turns":[${'['.repeat(5_000)}${']'.repeat(5_000)},`),
    ],
  ])('a conversation that %s is told as unknown, and to the log why; the host goes on', async (_, edited) => {
    const session = sessionIn(await world().ask('one'))
    writeFileSync(path.join(copies, `${session}.json`), edited(document(session)))

    const second = world()
    expect(await second.ask('two', session)).toBe(refusal(session))
    expect(second.warnings).toEqual([expect.stringContaining('A session could not be read back: ')])
    expect(second.childModel.requests).toEqual([])
  })

  test('a copy that cannot be made costs no answer; it is told, and made after the next turn', async () => {
    writeFileSync(copies, 'a file where the folder should be')
    const first = world()
    const run = await first.ask('one')
    expect(run).toMatch(/\n\nheard one$/)
    expect(first.warnings).toEqual([expect.stringContaining(copies)])

    rmSync(copies)
    mkdirSync(copies)
    const session = sessionIn(run)
    await first.ask('two', session)
    expect(document(session).turn_count).toBe(2)
  })

  test('nor does a store that throws, rejects or gives nonsense', async () => {
    for (const store of [
      { save: () => Promise.reject(new Error('no')), load: () => Promise.reject(new Error('no')) },
      {
        save: () => {
          throw new Error('no')
        },
        load: () => {
          throw new Error('no')
        },
      },
      { save: () => undefined, load: () => () => 'x' },
    ]) {
      const { ask, warnings } = world({ store })
      expect(await ask('one')).toMatch(/heard one$/)
      const unknown = '01a1df2c-12e2-76db-b845-ab3b000d22a2'
      expect(await ask('two', unknown)).toBe(refusal(unknown))
      expect(warnings.length).toBeGreaterThan(0)
    }
  })

  test('a store of one’s own is asked one after the other for one session, and is done when the runtime is closed', async () => {
    const kept = new Map<string, SessionDocument>()
    let writing = 0
    const store: SessionStore = {
      save: async (session) => {
        expect(writing++).toBe(0)
        await new Promise((resolve) => setTimeout(resolve, 5))
        kept.set(session.session_id, session)
        writing--
      },
      load: async (id) => kept.get(id),
    }
    const first = world({ store })
    const session = sessionIn(await first.ask('one'))
    await Promise.all(['two', 'three', 'four'].map((message) => first.ask(message, session)))
    await first.runtime.close()

    expect(kept.get(session)?.turn_count).toBe(4)
    expect(await world({ store }).ask('five', session)).toBe(
      `session_id: ${session}\n\nheard one, two, three, four, five`,
    )
  })

  test.each([
    ['in this process', () => memoryStore()],
    ['far away', () => remoteStore(memoryStore())],
  ])(
    'a conversation that lives in another tree of a store %s is not gone: no document brings it back',
    async (_, open) => {
      const asked: string[] = []
      let saved: SessionDocument | undefined
      const store: SessionStore = {
        save: (session) => {
          saved = session
        },
        load: (id) => {
          asked.push(id)
          return saved === undefined ? undefined : { ...saved, host: { agent: 'host', conversation_id: home } }
        },
      }
      const { ask, runtime } = world({ store, rows: open() })
      const session = sessionIn(await ask('one'))
      const before = localStore(runtime).conversation(session)
      expect(before).toMatchObject({ rootId: home, turnCount: 1 })
      home = freshId(Date.now())

      expect(await ask('two', session)).toBe(refusal(session))

      expect(asked).toEqual([])
      expect(localStore(runtime).conversation(session)).toEqual(before)
      // A document of one that is gone is read.
      const gone = freshId(Date.now())
      expect(await ask('three', gone)).toBe(refusal(gone))
      expect(asked).toEqual([gone])
    },
  )

  test('no id touches a path outside of the folder', async () => {
    writeFileSync(
      path.join(folder, 'secret.json'),
      JSON.stringify({ format: 'legate-session', session_id: '../secret' }),
    )
    const { ask, warnings } = world()
    await ask('one')
    const ids = [
      '..',
      '.',
      '../secret',
      'a/b',
      'a\\b',
      '\0',
      'x'.repeat(10_000),
      '会话',
      '/etc/passwd',
      '%2e%2e',
      '~',
      'CON',
      '__proto__',
    ]

    for (const id of ids) expect(await ask('psst', id)).toBe(refusal(id))

    expect(warnings).toEqual([])
    expect(readdirSync(folder).sort()).toEqual(['copies', 'secret.json'])
    const store = jsonSession(copies)
    for (const session_id of ids) await store.save({ ...document(store.list()[0] ?? ''), session_id })
    expect(readdirSync(folder).sort()).toEqual(['copies', 'secret.json'])
    expect(store.list()).toHaveLength(ids.length + 1)
    for (const id of ids) expect(await store.load(id)).toMatchObject({ session_id: id })
  })

  test('86, I9: of another owner, host or subagent, or closed: told as unknown', async () => {
    const session = sessionIn(await world().ask('one', undefined, { owner: 'ann' }))

    expect(await world().ask('x', session, { owner: 'bob' })).toBe(refusal(session))
    expect(await world().ask('x', session)).toBe(refusal(session))
    expect(await world({ hostName: 'other host' }).ask('x', session, { owner: 'ann' })).toBe(refusal(session))
    expect(await world({ name: 'other' }).ask('x', session, { owner: 'ann' })).toBe(refusal(session))
    expect(await world().ask('x', session, { owner: 'ann' })).toMatch(/heard one, x$/)

    home = freshId(Date.now())
    const talk = world()
    const own = sessionIn(await talk.ask('one'))
    await (await talk.runtime.conversation(home)).closeSession(own)
    expect(document(own).closed_at).not.toBeNull()
    expect(await world().ask('x', own)).toBe(refusal(own))
  })

  test('86, I9: of another conversation it is unknown, in the same process and in one that knows neither', async () => {
    const first = world()
    const session = sessionIn(await first.ask('one'))
    const other = { conversationId: freshId(Date.now()) }

    expect(await first.ask('x', session, other)).toBe(refusal(session))
    expect(await world().ask('x', session, other)).toBe(refusal(session))
    expect(await world().ask('x', session)).toMatch(/heard one, x$/)
  })

  test.each([
    ['has expired', '2001-01-01T00:00:00.000Z'],
    ['does not say how old it is', 'soon'],
  ])('a conversation that %s is not read back', async (_, updated_at) => {
    const session = sessionIn(await world().ask('one'))
    writeFileSync(path.join(copies, `${session}.json`), JSON.stringify({ ...document(session), updated_at }))
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x', session_id: session } }] }, 'done'])
    const expert = agent({ name: 'expert', instructions: '', model: scriptedModel([]) })
    const settings = { store: jsonSession(copies), ttlMs: 1_000 }
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: { agent: expert, session: settings } },
    })

    await openRuntime().run(host, 'go', { conversationId: home, createConversation: true }).result

    expect(resultsIn(model.requests[1])[0]?.content).toBe(
      `Error: Session setup failed: the session ${session} has expired. Leave session_id out to start another.`,
    )
  })

  test('two calls at once on a session that is known by its document only: one restores it, both are answered', async () => {
    const session = sessionIn(await world().ask('one'))
    const second = world()
    const calls = ['two', 'three'].map((message) => ({ name: 'ask', input: { message, session_id: session } }))
    const model = second.model
    const run = second.runtime.run(
      agent({
        name: 'host',
        instructions: '',
        model,
        subagents: {
          ask: {
            agent: agent({ name: 'expert', instructions: '', model: second.childModel }),
            session: jsonSession(copies),
          },
        },
      }),
      JSON.stringify(calls),
      { conversationId: home, createConversation: true },
    )
    await run.result

    expect(resultsIn(model.requests.at(-1)).map(({ content }) => String(content).split('\n\n')[1])).toEqual([
      'heard one, two',
      'heard one, two, three',
    ])
    expect(document(session).turn_count).toBe(3)
  })

  test.each([
    ['a link to a device', '/dev/zero'],
    ['a link to a file that is no session', '/etc/passwd'],
    ['a link to itself', ''],
  ])('%s in the place of a document is told as unknown at once', async (_, target) => {
    const session = sessionIn(await world().ask('one'))
    const file = path.join(copies, `${session}.json`)
    rmSync(file)
    symlinkSync(target === '' ? file : target, file)

    const second = world()
    expect(await second.ask('two', session)).toBe(refusal(session))
    expect(second.warnings).toEqual([expect.stringContaining('A session could not be read back: ')])
    expect(jsonSession(copies).delete(session)).toBe(true)
    expect(readdirSync(copies)).toEqual([])
  })

  test('what was restored is in the rows: it is read like any other conversation', async () => {
    const session = sessionIn(await world().ask('look'))
    const second = world()
    await second.ask('two', session)
    const talk = await second.runtime.conversation(session)

    expect((await talk.transcript()).map(({ role, text }) => `${role}: ${text}`)).toEqual([
      'user: look',
      'agent: heard look',
      'user: two',
      'agent: heard look, two',
    ])
    const [past] = localStore(second.runtime).turnsOf(session, { limit: 9 })
    expect(past).toMatchObject({
      state: 'ended',
      ordinal: 0,
      outcome: { status: 'completed', conversationId: session },
    })
    expect(await (await second.runtime.attach(past?.id ?? '')).result).toMatchObject({
      status: 'completed',
      text: 'heard look',
    })
  })
})

describe.each(lasting)('I9: the session of a host that was forgotten, on %s', (_, create) => {
  test('is unknown to every other conversation, in this process and the next', async () => {
    const rows = create()
    onTestFinished(() => rows.drop())
    const first = world({ rows: rows.open() })
    const session = sessionIn(await first.ask('one'))
    await first.runtime.forget(home, 'the customer asked for it')
    const copy = jsonSession(copies)

    expect(copy.list()).toEqual([session])
    home = freshId(Date.now())
    expect(await first.ask('x', session)).toBe(refusal(session))
    await first.runtime.close()
    expect(await world({ rows: rows.open() }).ask('x', session)).toBe(refusal(session))
  })
})
