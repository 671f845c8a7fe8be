// The agents of the browser's tests, as a user's module. Models follow scripts; how long things take is in the environment.

import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { agent, tool } from 'legate'
import { askTools } from 'legate/background'

/** A file that a test makes: until it is there, those who speak go on. */
const gate = process.env.LEGATE_TEST_GATE ?? ''
const marks = process.env.LEGATE_TEST_MARKS ?? ''
/** Milliseconds that a model or a tool takes. */
const pace = Number(process.env.LEGATE_TEST_PACE ?? 20)
const ANY = { type: 'object', properties: {}, additionalProperties: true }

/**
 * A model that says what `script` gives for the results and the questions that it has seen; `until` says more as time
 * passes.
 */
function model(script, id = 'openai/gpt-5') {
  return {
    id,
    async *stream({ messages }, { signal }) {
      const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
      const asked = messages.filter(({ role }) => role === 'user').map(({ content }) => String(content))
      const given = script({ results, asked })
      const { text = '', reasoning, calls = [], until } = typeof given === 'string' ? { text: given } : given
      await sleep(pace, undefined, { signal })
      if (reasoning !== undefined) yield { type: 'reasoning-delta', text: reasoning }
      for (const word of text.split(/(?<= )/)) if (word !== '') yield { type: 'text-delta', text: word }
      if (until !== undefined) yield* until(signal)
      for (const [at, call] of calls.entries()) yield { type: 'tool-call', id: `call_${results.length}_${at}`, ...call }
      const usage = {
        inputTokens: 900 + 400 * messages.length,
        outputTokens: 30 + text.length,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
      }
      yield { type: 'finish', reason: calls.length > 0 ? 'tool-calls' : 'stop', usage }
    },
  }
}

/** Says numbered words, twenty a second, until the gate is open. */
async function* numbered(name, signal) {
  for (let at = 1; gate !== '' && !existsSync(gate); at++) {
    yield { type: 'text-delta', text: `${name}-${at} ` }
    await sleep(50, undefined, { signal })
  }
  yield { type: 'text-delta', text: 'and that is all.' }
}

const of = (name, input) => ({ name, input })

function works(description, result, more = {}) {
  return tool({
    description,
    input: ANY,
    effect: 'pure',
    ...more,
    execute: async (input, { signal }) => {
      await sleep(pace, undefined, { signal })
      return typeof result === 'function' ? result(input) : result
    },
  })
}

// A release with many hands: depth 3, an approval, a question, and one that writes while you look.

const canary = agent({
  name: 'canary',
  description: 'Puts a release on one machine and watches it.',
  instructions: 'You release carefully.',
  input: { type: 'object', properties: { image: { type: 'string' } }, required: ['image'] },
  tools: {
    probe: works('Asks a machine how it is.', 'eu-1: 200 in 41 ms, 0 errors in 10 minutes'),
    deploy: works('Puts an image on machines.', ({ to }) => `${to} runs shop:2.4.1`, { effect: 'effectful' }),
  },
  grant: { use: ['model:*', 'tool:probe'], ask: ['tool:deploy'] },
  model: model(({ results }) => {
    if (results.length === 0) return { calls: [of('probe', { machine: 'eu-1' })] }
    if (results.length === 1)
      return {
        text: 'The machine is healthy. I put the release on it now.',
        calls: [of('deploy', { to: 'eu-1', image: 'shop:2.4.1', watch: '10 min' })],
      }
    return `The release stands: ${results[1]}.`
  }),
})

const releaser = agent({
  name: 'releaser',
  description: 'Builds an image and releases it.',
  instructions: 'You release.',
  input: { type: 'object', properties: { commit: { type: 'string' } }, required: ['commit'] },
  tools: { build_image: works('Builds an image.', 'shop:2.4.1, 84 MB, 2 layers changed') },
  subagents: { try_it: canary },
  model: model(({ results }) => {
    if (results.length === 0) return { calls: [of('build_image', { commit: '4f1c9a2' })] }
    if (results.length === 1)
      return { text: 'Built. One machine first.', calls: [of('try_it', { image: 'shop:2.4.1' })] }
    return 'Version 2.4.1 is out on the first machine.'
  }),
})

