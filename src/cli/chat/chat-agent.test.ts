import { expect, test } from 'vitest'
import type { HookContext } from '../../doors/hooks.ts'
import type { Message, ModelRequest, Part, ToolSchema } from '../../doors/models.ts'
import { mentionOf, mentions } from './chat-agent.ts'

const DELEGATE: ToolSchema = { name: 'delegate', description: '', inputSchema: { type: 'object' } }

interface Heard {
  readonly tools?: readonly ToolSchema[]
  readonly path?: readonly string[]
}

async function parts(
  messages: readonly Message[],
  { tools = [DELEGATE], path = ['chat'] }: Heard = {},
): Promise<Part[]> {
  const known = { names: async () => new Set(['poet']), parametersOf: async () => ['topic', 'style'] }
  const { hooks } = mentions(known)
  const request: ModelRequest = { messages, tools, settings: {}, outputSchema: null, path: [] }
  async function* next(): AsyncGenerator<Part> {
    yield { type: 'text-delta', text: 'mine' }
  }
  const heard: Part[] = []
  const said = await hooks?.wrapModel?.(request, next, { path } as unknown as HookContext)
  for await (const part of said as AsyncIterable<Part> | Iterable<Part>) heard.push(part)
  return heard
}

const said = (content: string): Message => ({ role: 'user', content })
const result: Message = { role: 'tool', callId: 'c', name: 'delegate', content: '@poet x', isError: false }

test.each<[string, readonly Message[]]>([
  ['as it is said', [said('@poet write\nabout roses')]],
  [
    'with what the runtime tells after it',
    [said('@poet write\nabout roses'), said('<system-info>2 tasks</system-info>')],
  ],
])('a message to @name becomes a delegation, and no model is asked: %s', async (_, messages) => {
  expect(await parts(messages)).toMatchObject([
    { type: 'tool-call', name: 'delegate', input: { source: 'poet', instructions: 'write\nabout roses' } },
    { type: 'finish', reason: 'tool-calls', usage: { inputTokens: 0 } },
  ])
})

test.each<[string, readonly Message[], Heard?]>([
  ['the name of nobody', [said('@painter paint')]],
  ['a name in the middle', [said('ask @poet to write')]],
  ['a name and nothing else', [said('@poet')]],
  ['a result that comes after it', [said('@poet write'), result]],
  ['a space before the name', [said(' @poet write')]],
  ['a subagent that is told so by its host', [said('@poet write')], { path: ['chat', 'poet'] }],
])('the model answers itself: %s', async (_, messages, heard) => {
  expect(await parts(messages, heard)).toEqual([{ type: 'text-delta', text: 'mine' }])
})

test('values at the beginning are given by their keys; other words stay as they are', async () => {
  const [call] = await parts([said('@poet topic=cats style="very short" write a=b')])
  const [other] = await parts([said('@poet mood=sad topic=cats')])

  expect(call).toMatchObject({
    input: { source: 'poet', parameters: { topic: 'cats', style: 'very short' }, instructions: 'write a=b' },
  })
  expect(other).toMatchObject({ input: { source: 'poet', instructions: 'mood=sad topic=cats' } })
})

test('where the agent may not delegate, nobody else answers', async () => {
  expect(await parts([said('@poet write')], { tools: [] })).toMatchObject([
    { type: 'text-delta', text: expect.stringContaining('poet was not asked: this agent has no right to delegate.') },
    { type: 'finish', usage: { inputTokens: 0 } },
  ])
})

test('a colon or comma after the name is no part of it; an address is not a name', () => {
  expect(mentionOf('@poet: write')).toEqual({ name: 'poet', rest: 'write' })
  expect(mentionOf('@my-agent.v2, go')).toEqual({ name: 'my-agent.v2', rest: 'go' })
  expect(mentionOf(' @poet write')).toBeUndefined()
  expect(mentionOf('me@poet write')).toBeUndefined()
})
