// An editor hands three topics to a researcher. Each delegation is checked against the researcher's `input` before a
// child is made, and the three children run at the same time.

import assert from 'node:assert/strict'
import { agent, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { z } from 'zod'

const researcher = agent({
  name: 'researcher',
  description: 'Researches one topic.',
  instructions: 'You research one topic and answer in one line.',
  input: z.object({ topic: z.string().min(3) }),
  // A real model goes here. This script reads the topic out of the message, which is the input as JSON.
  model: scriptedModel(({ messages }) => {
    const { topic } = JSON.parse(String(messages.at(-1)?.content))
    return { text: `${topic}: one round trip less.`, delayMs: 200 }
  }),
})

const editor = agent({
  name: 'editor',
  instructions: 'You write a short article. Research every topic first.',
  model: scriptedModel(({ messages }) => {
    const found = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    if (found.length > 0) return found.join('\n')
    return { calls: ['QUIC', 'HTTP/3', 'TLS 1.3'].map((topic) => ({ name: 'research', input: { topic } })) }
  }),
  // The key is the name of the tool that the editor's model sees.
  subagents: { research: researcher },
})

const runtime = createRuntime()
const outcome = await runtime.run(editor, 'Write about faster connections.').result
await runtime.close()

console.log(outcome.text)
console.log(`${outcome.children} subagents in ${outcome.durationMs} ms`)
assert.equal(outcome.status, 'completed')
assert.equal(outcome.children, 3)
assert.equal(outcome.text.split('\n').length, 3)
