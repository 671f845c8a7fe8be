import { agent } from 'legate'
import type { Model, Part } from 'legate/models'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'

const TASKS = 8
const ITEM_MS = 40
const CHILD_MS = 15
const USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** Says each piece after its time. */
function slow(pieces: readonly (readonly [ms: number, text: string])[]): Model {
  return {
    id: 'slow/model',
    async *stream(): AsyncGenerator<Part> {
      for (const [ms, text] of pieces) {
        await new Promise((resolve) => setTimeout(resolve, ms))
        yield { type: 'text-delta', text }
      }
      yield { type: 'finish', reason: 'stop', usage: USAGE }
    },
  }
}

// The figures, with longer times: node bench/eager.mjs.
test('of 8 tasks of a slow plan the last child ends before one that waits for the plan would have begun it', async () => {
  const Task = z.object({ title: z.string() })
  const worker = agent({ name: 'worker', instructions: '', input: Task, model: slow([[CHILD_MS, 'Done.']]) })
  const items = Array.from({ length: TASKS }, (_, at): readonly [number, string] => {
    return [ITEM_MS, `${at === 0 ? '{"tasks":[' : ','}${JSON.stringify({ title: `task ${at}` })}`]
  })
  const planner = {
    name: 'planner',
    instructions: '',
    output: z.object({ tasks: z.array(Task), summary: z.string() }),
    model: slow([...items, [5 * ITEM_MS, '],"summary":"That is all."}']]),
  }
  const runtime = openRuntime()
  // What is loaded once is loaded before.
  await runtime.run(worker, { title: 'first' }).result
  const eager = runtime.run(agent({ ...planner, eager: { 'tasks[*]': worker } }), 'go')
  const after = runtime.run(agent(planner), 'go')
  let ended = 0
  let lastEnd = 0
  for await (const { type } of eager) {
    if (type !== 'delegation-end') continue
    ended++
    lastEnd = performance.now()
  }
  const [{ status }] = await Promise.all([after.result])
  const planned = localStore(runtime).turn(after.id)
  const lastOf = localStore(runtime)
    .linksOf(eager.id)
    .map(({ id }) => localStore(runtime).turn(id)?.endedAt ?? Number.POSITIVE_INFINITY)

  expect([status, ended]).toEqual(['completed', TASKS])
  expect(lastEnd).toBeGreaterThan(0)
  // Nothing of the other way can begin before its plan has ended.
  expect(Math.max(...lastOf)).toBeLessThan(planned?.endedAt ?? 0)
})
