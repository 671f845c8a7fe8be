// The agents of the command line's tests, as a user's module: models are scripted, and how long things take is in the
// environment. The built package is used, as the command line itself does; in a test's own process it is the sources.

import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, tool } from 'legate'
import { askTools, backgroundSubagents } from 'legate/background'

/** `await` until this file is there: how a test holds things where it wants them. */
const gate = process.env.LEGATE_TEST_GATE ?? ''
const NO_INPUT = { type: 'object', properties: {}, additionalProperties: true }
const usage = { inputTokens: 1_200, outputTokens: 34, cacheReadTokens: 0, cacheWriteTokens: 0 }

async function opened(signal) {
  while (gate !== '' && !existsSync(gate)) await sleep(15, undefined, { signal })
}

/** A model that says what `script` gives for the results it has seen; `wait` in it holds the stream at the gate. */
function model(script) {
  return {
    get id() {
      return process.env.LEGATE_TEST_MODEL ?? 'test/model'
    },
    async *stream({ messages }, { signal }) {
      const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
      const asked = messages.filter(({ role }) => role === 'user').map(({ content }) => String(content))
      const { before = false, chunks = [], calls = [] } = script({ results, asked })
      if (before) await opened(signal)
      for (const chunk of chunks) {
        if (chunk === 'WAIT') await opened(signal)
        else yield { type: 'text-delta', text: chunk }
      }
      for (const [at, call] of calls.entries()) yield { type: 'tool-call', id: `call_${at}`, ...call }
      yield { type: 'finish', reason: calls.length > 0 ? 'tool-calls' : 'stop', usage }
    },
  }
}

const look = tool({
  description: 'Looks something up.',
  input: NO_INPUT,
  effect: 'pure',
  execute: async (_, { signal }) => {
    if (process.env.LEGATE_TEST_PRINTS === '1') console.log('the tool prints this')
    await opened(process.env.LEGATE_TEST_DEAF === '1' ? undefined : signal)
    return 'It is blue.'
  },
})

const scout = agent({
  name: 'scout',
  instructions: 'You look.',
  input: { type: 'object', properties: { topic: { type: 'string' } }, required: ['topic'] },
  tools: { look },
  model: model(({ results }) =>
    results.length === 0
      ? { calls: [{ name: 'look', input: { where: 'the sky', color: '\u001b[31mred\u001b]0;owned\u0007' } }] }
      : { chunks: [`I saw: ${results[0]}`] },
  ),
})

const children = Number(process.env.LEGATE_TEST_CHILDREN ?? 2)

/** Delegates to some scouts, all of whom wait at the gate. */
export const lead = agent({
  name: 'lead',
  instructions: 'You lead.',
  subagents: { search: scout },
  model: model(({ results, asked }) => {
    if (asked.at(-1) === 'Go on where you stopped.')
      return { chunks: [`I went on after ${asked.length - 1} question.`] }
    if (results.length > 0) return { chunks: [`All of them saw it: ${results.length}.`] }
    const topics = Array.from({ length: children }, (_, at) => `topic ${at}`)
    return { calls: topics.map((topic) => ({ name: 'search', input: { topic } })) }
  }),
})

/** Says something, waits at the gate in the middle of its sentence, and goes on. */
export const talker = agent({
  name: 'talker',
  instructions: 'You talk.',
  model: model(() => ({
    chunks: ['Once upon ', 'a time \u001b[2J\u001b]0;owned\u0007\u009b5n', 'WAIT', '日本語 e\u0301nd.'],
  })),
})

/** Waits at the gate before its first word, and fails if it is told to. */
export const failing = agent({
  name: 'failing',
  instructions: 'You fail.',
  model: {
    id: 'test/model',
    async *stream(_, { signal }) {
      await opened(signal)
      yield { type: 'text-delta', text: 'Almost ' }
      throw new Error('the model said \u001b[31mno')
    },
  },
})

