import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { agent, createRuntime, tool } from 'legate'
import type { SessionDocument } from 'legate/background'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { beforeEach, describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { resultsIn } from '../support/reading.ts'
import { tempFolder } from '../support/temp-folder.ts'

let folder: string

beforeEach(() => {
  folder = tempFolder()
})

/** What a process says in a conversation; it ends with it. */
async function process(open: () => LocalStore, text: string, conversationId?: string) {
  const look = tool({ description: 'Look', input: { type: 'object' }, effect: 'pure', execute: () => 'seen' })
  const child = scriptedModel(({ messages }) => {
    const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
    return messages.at(-1)?.role === 'user' ? { calls: [{ name: 'look', input: {} }] } : `heard ${said.join(', ')}`
  })
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return 'done'
    const known = messages.findLast(({ role }) => role === 'tool')
    const session_id = /^session_id: (\S+)/.exec(String(known?.content))?.[1] ?? ''
    return { calls: [{ name: 'ask', input: { message: String(last?.content), session_id } }] }
  })
  const expert = agent({ name: 'expert', instructions: '', model: child, tools: { look } })
  const host = agent({ name: 'host', instructions: '', model, subagents: { ask: expert } })
  const runtime = createRuntime({ store: open() })
  const run = runtime.run(host, text, conversationId === undefined ? {} : { conversationId })
  await run.result
  await runtime.close()
  return { id: run.conversationId, said: String(resultsIn(model.requests.at(-1)).at(-1)?.content) }
}

describe.each<[string, (folder: string) => LocalStore]>([
  ['JSON', (where) => jsonStore(where)],
  ['SQLite', (where) => sqliteStore(path.join(where, 'rows.db'))],
])('a session in a %s store', (_, openIn) => {
  test('goes on after every restart of its process', async () => {
    const open = () => openIn(folder)
    const first = await process(open, 'one')
    await process(open, 'two', first.id)
    const third = await process(open, 'three', first.id)

    expect(third.said).toBe(first.said.replace('heard one', 'heard one, two, three'))
  })
})

test('beside a JSON store stand documents of the host and of its session, whole after every turn', async () => {
  const first = await process(() => jsonStore(folder), 'one')
  const second = await process(() => jsonStore(folder), 'two', first.id)
  const session = /session_id: (\S+)/.exec(second.said)?.[1] ?? ''

  expect(readdirSync(folder).sort()).toEqual([`${first.id}.json`, `${session}.json`, 'store.journal'].sort())
  const [host, expert] = [first.id, session].map((id): SessionDocument => {
    return JSON.parse(readFileSync(path.join(folder, `${id}.json`), 'utf8'))
  })
  expect(host).toMatchObject({ agent: 'host', host: null, turn_count: 2 })
  expect(expert).toMatchObject({ agent: 'expert', host: { agent: 'host', conversation_id: first.id }, turn_count: 2 })
  expect(expert?.turns[1]?.messages).toEqual([
    { role: 'user', content: 'two' },
    { role: 'assistant', content: '', calls: [{ id: expect.any(String), name: 'look', input: {} }] },
    { role: 'tool', call_id: expect.any(String), name: 'look', content: 'seen', is_error: false },
    { role: 'assistant', content: 'heard one, two' },
  ])
})
