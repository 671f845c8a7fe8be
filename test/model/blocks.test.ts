import { agent, type Block, createRuntime, InputError } from 'legate'
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
