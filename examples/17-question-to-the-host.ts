// A subagent that must know something asks its host and waits as a row: it costs nothing, and would survive a restart.
// The host's call goes on with the question; it answers, and hears of the end later. What no host can answer, a person can.

import assert from 'node:assert/strict'
import { agent, createRuntime } from 'legate'
import { askTools, backgroundSubagents } from 'legate/background'
import type { ModelRequest } from 'legate/models'
import { scriptedModel } from 'legate/testing'

const resultsIn = ({ messages }: ModelRequest) =>
  messages.filter(({ role }) => role === 'tool').map((one) => String(one.content))

const painter = agent({
  name: 'painter',
  instructions: 'Paint the shed. Ask before you choose a colour.',
  tools: { ...askTools() },
  // Real models go here.
  model: scriptedModel((request) => {
    const [colour] = resultsIn(request)
    if (colour === undefined) return { calls: [{ name: 'ask_host', input: { question: 'Which colour?' } }] }
    return `The shed is ${colour} now.`
  }),
})

const host = agent({
  name: 'host',
  instructions: 'Have the shed painted. The owner likes green.',
  tools: { ...backgroundSubagents() },
  subagents: { paint: painter },
  model: scriptedModel((request) => {
    const [asked, answered] = resultsIn(request)
    const last = String(request.messages.at(-1)?.content)
    if (last.startsWith('[background]')) return JSON.parse(last.split('\n')[1] ?? '{}').text
    if (asked === undefined) return { calls: [{ name: 'paint', input: { message: 'Paint the shed.' } }] }
    if (answered !== undefined) return 'The painter knows what it needs.'
    const { child_conversation_id, question } = JSON.parse(asked)
    console.log(`the painter asks: ${question}`)
    return { calls: [{ name: 'subagent_send', input: { child_conversation_id, message: 'green' } }] }
  }),
})

const runtime = createRuntime()
const run = runtime.run(host, 'The shed needs paint.')
await run.result
await runtime.idle()
const lines = await (await runtime.conversation(run.conversationId)).recentTurns()
await runtime.close()

console.log(lines.at(-1)?.text)
assert.equal(lines.at(-1)?.text, 'The shed is green now.')
