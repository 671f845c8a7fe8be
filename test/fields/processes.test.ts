import { agent, type Run } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { startProcess } from '../support/process.ts'
import { openRuntime } from '../support/reading.ts'
import { type Rows, stores } from '../support/stores.ts'
import { doneIn, heldModel, PLAN, Plan } from './support.ts'

describe.each(stores)('on %s rows', (_name, create) => {
  function rows(): Rows {
    const made = create()
    onTestFinished(() => made.drop())
    return made
  }

  test('another process reads fields while they come, with the schema where it has the code', async () => {
    const shared = rows()
    const held = heldModel()
    const planner = agent({ name: 'planner', instructions: '', output: Plan, model: held.model })
    const run = openRuntime({ store: shared.open() }).run(planner, 'go')
    held.say('{"thinking":"x","tasks":[{"title":"pack","hours":12}')
    await run.field('thinking')

    const knows = await openRuntime({ store: shared.open(), agents: [planner] }).attach(run.id)
    const blind = await openRuntime({ store: shared.open() }).attach(run.id)
    const [first, plain] = await Promise.all([firstOf(knows, 'tasks[*]'), firstOf(blind, 'tasks[*]')])
    expect(first).toMatchObject({ value: { title: 'pack', hours: 12 }, issues: [{ path: ['tasks', 0, 'hours'] }] })
    expect(plain).toMatchObject({ value: { title: 'pack', hours: 12 } })
    expect(plain?.issues).toBeUndefined()
    expect(await knows.field('thinking')).toBe('x')
    await run.cancel()
    await run.result
  })

  test('what was answered is read afterwards, by any process, as often as it is asked', async () => {
    const shared = rows()
    const bad = PLAN.replace('"hours":5', '"hours":50')
    const model = scriptedModel([{ chunks: [...bad] }, { chunks: [...PLAN] }])
    const first = openRuntime({ store: shared.open() })
    const run = first.run(agent({ name: 'planner', instructions: '', output: Plan, model }), 'go')
    const live = await doneIn(run as Run)
    await run.result
    await first.close()

    const other = await openRuntime({ store: shared.open() }).attach(run.id)

    expect(await doneIn(other)).toEqual(live)
    expect(await doneIn(other)).toEqual(live)
    await expect(other.field('nothing')).rejects.toMatchObject({ reason: 'absent' })
  })
})

describe.each(stores)('an eager plan on %s rows', (_name, create) => {
  const Tasks = z.object({ goal: z.string(), tasks: z.array(z.string()) })

  test('is gone on with by another process: an equal item has its child, others are superseded', async () => {
    const shared = create()
    onTestFinished(() => shared.drop())
    const calls: string[] = []
    const answers = scriptedModel(({ messages }) => {
      const title = String(messages.findLast(({ role }) => role === 'user')?.content)
      calls.push(title)
      return title === 'old' ? new Promise<never>(() => undefined) : `${title} is done.`
    })
    const worker = agent({ name: 'worker', instructions: '', model: answers })
    const lead = (model: ReturnType<typeof heldModel>['model']) =>
      agent({ name: 'lead', instructions: '', output: Tasks, eager: { 'tasks[*]': worker }, model })
    const held = heldModel()
    const first = startProcess(shared, { engine: { sweepMs: 20, graceMs: 50 } })
    const run = first.runtime.run(lead(held.model), 'go')
    held.say('{"goal":"x","tasks":["same","old"')
    await expect.poll(() => first.store.linksOf(run.id).length).toBe(2)
    await expect.poll(() => first.store.linksOf(run.id)[0]?.outcome?.status).toBe('completed')
    await first.kill()

    const again = lead(scriptedModel(['{"goal":"x","tasks":["new","same"]}']))
    const second = startProcess(shared, { agents: [again], engine: { sweepMs: 20, graceMs: 50 } })
    await second.runtime.resume()
    const outcome = await (await second.runtime.attach(run.id)).result

    expect(outcome.delegations.map(({ field, text }) => `${field} ${text}`)).toEqual([
      'tasks[0] new is done.',
      'tasks[1] same is done.',
    ])
    expect(calls.filter((title) => title === 'same').length).toBe(1)
    expect(outcome).toMatchObject({ status: 'completed', children: 3 })
    await second.runtime.close()
  })
})

async function firstOf(run: Run, path: string) {
  for await (const field of run.fields(path)) return field
  return undefined
}
