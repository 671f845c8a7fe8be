import { agent, createRuntime, InputError, tool } from 'legate'
import type { Block } from 'legate/rows'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

const image: Block = { type: 'image', mediaType: 'image/png', data: 'AAAA' }
const question: Block = { type: 'text', text: 'What is this?' }

describe('an agent without an input schema', () => {
  test('is given blocks, and its model sees them as they are', async () => {
    const model = scriptedModel(['A pixel.'])

    const { text } = await agent({ name: 'seer', instructions: 'Look.', model }).generate([question, image])

    expect(text).toBe('A pixel.')
    expect(model.requests[0]?.messages.at(-1)).toEqual({ role: 'user', content: [question, image] })
  })

  test.each<[string, unknown]>([
    ['an empty list', []],
    ['an empty text', [{ type: 'text', text: ' ' }]],
    ['an image without data', [question, { type: 'image', mediaType: 'image/png' }]],
    ['an unknown kind', [{ type: 'hologram', data: 'x', mediaType: 'y' }]],
    ['reasoning, which is a model’s', [{ type: 'reasoning', text: 'I think' }]],
    ['a list of texts', ['a', 'b']],
    ['what is not JSON', [{ type: 'json', value: () => 1 }]],
  ])('refuses %s', async (_name, input) => {
    const model = scriptedModel([])
    const runtime = createRuntime()

    const run = runtime.run(agent({ name: 'seer', instructions: '', model }), input as never)

    await expect(run.result).rejects.toThrow(InputError)
    expect(model.requests).toEqual([])
    await runtime.close()
  })
})

test('an agent with one reads a list as its schema does', async () => {
  const model = scriptedModel(['ok'])
  const lister = agent({ name: 'lister', instructions: '', model, input: z.array(z.object({ type: z.string() })) })

  await lister.generate([{ type: 'text' }])

  expect(model.requests[0]?.messages.at(-1)?.content).toBe('[{"type":"text"}]')
})

describe('a tool’s result', () => {
  const resultOf = async (value: unknown) => {
    const model = scriptedModel([{ calls: [{ name: 'draw', input: {} }] }, 'Nice.'])
    const draw = tool({ description: 'Draws.', input: { type: 'object' }, effect: 'pure', execute: () => value })
    await agent({ name: 'a', instructions: '', model, tools: { draw } }).generate('go')
    return model.requests[1]?.messages.at(-1)?.content
  }

  test('with an image is shown to the model', async () => {
    expect(await resultOf([{ type: 'text', text: 'Here.' }, image])).toEqual([{ type: 'text', text: 'Here.' }, image])
  })

  test('text that only looks like one is data', async () => {
    expect(await resultOf([question])).toBe(JSON.stringify([question]))
    expect(await resultOf([image, 5])).toBe(JSON.stringify([image, 5]))
  })
})
