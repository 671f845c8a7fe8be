import { expect, test } from 'vitest'
import type { HookContext, Message, ModelRequest, Part, ToolSchema } from '../../index.ts'
import { mentionOf, mentions } from './mentions.ts'

function takes(...properties: readonly string[]): ToolSchema {
  const schema = { type: 'object', properties: Object.fromEntries(properties.map((key) => [key, { type: 'string' }])) }
  return { name: 'call_poet', description: '', inputSchema: schema as ToolSchema['inputSchema'] }
}

async function parts(messages: readonly Message[], tools: readonly ToolSchema[] = [takes('message')]): Promise<Part[]> {
  const { hooks } = mentions()
  const request: ModelRequest = { messages, tools, settings: {}, outputSchema: null, path: [] }
  async function* next(): AsyncGenerator<Part> {
    yield { type: 'text-delta', text: 'mine' }
  }
  const heard: Part[] = []
  const said = await hooks?.wrapModel?.(request, next, { path: ['host'] } as unknown as HookContext)
  for await (const part of said as AsyncIterable<Part> | Iterable<Part>) heard.push(part)
  return heard
}

const said = (content: string): Message => ({ role: 'user', content })
const MINE = [{ type: 'text-delta', text: 'mine' }]

test('a message to @name becomes a call of its tool, and no model is asked', async () => {
  expect(await parts([said('@poet write\nabout roses')])).toMatchObject([
    { type: 'tool-call', name: 'call_poet', input: { message: 'write\nabout roses' } },
    { type: 'finish', reason: 'tool-calls', usage: { inputTokens: 0 } },
  ])
})

test('whoever was spoken to before is spoken to in the same session', async () => {
  const before: Message = {
    role: 'tool',
    callId: 'c',
    name: 'call_poet',
    content: 'session_id: 01ab-cd\n\nRoses.',
    isError: false,
  }

  expect(await parts([said('@poet write'), before, said('@poet more')])).toMatchObject([
    { input: { message: 'more', session_id: '01ab-cd' } },
    { type: 'finish' },
  ])
})

test.each<[string, readonly Message[], (readonly ToolSchema[])?]>([
  ['the name of nobody', [said('@painter paint')]],
  ['a name in the middle', [said('ask @poet to write')]],
  ['a name and nothing else', [said('@poet')]],
  [
    'a result that comes after it',
    [said('@poet write'), { role: 'tool', callId: 'c', name: 'call_poet', content: '@poet x', isError: false }],
  ],
  ['a tool that is not offered', [said('@poet write')], []],
  ['one that takes more than a message', [said('@poet write')], [takes('topic')]],
])('the model answers itself: %s', async (_, messages, tools) => {
  expect(await parts(messages, tools)).toEqual(MINE)
})

test('a colon or comma after the name is no part of it; an address is no name', () => {
  expect(mentionOf('@poet: write')).toEqual({ name: 'poet', rest: 'write' })
  expect(mentionOf('  @my-agent.v2, go')).toEqual({ name: 'my-agent.v2', rest: 'go' })
  expect(mentionOf('me@poet write')).toBeUndefined()
})
