import { describe, expect, test } from 'vitest'
import { parseJson } from '../../../src/core/base/json.ts'
import { Secrets } from '../../../src/core/base/secrets/secrets.ts'
import { guardedSchema } from '../../../src/core/tools/mcp/guarded-schema.ts'
import { MOST_MESSAGE_BYTES, MOST_MESSAGE_DEPTH } from '../../../src/core/tools/mcp/options.ts'
import { listTools, readServerTools, toolNames } from '../../../src/core/tools/mcp/read-tools.ts'
import { shownBlocks, shownLine } from '../../../src/core/tools/mcp/server.ts'
import { plainReason } from '../../../src/core/tools/mcp/session.ts'
import { LineReader } from '../../../src/core/tools/mcp/stdio-transport.ts'
import { testGrowth } from '../../support/growth.ts'
import { inChunks, JSON_TOKENS } from './tokens.ts'

const SECRETS = new Secrets(['abcdefgh', 'aaaaaaaaaaaaaaaaaaaa'])
const WORDS: readonly string[] = [
  'a',
  ' ',
  '\n',
  '\r\n',
  '\t',
  '\u200b',
  '\u{e0041}',
  '\ud800',
  'é',
  '😀',
  '\0',
  '\u001b[1m',
  'abcdefgh',
  'aaaaaaaaaaaa',
  '"',
  '\u202e',
]

describe('messages of a server', () => {
  for (const size of [3, 1_000, 65_536]) {
    testGrowth(`lines in pieces of ${size} bytes`, {
      read: (text) => {
        const reader = new LineReader(MOST_MESSAGE_BYTES)
        for (const chunk of inChunks(text, size)) reader.take(Buffer.from(chunk))
      },
      tokens: ['a', '\n', '\r', '\r\n', '{}\n', 'é', '"a",'],
      most: size === 3 ? MOST_MESSAGE_BYTES / 8 : MOST_MESSAGE_BYTES,
    })
  }
  testGrowth('a message', {
    read: (text) => parseJson(text, { maxDepth: MOST_MESSAGE_DEPTH }),
    tokens: JSON_TOKENS,
    most: MOST_MESSAGE_BYTES,
    around: (body) => `{"jsonrpc":"2.0","id":1,"result":${body}}`,
  })
  testGrowth('blocks of an answer', {
    read: (text) =>
      shownBlocks(
        inChunks(text, 10).map((block) => ({ label: 'a', block: { type: 'text', text: block } })),
        SECRETS,
      ),
    tokens: WORDS,
    most: MOST_MESSAGE_BYTES / 16,
  })
  testGrowth('words of a server', {
    read: (text) => [shownLine(text), plainReason(new Error(text)), plainReason({ message: 'x', data: { text } })],
    tokens: [...WORDS, 'fetch failed', "Server's protocol version is not supported: "],
    most: MOST_MESSAGE_BYTES / 4,
  })
})

describe('a listing of a server', () => {
  const limit = { availableTools: null, excludedTools: [] }
  const options = { limit, secrets: SECRETS, room: 8, taken: new Set<string>(), isHttp: true }
  const tool = { description: 'a', inputSchema: { type: 'object', properties: { a: { type: 'string' } } } }

  testGrowth('names of tools', {
    read: (text) => toolNames(inChunks(text, 20), { room: 8, shown: (name) => SECRETS.clean(name) }),
    tokens: [...WORDS, '_', '-', 'a_b'],
    most: 500_000,
  })
  testGrowth('tools', {
    read: (text) =>
      readServerTools(
        inChunks(text, 20).map((name, at) => ({ ...tool, name: `${name}${at % 700}` })),
        options,
      ),
    tokens: [...WORDS, '_'],
    most: 500_000,
  })
  testGrowth('the description of a tool', {
    read: (text) => readServerTools([{ ...tool, name: 'a', description: text, title: text }], options),
    tokens: WORDS,
    most: MOST_MESSAGE_BYTES / 4,
  })
  testGrowth('the schema of a tool', {
    read: (text) => {
      const parsed = parseJson(text)
      return parsed.ok && guardedSchema(parsed.value, SECRETS)
    },
    tokens: [
      '{"type":"string"},',
      '{"$ref":"#/allOf/0"},',
      '{"pattern":"a"},',
      '{"allOf":[{}]},',
      '{"enum":[1,2]},',
      '{"$ref":"#"},',
      '1,',
    ],
    most: 1_000_000,
    around: (body) => `{"type":"object","allOf":[${body}{}]}`,
  })
  testGrowth('references of the schema of a tool', {
    read: (text) => {
      const parts = inChunks(text, 10).map((_, at) => [`d${at}`, { properties: { a: { $ref: `#/$defs/d${at + 1}` } } }])
      return guardedSchema({ type: 'object', $ref: '#/$defs/d0', $defs: Object.fromEntries(parts) }, SECRETS)
    },
    tokens: ['a'],
    most: 260_000,
  })

  test('a schema of a tool with more than 1,500 keywords is left to the server, whatever their names (I10)', async () => {
    const limits = (count: number) => ({ allOf: Array.from({ length: count }, (_, at) => ({ maxLength: 9 + at })) })
    const schemaOf = (count: number) => {
      const properties = { enum: limits(count), default: { description: 'Words and sample values are free.' } }
      return guardedSchema(
        { type: 'object', properties, examples: Array.from({ length: 150 }, () => ({ a: 1 })) },
        SECRETS,
      )
    }
    const isLeft = async (count: number) => {
      const schema = schemaOf(count)
      return typeof schema === 'string' ? schema : (await schema.validate({ enum: 'x'.repeat(3_800_000) })).ok
    }

    expect(await isLeft(1_400)).toBe(false)
    expect(await isLeft(2_300)).toBe(true)
  })

  test('10,000 pages are not asked for, nor 50 pages of a million tools kept', async () => {
    let asked = 0
    const page = Array.from({ length: 100_000 }, (_, at) => ({ name: `a${at}` }))
    const endless = (tools: readonly unknown[]) => ({
      getServerCapabilities: () => ({ tools: {} }),
      request: async () => ({ tools, nextCursor: `c${asked++}` }),
    })

    expect((await listTools(endless([]) as never, 1)).tools).toHaveLength(0)
    expect(asked).toBe(50)
    expect((await listTools(endless(page) as never, 1)).tools).toHaveLength(501)
    expect(asked).toBe(51)
  })
})
