import { describe } from 'vitest'
import type { NodeRun } from '../../../src/core/agent/hooks/node-run.ts'
import { PlanReader } from '../../../src/core/agent/planner/plan-reader.ts'
import { judge } from '../../../src/core/agent/step/answer.ts'
import { AnswerSize } from '../../../src/core/agent/step/answer-content.ts'
import { AnswerWatch } from '../../../src/core/agent/step/answer-watch.ts'
import { readCall } from '../../../src/core/agent/step/call.ts'
import { canonicalJson, parseJson, toJson } from '../../../src/core/base/json.ts'
import { type CheckedSchema, readSchema } from '../../../src/core/base/schema/schema.ts'
import { emptyFields } from '../../../src/core/fields/field-check.ts'
import { FieldParser } from '../../../src/core/fields/field-parser.ts'
import { fieldsAt, readPath } from '../../../src/core/fields/path-pattern.ts'
import { testGrowth } from '../../support/growth.ts'
import { inChunks, JSON_TOKENS } from './tokens.ts'

const MOST = 16_000_000
/** What is read at once of an answer. */
const PIECE = 1_000_000

const SCHEMA: CheckedSchema = readSchema(
  {
    type: 'object',
    properties: {
      a: {},
      items: { type: 'array', items: { type: 'object', properties: { title: { type: 'string' } } } },
    },
    required: ['a'],
  },
  'test',
)

/** What models write around JSON, and instead of it. */
const ANSWER: readonly string[] = [
  ...JSON_TOKENS,
  ...[
    '</think>',
    '`<think>`',
    '<thinking>',
    '<',
    '>',
    '</',
    '```',
    '```\n',
    '`',
    'Here it is: ',
    '{ ',
    '{"b":1}',
    '[1]',
  ],
  ...[
    '{"a":',
    '{"items":[',
    '{"title":"x"},',
    '"\\n',
    '\\u00e9',
    '\r\n',
    '\u2028',
    'None',
    'True',
    'NaN',
    '+',
    '0x',
    '// a\n',
  ],
  ...['/* a */', 'é', '😀', '\ud83d', "{'a': '", '{a: ', '-1.5e3, ', '"\t', '\u0001', '\\x41', "\\'", '00', '$'],
]

describe('an answer as it is streamed', () => {
  for (const [words, schema] of [
    ['with a schema', SCHEMA],
    ['of any form', null],
  ] as const) {
    testGrowth(`an answer ${words}, in one piece`, {
      read: (text) => hear(schema, [text]),
      tokens: ANSWER,
      most: PIECE,
    })
    testGrowth(`an answer ${words}, in pieces of a few characters`, {
      read: (text) => hear(schema, inChunks(text, 7)),
      tokens: ANSWER,
      most: PIECE,
    })
    testGrowth(`an answer ${words}, in large pieces`, {
      read: (text) => hear(schema, inChunks(text, 10_000)),
      tokens: ANSWER,
      most: MOST / 4,
      isStreamed: true,
    })
    testGrowth(`an answer ${words}, inside a document`, {
      read: (text) => hear(schema, inChunks(text, 1_000)),
      tokens: ANSWER,
      most: MOST / 4,
      around: (body) => `{"a": [${body}`,
      isStreamed: true,
    })
  }
  testGrowth('a text in an answer', {
    read: (text) => hear(SCHEMA, inChunks(text, 5)),
    tokens: ['a', '\\n', '\\u00e9', '\\ud83d', '\\ude00', '\\', 'é', '😀', ' ', '\\q'],
    most: PIECE,
    around: (body) => `{"a": "${body}"}`,
  })
  testGrowth('strict JSON', {
    read: (text) => {
      const parser = new FieldParser(null, { strict: true })
      parser.push(text)
      parser.end()
    },
    tokens: JSON_TOKENS,
    most: PIECE,
    around: (body) => `[${body}`,
  })
})

