import { agent, type RunOutcome, type Runtime } from 'legate'
import { fakeClock, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { heldModel } from '../../fields/support.ts'
import { useWorld } from '../../support/agents.ts'
import { eventsOf, only, openRuntime, tasksOf } from '../../support/reading.ts'
import { localStore } from '../../support/rows.ts'
import { stores } from '../../support/stores.ts'

const Task = z.object({ title: z.string() })
const Plan = z.object({ tasks: z.array(Task), note: z.string() })

function lead(calls: string[], extra: object = {}) {
  const worker = agent({
    name: 'worker',
    instructions: '',
    input: Task,
    model: scriptedModel(({ messages }) => {
      const { title } = JSON.parse(String(messages.findLast(({ role }) => role === 'user')?.content)) as {
        title: string
      }
      calls.push(title)
      return `${title} is done.`
    }),
  })
  return agent({
    name: 'lead',
    instructions: '',
    output: Plan,
    eager: { 'tasks[*]': worker },
    grant: { ask: ['agent:worker'] },
    model: scriptedModel(['{"tasks":[{"title":"a"},{"title":"b"}],"note":"n"}']),
    ...extra,
  })
}

const told = ({ delegations }: RunOutcome) =>
  delegations.map(({ field, status, text, error }) => `${field} ${status} ${error?.message ?? text}`)

async function asked(runtime: Runtime, count: number) {
  for (;;) {
    const found = await runtime.approvals()
    if (found.length === count)
      return found.toSorted((a, b) => JSON.stringify(a.input).localeCompare(JSON.stringify(b.input)))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

describe('an item whose child a person must allow', () => {
  test('waits as a row while the plan goes on; the child starts when it is allowed', async () => {
    const calls: string[] = []
    const held = heldModel()
    const runtime = openRuntime()
    const run = runtime.run(lead(calls, { model: held.model }), 'go')
    held.say('{"tasks":[{"title":"a"}')
    const [first] = await asked(runtime, 1)
    expect(first).toMatchObject({ request: 'agent:worker', path: ['lead'], input: { title: 'a' } })
    held.say(',{"title":"b"}],"note":"n"}')
    held.end()
    const [, second] = await asked(runtime, 2)
    expect(tasksOf(runtime, run).map(({ state }) => state)).toEqual(['awaiting_approval', 'awaiting_approval'])
    expect([calls, localStore(runtime).turn(run.id)?.state]).toEqual([[], 'running'])

    await runtime.answer(first?.nodeId ?? '', { allow: true })
    await runtime.answer(second?.nodeId ?? '', { allow: false, reason: 'not that one' })
    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', children: 1, output: { note: 'n' } })
    expect(told(outcome)).toEqual(['tasks[0] completed a is done.', 'tasks[1] denied not that one'])
    expect(calls).toEqual(['a'])
  })

  test('is asked for once where it is allowed for the rest of the conversation, and may be edited', async () => {
    const calls: string[] = []
    const runtime = openRuntime()
    const host = lead(calls, { model: scriptedModel(() => '{"tasks":[{"title":"a"},{"title":"b"}],"note":"n"}') })
    const run = runtime.run(host, 'go')
    const [first, second] = await asked(runtime, 2)
    await runtime.answer(first?.nodeId ?? '', { allow: true, edit: { title: 'edited' } })
    await runtime.answer(second?.nodeId ?? '', { allow: true, always: true })
    expect(told(await run.result)).toEqual(['tasks[0] completed edited is done.', 'tasks[1] completed b is done.'])

    const again = await runtime.run(host, 'again', { conversationId: run.conversationId }).result

    expect(again).toMatchObject({ status: 'completed', children: 2 })
  })

  test('an item that the plan does not have in the end is not asked for any more', async () => {
    const calls: string[] = []
    const runtime = openRuntime()
    const turns = ['{"tasks":[{"title":"old"}],"note":7}', '{"tasks":[],"note":"n"}']
    const outcome = await runtime.run(lead(calls, { model: scriptedModel(turns) }), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', delegations: [], children: 0 })
    expect(await runtime.approvals()).toEqual([])
  })

  test('is over with its run when that is cancelled, and denied when nobody answers', async () => {
    const clock = fakeClock()
    const runtime = openRuntime({ clock, engine: { sweepMs: 600_000, leaseMs: 10_800_000 } })
    const cancelled = runtime.run(lead([]), 'go')
    await asked(runtime, 2)
    await cancelled.cancel('enough')
    expect((await cancelled.result).status).toBe('cancelled')

    const run = runtime.run(lead([]), 'go')
    await asked(runtime, 2)
    await clock.advance(25 * 3_600_000)
    const outcome = await run.result
    expect(outcome.delegations.map(({ status }) => status)).toEqual(['denied', 'denied'])
    expect(only(await eventsOf(run.events()), 'approval-answer')).toHaveLength(2)
  })
})

describe.each(stores)('%s: the word comes to another process', (_name, create) => {
  const world = useWorld(create)

  test('and the child runs there', async () => {
    const calls: string[] = []
    const first = world.start({ agents: [lead(calls)] })
    const run = first.runtime.run(lead(calls), 'go')
    await asked(first.runtime, 2)
    await first.kill()

    const { runtime } = world.start({ agents: [lead(calls)] })
    await runtime.resume()
    for (const { nodeId } of await asked(runtime, 2)) await runtime.answer(nodeId, { allow: true })
    const outcome = await (await runtime.attach(run.id)).result

    expect(told(outcome)).toEqual(['tasks[0] completed a is done.', 'tasks[1] completed b is done.'])
    expect(calls.toSorted()).toEqual(['a', 'b'])
  })
})
