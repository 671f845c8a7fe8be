import {
  createUIMessageStreamResponse,
  parseJsonEventStream,
  readUIMessageStream,
  type UIMessage,
  uiMessageChunkSchema,
} from 'ai'
import { agent, createRuntime, type Run, tool } from 'legate'
import { toUIMessageStream } from 'legate/ai-sdk'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

const search = tool({
  description: 'Searches.',
  input: z.object({ q: z.string() }),
  effect: 'pure',
  execute: ({ q }) => `found ${q}`,
})

/** The way a page reads it: over HTTP as events, checked chunk by chunk, made a message. */
async function pageOf(run: Run): Promise<{ message: UIMessage; chunks: { type: string }[]; errors: unknown[] }> {
  const response = createUIMessageStreamResponse({ stream: toUIMessageStream(run) })
  if (response.body === null) throw new Error('no body')
  const chunks: { type: string }[] = []
  const parsed = parseJsonEventStream({ stream: response.body, schema: uiMessageChunkSchema }).pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        if (!chunk.success) throw chunk.error
        chunks.push(chunk.value)
        controller.enqueue(chunk.value)
      },
    }),
  )
  const errors: unknown[] = []
  let message: UIMessage | undefined
  for await (const state of readUIMessageStream({ stream: parsed, onError: (error) => errors.push(error) }))
    message = state
  if (message === undefined) throw new Error('no message')
  return { message, chunks, errors }
}

/** The parts of a message that its resets name. */
function takenBack({ parts }: UIMessage): number[] {
  return parts.flatMap((part, at) =>
    part.type === 'data-reset' ? (part.data as { back: number[] }).back.map((back) => at - back) : [],
  )
}

async function page(model: ReturnType<typeof scriptedModel>, more = {}) {
  const runtime = createRuntime()
  const run = runtime.run(agent({ name: 'host', instructions: 'x', model, ...more }), 'go')
  const shown = await pageOf(run)
  return { ...shown, run, runtime }
}