const tester = agent({
  name: 'tester',
  description: 'Runs the tests.',
  instructions: 'You test.',
  input: { type: 'object', properties: { folder: { type: 'string' } }, required: ['folder'] },
  tools: { run_tests: works('Runs tests.', '214 passed, 0 failed, 3.2 s') },
  model: model(({ results }) =>
    results.length === 0 ? { calls: [of('run_tests', { folder: 'cart' })] } : `All of them pass: ${results[0]}.`,
  ),
})

const builder = agent({
  name: 'builder',
  description: 'Changes code.',
  instructions: 'You change code, and test what you change.',
  input: { type: 'object', properties: { task: { type: 'string' } }, required: ['task'] },
  tools: { shell: works('Runs a command.', 'cart/total.ts: 2 lines changed') },
  subagents: { test: tester, release: releaser },
  model: model(({ results }) => {
    if (results.length === 0)
      return {
        reasoning: 'The total is rounded per item. It has to be rounded once, at the end.',
        text: 'The total is rounded once per item. I round it once per cart.',
        calls: [of('shell', { command: "sed -i 's/round(item)/item/' cart/total.ts" })],
      }
    if (results.length === 1) return { calls: [of('test', { folder: 'cart' })] }
    if (results.length === 2) return { text: 'The tests pass.', calls: [of('release', { commit: '4f1c9a2' })] }
    return 'The cart rounds once, and the first machine has it.'
  }),
})

const researcher = agent({
  name: 'researcher',
  description: 'Finds out.',
  instructions: 'You find out why.',
  input: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] },
  tools: { read_log: works('Reads a log.', '38 carts differ by one cent since Monday') },
  model: model(({ results }) =>
    results.length < 2
      ? { calls: [of('read_log', { of: results.length === 0 ? 'cart' : 'billing' })] }
      : 'Since Monday 38 carts differ by one cent. All of them have three items or more.',
  ),
})

const bookkeeper = agent({
  name: 'bookkeeper',
  description: 'Keeps the books.',
  instructions: 'You keep the books right.',
  input: { type: 'object', properties: { since: { type: 'string' } }, required: ['since'] },
  tools: { ledger: works('Reads the ledger.', '38 entries, 0.38 in all'), ask_person: askTools().ask_person },
  model: model(({ results }) => {
    if (results.length === 0) return { calls: [of('ledger', { since: 'Monday' })] }
    if (results.length === 1)
      return { calls: [of('ask_person', { question: 'Shall I book 38 corrections, or one for all of them?' })] }
    return `Booked as you said: ${results[1]}.`
  }),
})

const writer = agent({
  name: 'writer',
  description: 'Writes to customers.',
  instructions: 'You write plainly.',
  input: { type: 'object', properties: { about: { type: 'string' } }, required: ['about'] },
  model: model(() => ({
    text: 'Some of your carts were off by one cent this week. We found out why, and we pay the difference back. ',
    until: (signal) => numbered('Sentence', signal),
  })),
})

export const lead = agent({
  name: 'lead',
  description: 'Repairs what customers report, with a crew of seven.',
  instructions: 'You lead a crew. Delegate what you can.',
  subagents: { research: researcher, build: builder, book: bookkeeper, write: writer },
  model: model(({ results, asked }) => {
    if (asked.length > 1) return `You said: ${asked.at(-1)}`
    if (results.length === 0)
      return { text: 'I look into it first.', calls: [of('research', { question: 'Why do totals differ?' })] }
    if (results.length === 1)
      return {
        text: 'Rounding, since Monday. Three of you go on side by side.',
        calls: [
          of('build', { task: 'Round a cart once' }),
          of('book', { since: 'Monday' }),
          of('write', { about: 'one cent' }),
        ],
      }
    return 'The cart is repaired, the books are right, and the customers know.'
  }),
})

// Three in a row, of whom the last one speaks until the gate opens.

const grandchild = agent({
  name: 'grandchild',
  description: 'Speaks.',
  instructions: 'You speak.',
  model: model(() => ({ text: 'I begin: ', until: (signal) => numbered('word', signal) })),
})
const child = agent({
  name: 'child',
  description: 'Hands on.',
  instructions: 'You hand on.',
  subagents: { speak: grandchild },
  model: model(({ results }) =>
    results.length === 0 ? { calls: [of('speak', { message: 'Speak.' })] } : `It spoke. ${results[0].slice(-16)}`,
  ),
})
export const teller = agent({
  name: 'teller',
  description: 'Lets others speak.',
  instructions: 'You let others speak.',
  subagents: { ask: child },
  model: model(({ results }) =>
    results.length === 0 ? { calls: [of('ask', { message: 'Ask.' })] } : 'They have spoken.',
  ),
})