/** Needs a person before it may look. */
export const careful = agent({
  name: 'careful',
  instructions: 'You ask first.',
  tools: { look },
  grant: { use: ['model:*'], ask: ['tool:look'] },
  model: model(({ results }) =>
    results.length === 0
      ? { calls: [{ name: 'look', input: { where: process.env.LEGATE_TEST_WHERE ?? 'here' } }] }
      : { chunks: [`Done: ${results[0]}`] },
  ),
})

/** Has an input of its own, says how often it was asked, and waits at the gate the first time. */
export const typed = agent({
  name: 'typed',
  instructions: 'You take a place.',
  input: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  model: model(({ asked }) => ({
    chunks: ['Asked ', ...(asked.length === 1 ? ['WAIT'] : []), `${asked.length} times: ${asked.at(-1)}`],
  })),
})

/** Starts a talker in the background, answers at once, and says what it hears of it later. */
export const starter = agent({
  name: 'starter',
  instructions: 'You start others.',
  tools: { ...backgroundSubagents({ agent: talker }) },
  model: model(({ results, asked }) => {
    if (asked.length > 1) return { chunks: [`It said: ${/日本語/.test(asked.at(-1)) ? 'what it should' : 'nothing'}.`] }
    if (results.length > 0) return { chunks: ['It is at work.'] }
    return { calls: [{ name: 'subagent_spawn', input: { name: 'teller', prompt: 'Tell me.' } }] }
  }),
})

/** Says what time it is, again and again, once the gate is open. */
export const ticker = agent({
  name: 'ticker',
  instructions: 'You tell the time.',
  model: {
    id: 'test/model',
    async *stream(_, { signal }) {
      yield { type: 'text-delta', text: 'Listen: ' }
      await opened(signal)
      for (let tick = 0; tick < 20; tick++) {
        yield { type: 'text-delta', text: `<${Date.now()}>` }
        await sleep(50)
      }
      yield { type: 'finish', reason: 'stop', usage }
    },
  },
})

/** Asks a person, and says what the answer was. */
export const curious = agent({
  name: 'curious',
  instructions: 'You ask.',
  tools: { ask_person: askTools().ask_person },
  model: model(({ results }) =>
    results.length === 0
      ? { calls: [{ name: 'ask_person', input: { question: 'Which\nport?' } }] }
      : { chunks: [`So it is: ${results[0]}`] },
  ),
})

/** Code that asks a person twice, and leaves a mark each time it begins. */
function desk(name, effect) {
  return agent({
    name,
    effect,
    async reply(_, { ask }) {
      if (process.env.LEGATE_TEST_MARKS) appendFileSync(process.env.LEGATE_TEST_MARKS, `${name}\n`)
      const port = await ask('Which port?')
      return `So it is: ${port}, ${await ask('Sure?')}`
    },
  })
}

export const steady = desk('steady', 'idempotent')
export const hasty = desk('hasty', 'effectful')

/** Code that waits for a child that needs a person. */
export const waiter = agent({
  name: 'waiter',
  effect: 'pure',
  subagents: { ask: curious },
  reply: async (_, { delegate }) => (await delegate('ask', 'Ask.')).text,
})

/** Pays, which leaves a mark with the key of the call and then waits at the gate, and says what came of it. */
export const payer = agent({
  name: 'payer',
  instructions: 'You pay.',
  tools: {
    pay: tool({
      description: 'Pays.',
      input: NO_INPUT,
      execute: async (_, { idempotencyKey }) => {
        if (process.env.LEGATE_TEST_MARKS) appendFileSync(process.env.LEGATE_TEST_MARKS, `paid ${idempotencyKey}\n`)
        await opened()
        return 'paid by the tool'
      },
    }),
  },
  model: model(({ results }) =>
    results.length === 0
      ? { calls: [{ name: 'pay', input: { amount: 5 } }] }
      : { chunks: [`In the end: ${results[0]}`] },
  ),
})