describe('useChat reads a run', () => {
  test('with text, reasoning and tools as parts of one message', async () => {
    const model = scriptedModel([
      { reasoning: 'Let me see.', chunks: ['One ', 'moment.'], calls: [{ name: 'search', input: { q: 'x' } }] },
      { chunks: ['It is ', 'there.'], usage: { inputTokens: 3, outputTokens: 2 } },
    ])

    const { message, run } = await page(model, { tools: { search } })

    expect(message).toMatchObject({ role: 'assistant', id: run.id })
    expect(message.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'reasoning', text: 'Let me see.', state: 'done' },
      { type: 'text', text: 'One moment.', state: 'done' },
      { type: 'tool-search', state: 'output-available', input: { q: 'x' }, output: 'found x' },
      { type: 'step-start' },
      { type: 'text', text: 'It is there.', state: 'done' },
    ])
    expect(message.metadata).toMatchObject({ runId: run.id, status: 'completed', inputTokens: 3 })
  })

  test('with arguments as they come, and calls of one id apart', async () => {
    const model = {
      ...scriptedModel([]),
      async *stream({ messages }: { messages: readonly { role: string }[] }) {
        const asked = messages.filter(({ role }) => role === 'assistant').length
        if (asked < 2) {
          yield { type: 'tool-input-delta', id: 'same', name: 'search', text: '{"q":' } as const
          yield { type: 'tool-input-delta', id: 'same', name: 'search', text: `"${asked}"}` } as const
          yield { type: 'tool-call', id: 'same', name: 'search', input: `{"q":"${asked}"}` } as const
        } else yield { type: 'text-delta', text: 'done' } as const
        const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
        yield { type: 'finish', reason: 'stop', usage } as const
      },
    }

    const { message, chunks } = await page(model as never, { tools: { search } })

    expect(message.parts.filter(({ type }) => type === 'tool-search')).toMatchObject([
      { toolCallId: 'same', output: 'found 0' },
      { toolCallId: 'same_2', output: 'found 1' },
    ])
    expect(chunks.filter(({ type }) => type === 'tool-input-delta')).toHaveLength(4)
  })

  test('with what a subagent does beside its host’s words, and none of its words among them', async () => {
    const child = agent({
      name: 'child',
      instructions: 'x',
      tools: { search },
      model: scriptedModel([
        { chunks: ['child ', 'speaks'], calls: [{ name: 'search', input: { q: 'y' } }] },
        { chunks: ['child ', 'ends'] },
      ]),
    })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x' } }] }, { chunks: ['Host ', 'ends.'] }])

    const { message, chunks } = await page(model, { subagents: { ask: child } })

    const texts = message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    expect(texts).toEqual(['Host ends.'])
    expect(message.parts.filter(({ type }) => type === 'data-subagent')).toMatchObject([
      { data: { agent: 'child', path: ['host', 'child'], status: 'completed', tool: null } },
    ])
    expect(chunks.some((chunk) => JSON.stringify(chunk).includes('"tool":"search"'))).toBe(true)
    expect(JSON.stringify(chunks.filter(({ type }) => type === 'text-delta'))).not.toContain('child')
  })

  test('with a tool that failed, and files', async () => {
    const broken = tool({
      description: 'x',
      input: { type: 'object' },
      execute: () => {
        throw new Error('it broke')
      },
    })
    const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const
    const model = scriptedModel([{ calls: [{ name: 'broken', input: {} }] }, { text: 'Look.', blocks: [image] }])

    const { message } = await page(model, { tools: { broken } })

    expect(message.parts).toMatchObject([
      {},
      { type: 'tool-broken', state: 'output-error', errorText: expect.stringContaining('it broke') },
      {},
      { type: 'text', text: 'Look.' },
      { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' },
    ])
  })

  test('a run that fails as an error', async () => {
    const { errors, chunks } = await page(scriptedModel([{ error: new Error('it burns') }]))

    expect(chunks.at(-1)).toEqual({ type: 'error', errorText: 'it burns' })
    expect(String(errors[0])).toContain('it burns')
  })

  test('a run that is cancelled as an abort', async () => {
    const runtime = createRuntime()
    const model = scriptedModel([{ text: 'never', delayMs: 10_000 }])
    const run = runtime.run(agent({ name: 'host', instructions: 'x', model }), 'go')
    const chunks: { type: string }[] = []
    await run.cancel('enough')

    for await (const chunk of toUIMessageStream(run)) chunks.push(chunk)

    expect(chunks.at(-1)).toMatchObject({ type: 'abort' })
    await runtime.close()
  })

  test('a run that asks first, and what was denied', async () => {
    const runtime = createRuntime()
    const model = scriptedModel([{ calls: [{ name: 'search', input: { q: 'x' } }] }, 'Then not.'])
    const host = agent({ name: 'host', instructions: 'x', model, tools: { search }, grant: { ask: ['tool:search'] } })
    const run = runtime.run(host, 'go')
    const shown = pageOf(run)
    for await (const event of run) {
      if (event.type === 'approval-request' && event.nodeId !== null)
        await runtime.answer(event.nodeId, { allow: false })
    }

    const { message, chunks } = await shown

    expect(chunks.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['tool-approval-request', 'tool-output-denied']),
    )
    expect(message.parts.find(({ type }) => type === 'tool-search')).toMatchObject({ state: 'output-denied' })
    await runtime.close()
  })

  test('whose call was made again: what was taken back is named', async () => {
    const failure = Object.assign(new Error('cut'), { statusCode: 503, retryAfterMs: 1 })
    const { message, chunks } = await page(
      scriptedModel([{ chunks: ['Half ', 'an'], error: failure }, { text: 'Whole.' }]),
    )

    const taken = takenBack(message)
    expect(taken.map((at) => message.parts[at])).toMatchObject([{ type: 'text', text: 'Half an' }])
    expect(chunks.filter(({ type }) => type === 'data-reset')).toHaveLength(1)
    expect(message.parts.at(-1)).toMatchObject({ type: 'text', text: 'Whole.' })
  })

  test('whose calls were made again after steps, tools and subagents: what is left is what was said', async () => {
    const kid = agent({ name: 'kid', instructions: '', model: scriptedModel(() => 'found') })
    const { message } = await page(
      scriptedModel([
        {
          reasoning: 'Hm.',
          text: 'First.',
          calls: [
            { name: 'search', input: { q: 'a' } },
            { name: 'ask', input: { message: 'b' } },
          ],
        },
        { reasoning: 'So', text: 'half', cut: true },
        { text: 'hal', cut: true },
        { text: 'Whole.' },
      ]),
      { tools: { search }, subagents: { ask: kid } },
    )

    const taken = takenBack(message)
    expect(taken.map((at) => message.parts[at])).toMatchObject([{ text: 'So' }, { text: 'half' }, { text: 'hal' }])
    const left = message.parts.filter((part, at) => part.type === 'text' && !taken.includes(at))
    expect(left).toMatchObject([{ text: 'First.' }, { text: 'Whole.' }])
  })

  test('a run that is over already, with all its words', async () => {
    const runtime = createRuntime()
    const model = scriptedModel([{ chunks: ['All ', 'of it.'] }])
    const run = runtime.run(agent({ name: 'host', instructions: 'x', model }), 'go')
    await run.result

    const { message } = await pageOf(await runtime.attach(run.id))

    expect(message.parts).toMatchObject([{ type: 'step-start' }, { type: 'text', text: 'All of it.' }])
    await runtime.close()
  })
})

test('a reader that leaves does not stop the run', async () => {
  const runtime = createRuntime()
  const run = runtime.run(agent({ name: 'host', instructions: 'x', model: scriptedModel(['done']) }), 'go')
  const reader = toUIMessageStream(run).getReader()

  await reader.read()
  await reader.cancel()

  expect(await run.result).toMatchObject({ status: 'completed', text: 'done' })
  await runtime.close()
})
