import { agent, createRuntime, tool } from 'legate'
import { describe, expect, test } from 'vitest'
import type { JsonSchema } from '../../../src/core/base/schema/schema.ts'
import { NO_USAGE } from '../../../src/core/graph/content.ts'
import type { Model, Part } from '../../../src/core/model/model.ts'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { isFull } from '../../crash/support/full.ts'
import { watchWork } from '../../support/pace.ts'
import { lasting } from '../../support/stores.ts'
import { inChunks } from './tokens.ts'

/** A hostile answer, and the agent that gets it. */
interface Answer {
  readonly parts: () => readonly Part[]
  readonly output?: JsonSchema
  /** Whether it is read, or refused by a limit. */
  readonly status?: string
}

type Call = Extract<Part, { type: 'tool-call' }>

const MOST_MS = 1_000
/** The JSON store writes a text in one piece, and this one six times as long as it was said. */
const MOST_MS_JSON = 2_000
/** What is too slow for 15 MB by its growth shows with a part of it; the whole is read in full. */
const MOST = isFull ? 15_000_000 : 4_000_000
const VALUES = 98_000
const WORDS = 'lorem ipsum '
const LIST: JsonSchema = { type: 'array' }
const MANY = Array.from({ length: 240 }, (_, at) => at)

const LONE = '\ud800'.repeat(MOST)
const NULS = '\0'.repeat(MOST)
/** Characters of calls. */
const CALLS = 3_900_000

const keys = (count: number) => Array.from({ length: count }, (_, at) => `"k${at}":1`).join()
const many = (unit: string, count: number) => `[${`${unit},`.repeat(count - 1)}${unit}]`
const long = (characters: number) => WORDS.repeat(characters / WORDS.length)
const say = (text: string, size = 4_000): Part[] =>
  inChunks(text, size).map((piece) => ({ type: 'text-delta', text: piece }))
const call = (input: string, at = 0): Call => ({ type: 'tool-call', id: `c${at}`, name: 'take', input })
const times = (count: number, parts: readonly Part[]) => Array.from({ length: count }, () => parts).flat()

const ANSWERS: Readonly<Record<string, Answer>> = {
  'a text': { parts: () => say(long(MOST)) },
  'a text in one piece': { parts: () => say(long(MOST), MOST) },
  'thoughts in the text': { parts: () => say(`<think>${long(MOST)}</think>yes`) },
  'a million pieces, all there at once': { parts: () => say(long(MOST), 16) },
  'a text and many pictures': {
    parts: () => [
      ...say(long(MOST / 2)),
      ...times(20_000, [
        { type: 'text-delta', text: 'a' },
        { type: 'block', block: { type: 'image', mediaType: 'image/png', data: 'a' } },
      ]),
    ],
  },
  'thoughts that end many times': {
    parts: () => [
      ...inChunks('a'.repeat(MOST / 2), 4_000).map((text): Part => ({ type: 'reasoning-delta', text })),
      ...times(20_000, [
        { type: 'reasoning-delta', text: 'a' },
        { type: 'block', block: { type: 'reasoning', text: 'a' } },
      ]),
      ...say('yes'),
    ],
  },
  'an output with a long text': {
    parts: () => say(`{"a":"${long(MOST)}"}`),
    output: { type: 'object', properties: { a: { type: 'string' } } },
  },
  'an output after thoughts': { parts: () => say(`<think>${long(MOST)}</think>[1]`), output: LIST },
  'an output of small values': { parts: () => say(many('1', VALUES)), output: LIST },
  'an output of objects': { parts: () => say(many('{}', VALUES)), output: LIST },
  'an output with too many values': {
    parts: () => say(many('[[]]', 3_000_000)),
    output: LIST,
    status: 'invalid_output',
  },
  'an output that fits none of many schemas': {
    parts: () => say(many('1', VALUES)),
    output: { items: { anyOf: [...MANY.map((minLength) => ({ type: 'string', minLength })), { type: 'number' }] } },
    status: 'invalid_output',
  },
  'an output that is compared with many values': {
    parts: () => say(many('1', VALUES)),
    output: { not: { anyOf: MANY.map(() => ({ enum: [1, {}] })) } },
    status: 'invalid_output',
  },
  'an output of objects that have many names': {
    parts: () => say(many('{}', VALUES)),
    output: { items: { properties: Object.fromEntries(MANY.map((at) => [`p${at}`, true])) } },
    status: 'invalid_output',
  },
  'a call with a long text': { parts: () => [call(`{"a":"${long(MOST)}"}`)] },
  'a call with many values': { parts: () => [call(many('{}', VALUES))] },
  'a call with too many values': { parts: () => [call(many('{}', 4_000_000))] },
  'calls with many values each': {
    parts: () => Array.from({ length: 20 }, (_, at) => call(many('1', 60_000), at)),
    status: 'failed',
  },
  'a call with many keys': { parts: () => [call(`{${keys(VALUES)}}`)] },
  'a call of a tool with a long name': { parts: () => [{ ...call('{}'), name: long(MOST) }] },
  'a call with a long id': { parts: () => [{ ...call('{}'), id: long(MOST) }] },
  'a call whose arguments are no JSON': { parts: () => [call(long(MOST))] },
  'a tool of halves of characters': { parts: () => [{ ...call('{}'), name: LONE }], status: 'failed' },
  'an id of halves of characters': { parts: () => [{ ...call('{}'), id: LONE }], status: 'failed' },
  'arguments of halves of characters': { parts: () => [call(LONE)], status: 'failed' },
  'arguments of control characters': { parts: () => [{ ...call(''), input: { a: NULS } }], status: 'failed' },
  'a call of a subagent with a long text': {
    parts: () => [{ ...call(`{"message":"${long(CALLS)}"}`), name: 'child' }],
  },
  'a call of a subagent in a long session': {
    parts: () => [{ ...call(`{"message":"a","session_id":"${long(CALLS)}"}`), name: 'child' }],
  },
  'a call of a subagent with control characters': {
    parts: () => [{ ...call(`{"message":"${'\\u0000'.repeat(CALLS / 6)}"}`), name: 'child' }],
  },
  'calls with a long text each': {
    parts: () => Array.from({ length: 10 }, (_, at) => call(`{"a":"${long(CALLS / 2)}"}`, at)),
    status: 'failed',
  },
  'a text of halves of characters': { parts: () => say(LONE), status: 'failed' },
  'a text of control characters': { parts: () => say(NULS), status: 'failed' },
  'as many control characters as it may have': { parts: () => say('\0'.repeat(2_600_000)) },
  'many calls': { parts: () => Array.from({ length: 14_000 }, (_, at) => call('{}', at)), status: 'over_budget' },
}