// Three that leave marks outside: how often each effect happened.

const marker = agent({
  name: 'marker',
  description: 'Leaves marks.',
  instructions: 'You leave marks.',
  input: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
  tools: {
    mark: tool({
      description: 'Leaves a mark.',
      input: ANY,
      effect: 'idempotent',
      execute: async ({ name }, { signal }) => {
        await sleep(pace, undefined, { signal })
        appendFileSync(marks, `${name}\n`)
        return `${name} is there`
      },
    }),
  },
  model: model(({ results, asked }) => {
    const who = /[abc]/.exec(asked[0]?.match(/"who":\s*"(.)"/)?.[1] ?? '')?.[0] ?? 'x'
    return results.length < 4 ? { calls: [of('mark', { name: `${who}${results.length}` })] } : `${who} left four.`
  }),
})
export const counter = agent({
  name: 'counter',
  description: 'Has three others leave marks.',
  instructions: 'You count.',
  subagents: { mark_all: marker },
  model: model(({ results }) =>
    results.length === 0
      ? { calls: ['a', 'b', 'c'].map((who) => of('mark_all', { who })) }
      : `Twelve marks: ${results.join(' ')}`,
  ),
})

// A call two levels down that a person must allow.

const hand = agent({
  name: 'hand',
  description: 'Does it.',
  instructions: 'You do it.',
  tools: { deploy: works('Deploys.', ({ to }) => `${to} is out`, { effect: 'effectful' }) },
  grant: { use: ['model:*'], ask: ['tool:deploy'] },
  model: model(({ results }) =>
    results.length === 0 ? { calls: [of('deploy', { to: 'production' })] } : `Done: ${results[0]}`,
  ),
})
const arm = agent({
  name: 'arm',
  description: 'Moves the hand.',
  instructions: 'You move.',
  subagents: { move: hand },
  model: model(({ results }) => (results.length === 0 ? { calls: [of('move', { message: 'Go.' })] } : 'Moved.')),
})
export const careful = agent({
  name: 'careful',
  description: 'Has something done that needs your word.',
  instructions: 'You are careful.',
  subagents: { reach: arm },
  model: model(({ results }) => (results.length === 0 ? { calls: [of('reach', { message: 'Go.' })] } : 'It is done.')),
})

// A call that is cut off in the middle of its effect.

export const payer = agent({
  name: 'payer',
  description: 'Pays.',
  instructions: 'You pay.',
  tools: {
    pay: tool({
      description: 'Pays.',
      input: ANY,
      effect: 'effectful',
      execute: (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject)),
    }),
  },
  model: model(({ results }) => (results.length === 0 ? { calls: [of('pay', { to: 'ann', euros: 5 })] } : 'Paid.')),
})

// Many at once, of whom each says twenty words a second.

const voice = agent({
  name: 'voice',
  description: 'Sings.',
  instructions: 'You sing.',
  input: { type: 'object', properties: { number: { type: 'integer' } }, required: ['number'] },
  model: model(() => ({ until: (signal) => numbered('la', signal) })),
})
const voices = Number(process.env.LEGATE_TEST_CHILDREN ?? 100)
export const choir = agent({
  name: 'choir',
  description: 'Sings with many voices.',
  instructions: 'You sing.',
  subagents: { sing: voice },
  budget: { concurrency: voices + 10, children: voices + 10, toolCalls: 2_000 },
  model: model(({ results }) =>
    results.length === 0
      ? { calls: Array.from({ length: voices }, (_, number) => of('sing', { number })) }
      : `${results.length} sang.`,
  ),
})

/** Has an input of its own: a form. */
export const poet = agent({
  name: 'poet',
  description: 'Writes a poem.',
  instructions: 'You write poems.',
  input: {
    type: 'object',
    properties: {
      topic: { type: 'string', description: 'What it is about.', minLength: 2 },
      lines: { type: 'integer', minimum: 1, maximum: 20, default: 4 },
      mood: { type: 'string', enum: ['calm', 'merry', 'grave'] },
      rhymes: { type: 'boolean', default: true },
    },
    required: ['topic', 'mood'],
  },
  model: model(({ asked }) => `A poem of what you wanted: ${asked.at(-1)}`),
})
