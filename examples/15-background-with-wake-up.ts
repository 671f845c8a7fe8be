// A host starts two readers that work beside it, and answers its user at once. When they end, one more turn of its
// conversation tells it of both: nobody polls, and nothing is told twice.

import assert from 'node:assert/strict'
import { agent, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'

const reader = agent({
  name: 'reader',
  instructions: 'You read one source and sum it up in one line.',
  // Real models go here.
  model: scriptedModel(({ messages }) => ({ text: `Summary of ${messages.at(-1)?.content}`, delayMs: 100 })),
})

const host = agent({
  name: 'host',
  instructions: 'Start readers for long sources. Tell the user what they found when you hear of it.',
  subagents: { reader: { agent: reader, background: true } },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return 'Two readers are at work. I will come back to you.'
    if (!String(last?.content).startsWith('[background]')) {
      return {
        calls: ['the log', 'the paper'].map((prompt) => ({
          name: 'subagent_spawn',
          input: { name: 'reader', prompt },
        })),
      }
    }
    // What ended is told as data, one subagent a line.
    const ended = String(last?.content).split('\n').slice(1)
    return ended.map((line) => JSON.parse(line).text).join('\n')
  }),
})

const runtime = createRuntime()
const run = runtime.run(host, 'What do the log and the paper say?')
const first = await run.result
console.log(first.text, `(${first.open.length} still open)`)

// The run is over; what it started is not. The whole tree is idle later.
await runtime.idle()
const talk = await runtime.conversation(run.conversationId)
const [told] = (await talk.recentTurns({ limitTurns: 1 })).slice(-1)
await runtime.close()

console.log(told?.text)
assert.equal(first.open.length, 2)
assert.match(told?.text ?? '', /Summary of/)
