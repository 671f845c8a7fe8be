import { agent } from 'legate'
import type { Model } from 'legate/models'
import type { Block } from 'legate/rows'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { eventsOf, openRuntime, resultsIn, taskOf } from '../support/reading.ts'

const image: Block = { type: 'image', mediaType: 'image/png', data: 'aW1hZ2U=' }
const audio: Block = { type: 'audio', mediaType: 'audio/wav', data: 'c291bmQ=' }
const video: Block = { type: 'video', mediaType: 'video/mp4', data: 'ZmlsbQ==' }
const file: Block = { type: 'file', mediaType: 'application/pdf', data: 'cGRm' }
const value: Block = { type: 'json', value: { rows: [1, 2] } }
const reasoning: Block = { type: 'reasoning', text: 'My secret thought.' }

/** What a host is shown of a child that answers with `text` and `blocks`. */
async function folded(answer: { text?: string; reasoning?: string; blocks?: readonly Block[] }, isTyped: boolean) {
  const child = agent({
    name: 'painter',
    instructions: '',
    model: scriptedModel([answer]),
    ...(isTyped ? { input: z.object({ q: z.string() }) } : {}),
  })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: isTyped ? { q: 'x' } : { message: 'x' } }] }, 'done'])
  const runtime = openRuntime()
  const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: child } }), 'go')
  expect((await run.result).status).toBe('completed')
  const session = taskOf(runtime, run).output.subagent?.child_conversation_id
  return { content: resultsIn(model.requests[1])[0]?.content, model, run, session }
}

describe('what a child answers with survives folding', () => {
  test('text alone is text', async () => {
    expect((await folded({ text: 'A cat.' }, true)).content).toBe('A cat.')
  })

  test('text and images, audio, video, files and values are kept in order by the typed contract', async () => {
    const blocks = [image, audio, video, file, value]

    const { content } = await folded({ text: 'A cat.', blocks }, true)

    expect(content).toEqual([{ type: 'text', text: 'A cat.' }, ...blocks])
  })

  test('and by the message contract, after the line that names the session', async () => {
    const { content, session } = await folded({ text: 'A cat.', blocks: [image, value, file] }, false)

    expect(content).toEqual([{ type: 'text', text: `session_id: ${session}\n\nA cat.\n{"rows":[1,2]}` }, image, file])
  })

  test('an image without a word is an answer by both', async () => {
    expect((await folded({ blocks: [image] }, true)).content).toEqual([image])
    const { content, session } = await folded({ blocks: [image] }, false)
    expect(content).toEqual([{ type: 'text', text: `session_id: ${session}\n\n` }, image])
  })
})

describe('a child’s reasoning does not leave it', () => {
  test.each([true, false])('as a stream or as a block, by the typed contract: %s', async (isTyped) => {
    const answer = { reasoning: 'My secret thought.', text: 'A cat.', blocks: [reasoning] }

    const { content, model } = await folded(answer, isTyped)

    expect(String(content)).toMatch(/A cat\.$/)
    expect(JSON.stringify(model.requests)).not.toContain('secret')
  })

  test('not even when the child fails after it', async () => {
    const child = agent({
      name: 'thinker',
      instructions: '',
      model: scriptedModel([{ reasoning: 'My secret thought.', text: 'I began', error: new Error('cut') }]),
      input: z.object({}),
    })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: {} }] }, 'done'])
    const run = openRuntime().run(agent({ name: 'host', instructions: '', model, subagents: { ask: child } }), 'go')

    const events = await eventsOf(run)

    expect(resultsIn(model.requests[1])[0]?.content).toBe('Subagent execution unavailable. cut\n\nI began')
    expect(
      events
        .filter((event) => Number.isInteger(event.seq))
        .map((event) => JSON.stringify(event))
        .join(),
    ).not.toContain('secret')
  })
})

test('a long answer in blocks is cut like a text: what it says is read on, pictures stay', async () => {
  const words = 'word '.repeat(40_000)
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }
  const picture = { type: 'image', mediaType: 'image/png', data: 'aGk=' } as const
  const child = agent({
    name: 'child',
    instructions: '',
    model: {
      id: 'own/blocks',
      async *stream() {
        yield { type: 'text-delta', text: words }
        yield { type: 'block', block: picture }
        yield { type: 'finish', reason: 'stop', usage }
      },
    } satisfies Model,
  })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'go' } }] }, 'done'])
  const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child } })

  await openRuntime().run(host, 'go').result

  const [shown] = resultsIn(model.requests[1])
  expect(shown?.content).toEqual([{ type: 'text', text: expect.stringContaining('read_result') }, picture])
  expect(JSON.stringify(shown).length).toBeLessThan(70_000)
})
