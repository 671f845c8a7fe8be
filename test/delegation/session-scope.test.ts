import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, DefinitionError, type StartOptions, tool } from 'legate'
import type { SessionSettings, SessionStore } from 'legate/background'
import { jsonSession } from 'legate/store/json'
import { memoryStore } from 'legate/store/memory'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { resultsIn } from '../support/reading.ts'
import { localStore, withReads } from '../support/rows.ts'
import { lasting, type Rows } from '../support/stores.ts'
import { tempFolder } from '../support/temp-folder.ts'

const UNKNOWN = '01900000-0000-7000-8000-00000000dead'

const look = tool({ description: 'x', input: { type: 'object' }, effect: 'pure', execute: () => 'seen' })

/** A process whose host asks its expert what it is told to. */
function world(rows: LocalStore, session: SessionSettings | SessionStore = { scope: 'owner' }, offer = {}) {
  const isSlow = { now: false }
  const childModel = scriptedModel(({ messages, tools }) => {
    if (isSlow.now) return { text: 'never', delayMs: 60_000 }
    const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
    if (said.at(-1) === 'look' && messages.at(-1)?.role === 'user') return { calls: [{ name: 'look', input: {} }] }
    return `heard ${said.join(', ')} with ${tools.map(({ name }) => name).join()}`
  })
  const expert = agent({ name: 'expert', instructions: '', model: childModel, tools: { look } })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool' ? 'done' : { calls: [{ name: 'ask', input: JSON.parse(String(last?.content)) }] }
  })
  const host = agent({
    name: 'host',
    instructions: '',
    model,
    subagents: { ask: { agent: expert, session, ...offer } },
  })
  const runtime = createRuntime({ store: rows, agents: [host], engine: { graceMs: 20 } })
  const ask = async (message: string, session_id?: string, options: StartOptions = { owner: 'ann' }) => {
    const input = JSON.stringify(session_id === undefined ? { message } : { message, session_id })
    const run = runtime.run(host, input, options)
    await run.result
    const text = String(resultsIn(model.requests.at(-1)).at(-1)?.content)
    return { text, id: /^session_id: (\S+)\n\n/.exec(text)?.[1] ?? 'none', conversationId: run.conversationId }
  }
  return { runtime, ask, childModel, isSlow }
}

function opened(create: () => Rows): Rows {
  const rows = create()
  onTestFinished(() => rows.drop())
  return rows
}

const refusal = (words: string) => `Error: Session setup failed: ${words}. Leave session_id out to start one.`

