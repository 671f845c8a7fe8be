import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe } from 'vitest'
import { hostRequest } from '../../../src/core/grant/request.ts'
import { PartReader } from '../../../src/core/model/ai-sdk/part-reader.ts'
import { providerError } from '../../../src/core/model/ai-sdk/provider-error.ts'
import { streamFetch } from '../../../src/core/model/named/providers.ts'
import { httpTransport } from '../../../src/core/tools/mcp/http-transport.ts'
import { testGrowth } from '../../support/growth.ts'
import { inChunks } from './tokens.ts'

const WORDS: readonly string[] = ['a', ' ', '\n', 'é', '😀', '\ud800', '"', '{', 'data: ', ':', '\r\n', '\t']

describe('an answer of a provider', () => {
  const read = (kind: string, text: string) => {
    const reader = new PartReader({ provider: 'openai' } as never)
    const field = kind === 'tool-input' ? { toolName: 'a' } : {}
    reader.read({ type: `${kind}-start`, id: '1', ...field })
    for (const delta of inChunks(text, 4)) reader.read({ type: `${kind}-delta`, id: '1', delta })
    reader.read({ type: `${kind}-end`, id: '1', providerMetadata: { a: { text } } })
    reader.read({ type: 'tool-call', toolCallId: '1', toolName: 'a', input: text })
  }

  testGrowth('thoughts', { read: (text) => read('reasoning', text), tokens: WORDS, most: 1_000_000 })
  testGrowth('a text', { read: (text) => read('text', text), tokens: WORDS, most: 1_000_000 })
  testGrowth('arguments of a call', { read: (text) => read('tool-input', text), tokens: WORDS, most: 1_000_000 })
  testGrowth('a failure', {
    read: (text) => providerError({ id: 'a' } as never, new Error(text), ['abcdefgh']),
    tokens: [...WORDS, 'Type validation failed: Value: ', 'key: ', 'sk-'],
    most: 4_000_000,
  })
})

describe('what a server sends', () => {
  let body = ''
  let type = ''
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': type })
    for (const chunk of inChunks(body, 1_000)) response.write(chunk)
    response.end()
  })
  const address = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  testGrowth('the beginning of an answer', {
    read: async (text) => {
      body = text
      type = 'text/html'
      await (await streamFetch(address())).body?.cancel()
    },
    tokens: ['a', ' ', '\n', 'data:', ':', '<'],
    most: 4_000_000,
  })
  const ask = async (text: string, contentType: string) => {
    body = text
    type = contentType
    const transport = await httpTransport(hostRequest(address()), {}, () => undefined)
    await transport.start()
    const answered = new Promise((resolve) => {
      transport.onmessage = resolve
    })
    try {
      await transport.send({ jsonrpc: '2.0', id: 1, method: 'a' })
      await answered
    } finally {
      await transport.close()
    }
  }
  const answer = '{"jsonrpc":"2.0","id":1,"result":{}}'

  testGrowth('events of an MCP server', {
    read: (text) => ask(text, 'text/event-stream'),
    tokens: ['a', 'data: ', '\n', '\r', '\r\n', ':', ': a\n\n', 'event: a\n', 'id: 1\n', 'data: a\n', '{'],
    most: 4_000_000,
    around: (text) => `event: a\ndata: ${text}\n\n\n\ndata: ${answer}\n\n`,
  })
  testGrowth('an answer of an MCP server', {
    read: (text) => ask(text, 'application/json'),
    tokens: ['1,', '[],', '"a",', '{},', '\n', ' '],
    most: 4_000_000,
    around: (text) => answer.replace('{}', `{"a":[${text}1]}`),
  })
})