/** One answer for each kind of document that the JSON store writes in one piece: long texts, many keys, escapes, many rows. */
const JSON_ANSWERS: ReadonlySet<string> = new Set([
  'a text in one piece',
  'an output with a long text',
  'a call with many keys',
  'a call of a subagent with control characters',
  'as many control characters as it may have',
  'many calls',
])
describe.each(lasting)(`an answer of ${MOST / 1_000_000} MB (%s)`, (name, create) => {
  const most = name === 'json' ? MOST_MS_JSON : MOST_MS
  const answers = Object.entries(ANSWERS).filter(([said]) => isFull || name !== 'json' || JSON_ANSWERS.has(said))

  test.each(answers)(
    'I10: %s keeps nobody waiting for longer than a second',
    { timeout: 300_000 },
    async (_, answer) => {
      const rows = create()
      try {
        let least = Number.POSITIVE_INFINITY
        for (let tries = 0; tries < 4 && least > most; tries++) {
          const { outcome, blockedMs } = await runWatched(rows.open(), answer)
          expect(outcome.status).toBe(answer.status ?? 'completed')
          least = Math.min(least, blockedMs)
        }
        expect(least).toBeLessThan(most)
      } finally {
        await rows.drop()
      }
    },
  )
})

async function runWatched(store: LocalStore, answer: Answer) {
  const { output } = answer
  const take = tool({ description: 'Takes it.', input: {}, execute: () => 'ok' })
  const reader = agent({
    name: 'reader',
    instructions: 'Read.',
    model: modelOf(answer),
    tools: { take },
    subagents: {
      child: agent({ name: 'child', instructions: 'Say yes.', model: modelOf({ parts: () => say('yes') }) }),
    },
    ...(output && { output }),
  })
  const runtime = createRuntime({ store })
  const blocked = watchLoop()
  const outcome = await runtime.run(reader, 'Go on.').result
  const blockedMs = await blocked()
  await runtime.close()
  return { outcome, blockedMs }
}

/** It says all of it without letting go of the event loop, and that it is done when it is asked again. */
function modelOf({ parts, output }: Answer): Model {
  let asked = 0
  return {
    id: 'hostile/model',
    async *stream() {
      const said: readonly Part[] = asked++ === 0 ? parts() : say(output === undefined ? 'done' : 'no')
      yield* said
      yield { type: 'finish', reason: said.at(-1)?.type === 'tool-call' ? 'tool-calls' : 'stop', usage: NO_USAGE }
    },
  }
}

/** The longest time that a timer had to wait, in milliseconds of work: what other programs take does not count. */
function watchLoop(): () => Promise<number> {
  let longest = 0
  let work = watchWork()
  const look = () => {
    longest = Math.max(longest, work())
    work = watchWork()
  }
  const timer = setInterval(look, 20)
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, 40))
    clearInterval(timer)
    return longest
  }
}
