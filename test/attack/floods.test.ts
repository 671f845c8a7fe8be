import { agent, tool } from 'legate'
import type { Model } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { watchWork } from '../support/pace.ts'
import { eventsOf, only, openRuntime } from '../support/reading.ts'

describe('I10: a flood is bounded for each call', () => {
  test.each<[string, string, unknown]>([
    ['short', 'one', null],
    ['long', 'm'.repeat(10_000), null],
    ['with much data', 'one', { text: 'd'.repeat(10_000) }],
  ])('progress of a tool: %s', async (_, message, data) => {
    const shown: boolean[] = []
    const chatty = tool({
      description: 'Tells a lot',
      input: { type: 'object' },
      execute: (_input, context) => {
        for (let n = 0; n < 20_000; n++) shown.push(context.progress(message, data as never))
        return 'done'
      },
    })
    const model = scriptedModel([{ calls: [{ name: 'chatty', input: {} }] }, 'Done.'])
    const run = openRuntime().run(agent({ name: 'a', instructions: '', model, tools: { chatty } }), 'go')
    const events = await eventsOf(run)
    const count = only(events, 'progress').length

    expect((await run.result).status).toBe('completed')
    expect(count).toBe(shown.filter(Boolean).length)
    expect(count).toBeGreaterThan(50)
    expect(count).toBeLessThan(message.length + JSON.stringify(data).length > 1_000 ? 200 : 2_000)
  })

  test.each(['text-delta', 'reasoning-delta', 'tool-input-delta'] as const)(
    'parts of a model that say nothing: %s',
    async (type) => {
      const model: Model = {
        id: 'endless/model',
        async *stream() {
          for (;;) yield { type, text: '', id: 'x', name: 'x' } as never
        },
      }
      const workMs = watchWork()
      const run = openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go')
      const events = await eventsOf(run)

      expect((await run.result).error?.message).toMatch(/endless\/model has more than 1000000 parts/)
      expect(only(events, type)).toEqual([])
      expect(workMs()).toBeLessThan(20_000)
    },
    60_000,
  )
})