describe('an answer that is judged', () => {
  const run = { agent: { output: SCHEMA, repair: { retries: 0 } }, node: {}, turn: {}, home: noRepairs() }
  const read = (text: string) => judge(run as unknown as NodeRun, { content: text } as never)

  testGrowth('an answer', { read, tokens: ANSWER, most: MOST / 4, isStreamed: true })
  testGrowth('an answer in a fence', {
    read,
    tokens: ANSWER,
    most: MOST / 4,
    around: (body) => `\`\`\`json\n${body}\`\`\``,
    isStreamed: true,
  })
  testGrowth('an answer behind thoughts', {
    read,
    tokens: ANSWER,
    most: MOST / 4,
    around: (body) => `<think>${body}</think>{"a":1}`,
    isStreamed: true,
  })
  testGrowth('items that are checked one by one', {
    read: async (text) => {
      const watch = new AnswerWatch(new FieldParser(SCHEMA, {}), null, true)
      for (const chunk of inChunks(text, 100)) watch.push(chunk)
      await watch.settled()
    },
    tokens: ['{"title":"x"},', '{},', '{"title":1},', '{"title":{"b":[[]]}},', '[],', '{"title":"\\n"},'],
    most: MOST / 64,
    around: (body) => `{"a":1,"items":[${body}`,
  })
  testGrowth('fields that must be there', {
    read: (text) => {
      const value: unknown = JSON.parse(text)
      emptyFields(value, ['items[*].title', '*', 'items[*].*'], false)
      fieldsAt(value, readPath('items[*].title'))
    },
    tokens: ['{"title":"x"},', '{},', '{"title":null},', '1,', '[],'],
    most: MOST / 16,
    around: (body) => `{"items":[${body.slice(0, body.lastIndexOf(',') + 1)}{}]}`,
  })
  testGrowth('a plan for tools', {
    read: (text) => {
      const reader = new PlanReader(4)
      for (const chunk of inChunks(text, 10)) reader.push(chunk)
      reader.verdict()
    },
    tokens: ANSWER,
    most: MOST / 16,
    around: (body) => `{"use_tool": true, "tool_commands": [${body}`,
  })
})

describe('JSON', () => {
  testGrowth('JSON', { read: parseJson, tokens: JSON_TOKENS, most: MOST })
  testGrowth('a list in JSON', {
    read: parseJson,
    tokens: ['1,', '"a",', '{"a":1},', '[],', '"\\ud800",', '"\\u0041",', '1e999,', '"\\\\",', '1e5,', '\n'],
    most: MOST,
    around: (body) => `[${body}1]`,
  })
  testGrowth('a text in JSON', {
    read: parseJson,
    tokens: ['\\u0041', '\\ud800', '\\ud83d\\ude00', '\\\\', '\\"', 'a', 'é', '😀', '\u{d800}', '\\n', '\\u'],
    most: MOST,
    around: (body) => `"${body}"`,
  })
  testGrowth('a number in JSON', {
    read: parseJson,
    tokens: ['1', '0', '.', 'e', '-', '+', '9'],
    most: MOST,
    around: (body) => `[1${body}`,
  })
  testGrowth('data of a tool', {
    read: (text) => {
      const json = toJson(JSON.parse(text))
      return json.ok && canonicalJson(json.value)
    },
    tokens: ['1,', '"a",', '{"a":1},', '[],', '{"b":{"a":[]}},', '"\u{d800}",'],
    most: MOST / 8,
    around: (body) => `[${body.slice(0, body.lastIndexOf(',') + 1)}1]`,
  })
  testGrowth('keys of an object', {
    read: (text) => {
      const keys = text.split('\n').map((key, at) => [`${key}${at}`, at])
      const json = toJson(Object.fromEntries(keys))
      return json.ok && canonicalJson(json.value)
    },
    tokens: ['\n', 'a\n', '1\n', 'é\n', '__proto__\n', '\u{d800}\n'],
    most: MOST / 64,
  })
  testGrowth('arguments of a call', {
    read: (text) => {
      new AnswerSize().add(readCall({ type: 'tool-call', id: 'a', name: 'a', input: text }))
    },
    tokens: JSON_TOKENS,
    most: MOST / 2,
    around: (body) => `{"a": ${body}`,
  })
})

testGrowth('the path of a field', {
  read: readPath,
  tokens: ['a', '.', '[', ']', '[0]', '[*]', '["', '"]', '["a"]', '\\', '*', '/', '~1', '~', '["a', '.a', '"'],
  most: 1_000_000,
  around: (body) => `a${body}`,
})

async function hear(schema: CheckedSchema | null, pieces: readonly string[]): Promise<void> {
  const parser = new FieldParser(schema, {})
  for (const piece of pieces) parser.push(piece)
  parser.end()
}

function noRepairs(): object {
  return { ledger: { store: { nodesOf: () => [] } } }
}