describe.each(lasting)('a session of the owner, in a store in %s', (_, create) => {
  test('goes on from another conversation as a copy with an id of its own, also after a restart', async () => {
    const rows = opened(create)
    const first = world(rows.open())
    const one = await first.ask('one')
    const two = await first.ask('look', one.id, { owner: 'ann', conversationId: one.conversationId })
    expect(two.id).toBe(one.id)
    await first.runtime.close()

    const second = world(rows.open())
    const copy = await second.ask('three', one.id)
    expect(copy.text).toBe(`session_id: ${copy.id}\n\nheard one, look, three with look`)
    expect(copy.id).not.toBe(one.id)
    const store = localStore(second.runtime)
    expect(store.conversation(copy.id)).toMatchObject({
      rootId: copy.conversationId,
      parentConversationId: copy.conversationId,
      owner: 'ann',
      turnCount: 3,
      metadata: { copied_from: one.id },
    })
    expect(store.conversation(one.id)?.turnCount).toBe(2)
    expect(second.childModel.requests[0]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
    // From then on each goes its own way.
    const here = { owner: 'ann', conversationId: copy.conversationId }
    expect(await second.ask('four', copy.id, here)).toMatchObject({ id: copy.id })
    const back = await second.ask('five', one.id, { owner: 'ann', conversationId: one.conversationId })
    expect(back.text).toContain('heard one, look, five with')
    expect((await second.runtime.audit()).findings).toEqual([])
    await second.runtime.close()
  })

  test('is copied once, whatever becomes of the process and of the original', async () => {
    const rows = opened(create)
    const first = world(rows.open())
    const one = await first.ask('one')
    // The copy is made, and its process ends before the child has said a word.
    first.isSlow.now = true
    first.ask('two', one.id).catch(() => undefined)
    const host = await until(() => localStore(first.runtime).openRoots({ limit: 1 })[0])
    await until(() => first.childModel.requests[1])
    await first.runtime.close()
    const between = createRuntime({ store: rows.open() })
    await between.forget(one.conversationId)
    await between.close()

    const second = world(rows.open())
    const [run] = await second.runtime.resume()
    expect(await run?.result).toMatchObject({ status: 'completed' })
    const [link, ...others] = localStore(second.runtime).linksOf(host.id)
    expect(others).toEqual([])
    const child = await second.runtime.conversation(link?.childConversationId ?? '')
    expect((await child.transcript()).map(({ text }) => text)).toEqual([
      'one',
      'heard one with look',
      'two',
      'heard one, two with look',
    ])
    // The copy lives on; the original is gone for everybody.
    const again = await second.ask('three', one.id)
    expect(again.text).toBe(refusal(`there is no session ${one.id} of this owner`))
    expect((await second.ask('three', link?.childConversationId)).text).toContain('heard one, two, three with')
    await second.runtime.close()
  })

  test('I9: of another owner answers like none; without an owner nothing is shared; by default it is the host’s', async () => {
    const rows = opened(create)
    const { runtime, ask } = world(rows.open())
    const anns = await ask('secret')
    const nobodys = await ask('secret', undefined, {})

    for (const id of [anns.id, nobodys.id, UNKNOWN]) {
      expect((await ask('x', id, { owner: 'bob' })).text).toBe(refusal(`there is no session ${id} of this owner`))
      const words = `there is no session ${id} in this conversation, and it has no owner whose other sessions could be meant`
      expect((await ask('x', id, {})).text).toBe(refusal(words))
    }
    await runtime.close()
    const plain = world(rows.open(), {})
    for (const id of [anns.id, UNKNOWN]) {
      expect((await plain.ask('x', id)).text).toBe(refusal(`there is no session ${id} in this conversation`))
    }
    await plain.runtime.close()
  })
})

async function until<T>(find: () => T | undefined): Promise<T> {
  for (;;) {
    const found = find()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('I1: a copy stays bound by what bound the session, and by the caller who asks for it', async () => {
  const store = { ...memoryStore({ keep: 100 }), close: async () => undefined }
  const strict = world(store, { scope: 'owner' }, { grant: { deny: ['tool:look'] } })
  const bound = await strict.ask('one')
  expect(bound.text).toMatch(/heard one with $/)
  await strict.runtime.close()

  const { runtime, ask } = world(store)
  onTestFinished(() => runtime.close())
  expect((await ask('two', bound.id)).text).toMatch(/heard one, two with $/)
  const free = await ask('one')
  const narrow = { owner: 'ann', grant: { deny: ['tool:look'] } }
  const asked = await ask('two', free.id, narrow)
  expect(asked.text).toMatch(/heard one, two with $/)
  // Its caller bound that turn, and nothing else.
  expect((await ask('three', asked.id)).text).toMatch(/heard one, two, three with look$/)
})

test('a copy has what counts of the session, is refused when that was closed or has expired, and counts as one of max', async () => {
  const { runtime, ask } = world(memoryStore({ keep: 100 }), { scope: 'owner', max: 1 })
  onTestFinished(() => runtime.close())
  const one = await ask('one')
  const there = { owner: 'ann', conversationId: one.conversationId }
  await ask('two', one.id, there)
  const copy = await ask('three', one.id)
  const here = { owner: 'ann', conversationId: copy.conversationId }
  expect(copy.text).toContain('heard one, two, three')
  const other = await ask('four', one.id, here)
  expect(other.text).toContain('heard one, two, four')
  expect((await ask('five', copy.id, here)).text).toContain(`the session ${copy.id} was closed`)

  const host = await runtime.conversation(one.conversationId)
  await host.closeSession(one.id)
  expect((await ask('six', one.id)).text).toContain(`the session ${one.id} was closed`)
})

test('the copy of a session that was forked has what was said before the fork, and nothing that was said beside it', async () => {
  const { runtime, ask } = world(memoryStore({ keep: 100 }))
  onTestFinished(() => runtime.close())
  const one = await ask('one')
  const host = await runtime.conversation(one.conversationId)
  const [first] = localStore(runtime).turnsOf(one.conversationId, { limit: 1 })
  const last = localStore(runtime)
    .nodesOf(first?.id ?? '')
    .at(-1)
  await ask('beside', one.id, { owner: 'ann', conversationId: one.conversationId })
  const { id: lane } = await host.history.fork(last?.id ?? '')
  const forked = await ask('two', one.id, { owner: 'ann', conversationId: lane })
  expect(forked.id).not.toBe(one.id)

  expect((await ask('three', forked.id)).text).toContain('heard one, two, three with')
})

test('an expired session is not copied', async () => {
  const rows = memoryStore({ keep: 100 })
  const { runtime, ask } = world(rows, { scope: 'owner', ttlMs: 20 })
  onTestFinished(() => runtime.close())
  const one = await ask('one')
  await new Promise((resolve) => setTimeout(resolve, 40))

  expect((await ask('two', one.id)).text).toContain(`the session ${one.id} has expired`)
})

test('a session that only its document knows goes on from another conversation of the owner, and of nobody else', async () => {
  const store = jsonSession(tempFolder())
  const first = world(memoryStore(), { scope: 'owner', store })
  const one = await first.ask('one')
  await first.runtime.close()

  const { runtime, ask } = world(memoryStore(), { scope: 'owner', store })
  onTestFinished(() => runtime.close())
  const copy = await ask('two', one.id)
  expect(copy.text).toContain('heard one, two with')
  expect(copy.id).not.toBe(one.id)
  expect(store.list().sort()).toEqual([one.id, copy.id].sort())
  expect((await ask('x', one.id, { owner: 'bob' })).text).toBe(refusal(`there is no session ${one.id} of this owner`))
})

test('I9: without an owner nothing is shared: neither a session that only its document knows, nor does anybody read its rows', async () => {
  const store = jsonSession(tempFolder())
  const inner = memoryStore({ keep: 100 })
  onTestFinished(() => inner.close())
  // Two runtimes share the rows: the first that closes must not take them from the other.
  const rows = { ...inner, close: async () => undefined }
  const first = world(rows, { scope: 'owner', store })
  const nobodys = await first.ask('secret', undefined, {})
  const anns = await first.ask('secret')

  const read: string[] = []
  const watched = withReads(rows, {
    turnsOf: (id, query) => {
      read.push(id)
      return rows.turnsOf(id, query)
    },
  })
  const second = world(watched, { scope: 'owner' })
  for (const { id } of [nobodys, anns]) {
    expect((await second.ask('x', id, {})).text).toContain('and it has no owner whose other sessions could be meant')
    expect((await second.ask('x', id, { owner: 'bob' })).text).toContain('of this owner')
  }
  expect(read).not.toContain(nobodys.id)
  expect(read).not.toContain(anns.id)
  // Whom it belongs to may read it: so it would have been seen.
  await second.ask('x', anns.id)
  expect(read).toContain(anns.id)
  await second.runtime.close()
  await first.runtime.close()

  const third = world(memoryStore(), { scope: 'owner', store })
  onTestFinished(() => third.runtime.close())
  const { text } = await third.ask('x', nobodys.id, {})
  expect(text).toContain(`there is no session ${nobodys.id} in this conversation, and it has no owner`)
  expect(third.childModel.requests).toEqual([])
})

test.each<SessionSettings>([{}, { scope: 'owner' }])(
  'I9: an id that lives in another tree is not gone: no document brings it back under that id (%o)',
  async (settings) => {
    const folder = tempFolder()
    const { runtime, ask } = world(memoryStore({ keep: 100 }), { ...settings, store: jsonSession(folder) })
    onTestFinished(() => runtime.close())
    const one = await ask('one', undefined, {})
    const other = await ask('hello', undefined, {})
    // Whoever may write the folder says that the session is the other conversation's.
    const file = path.join(folder, `${one.id}.json`)
    const forged = JSON.parse(readFileSync(file, 'utf8'))
    forged.host.conversation_id = other.conversationId
    writeFileSync(file, JSON.stringify(forged))

    const { text } = await ask('two', one.id, { conversationId: other.conversationId })

    expect(text).toContain(`there is no session ${one.id} in this conversation`)
    expect(localStore(runtime).conversation(one.id)).toMatchObject({ rootId: one.conversationId, turnCount: 1 })
    expect((await runtime.audit()).findings).toEqual([])
  },
)

test('an unknown scope is refused', () => {
  expect(() => world(memoryStore(), { scope: 'all' } as never)).toThrow(DefinitionError)
})
