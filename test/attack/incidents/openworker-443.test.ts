import { appendFileSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { resultsIn } from '../../support/reading.ts'
import { stores } from '../../support/stores.ts'
import { tempFolder } from '../../support/temp-folder.ts'

/** Between the effect and its record the process died, and the effect came twice. */
describe.each(stores)('openworker 443, on %s', (_name, create) => {
  const world = useWorld(create)

  test('what a person allowed once is done once, whoever goes on, and is shown as uncertain', async () => {
    const folder = tempFolder()
    const paid = path.join(folder, 'paid')
    let began: () => void = () => undefined
    const isPaid = new Promise<void>((resolve) => {
      began = resolve
    })
    const define = () =>
      agent({
        name: 'payer',
        instructions: '',
        grant: { ask: ['tool:pay'] },
        tools: {
          pay: tool({
            description: 'Pays',
            input: { type: 'object' },
            execute: () => {
              appendFileSync(paid, 'x')
              began()
              return new Promise<never>(() => undefined)
            },
          }),
        },
        model: scriptedModel((request) => {
          const [result] = resultsIn(request)
          return result === undefined ? { calls: [{ name: 'pay', input: {} }] } : `told: ${result.content}`
        }),
      })
    const first = world.start()
    const run = first.runtime.run(define(), 'go')
    run.result.catch(() => undefined)
    let asked = await first.runtime.approvals()
    while (asked.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      asked = await first.runtime.approvals()
    }
    await first.runtime.answer(asked[0]?.nodeId ?? '', { allow: true })
    await isPaid
    await first.kill()

    for (const process of [world.start({ agents: [define()] }), world.start({ agents: [define()] })]) {
      await process.runtime.resume()
      const outcome = await (await process.runtime.attach(run.id)).result
      expect(outcome.text).toMatch(/^told: .*Check before/)
      expect(outcome.uncertain).toHaveLength(1)
    }
    expect(readFileSync(paid, 'utf8')).toBe('x')
  })
})
