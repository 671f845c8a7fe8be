// An agent without an input schema is talked with: `ask(message, session_id?)`. The host's model passes the session_id of
// an earlier answer to go on. Copies in a folder bring a session back where the host's store is new, in the conversation
// that began it: the application names that one.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, createRuntime } from 'legate'
import { jsonSession } from 'legate/store/json'
import { scriptedModel } from 'legate/testing'

const folder = mkdtempSync(join(tmpdir(), 'legate-example-'))

const lawyer = agent({
  name: 'lawyer',
  description: 'Knows the law.',
  instructions: 'You answer questions of law.',
  // A real model goes here. This one says how many questions it remembers.
  model: scriptedModel(({ messages }) => `Answer ${messages.filter(({ role }) => role === 'user').length}.`),
})

const host = agent({
  name: 'host',
  instructions: 'You ask the lawyer.',
  subagents: { ask: { agent: lawyer, session: { store: jsonSession(folder), ttlMs: 86_400_000, max: 10 } } },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return String(last.content)
    const [message = '', session_id = ''] = String(last?.content).split(' @')
    return { calls: [{ name: 'ask', input: { message, session_id } }] }
  }),
})

const runtime = createRuntime()
const first = await runtime.run(host, 'May I?').result
const [, session = ''] = /^session_id: (\S+)/.exec(first.text) ?? []
const talk = await runtime.conversation(first.conversationId)
console.log((await talk.sessions()).map(({ tool, about, turns }) => `${tool}: "${about}", ${turns} turn`))
await runtime.close()

// Another process: its rows are new, the folder and the conversation are the same.
const later = createRuntime()
const same = { conversationId: first.conversationId, createConversation: true }
const second = await later.run(host, `And my neighbour? @${session}`, same).result
const unknown = await later.run(host, `And he? @${session}`).result
await later.close()
console.log(second.text.split('\n').at(-1), '|', unknown.text)

assert.deepEqual(readdirSync(folder), [`${session}.json`])
assert.match(second.text, /\n\nAnswer 2\.$/)
assert.match(unknown.text, /^Error: Session setup failed: there is no session /)
rmSync(folder, { recursive: true })
