import { agent, tool } from 'legate'
import type { Model } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { watchWork } from '../support/pace.ts'
import { eventsOf, only, openRuntime } from '../support/reading.ts'

const DELTAS = ['text-delta', 'reasoning-delta', 'tool-input-delta']
/** A flood ends at a million parts, which takes its time: all kinds in one, or each on its own. */
const FLOODS = process.env['LEGATE_FULL'] === '1' ? DELTAS.map((type) => ({ types: [type] })) : [{ types: DELTAS }]

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

  test.each(FLOODS)(
    'parts of a model that say nothing: $types',
    async ({ types }) => {
      let at = 0
      const model: Model = {
        id: 'endless/model',
        async *stream() {
          for (;;) yield { type: types[at++ % types.length], text: '', id: 'x', name: 'x' } as never
        },
      }
      const workMs = watchWork()
      const run = openRuntime().run(agent({ name: 'a', instructions: '', model }), 'go')
      const events = await eventsOf(run)

      expect((await run.result).error?.message).toMatch(/endless\/model has more than 1000000 parts/)
      expect(events.filter(({ type }) => types.includes(type))).toEqual([])
      expect(workMs()).toBeLessThan(20_000)
    },
    60_000,
  )
})
