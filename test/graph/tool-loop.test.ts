import { createHash } from 'node:crypto'
import { agent, type Grant, type RunEvent, type Tools, tool } from 'legate'
import { type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, simpleTool, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { eventsOf, eventsOfType, tasksOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('the tool loop on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  describe('a message with two calls', () => {
    test('makes two tasks that run side by side, and the next message only after both, results in their order', async () => {
      const both = makeGate()
      let running = 0
      const slow = async (text: string) => {
        if (++running === 2) both.open()
        await both.opened
        return text
      }
      const model = scriptedModel(callsThenSays('a', 'b'))
      const tools = {
        a: simpleTool(async () => {
          const text = await slow('first')
          await new Promise((resolve) => setTimeout(resolve, 5))
          return text
        }),
        b: simpleTool(() => slow('second')),
      }
      const { runtime } = start()
      const run = runtime.run(agent({ name: 'planner', instructions: '', model, tools }), 'go')

      expect(await run.result).toMatchObject({ text: 'first\nsecond', toolCalls: 2, modelCalls: 2 })

      const [user, plan, a, b, join] = world.store.nodesOf(run.id)
      expect(world.store.edgesTo(join?.id ?? '').map(({ from, type }) => [from, type])).toEqual(
        expect.arrayContaining([
          [a?.id, 'sequence'],
          [b?.id, 'sequence'],
        ]),
      )
      expect(world.store.edgesFrom(plan?.id ?? '')).toHaveLength(2)
      expect(world.store.edgesFrom(user?.id ?? '')).toMatchObject([{ to: plan?.id, type: 'sequence' }])
      expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool'])
    })

    test('is absent from the transcript when it said nothing', async () => {
      const model = scriptedModel(callsThenSays('a'))
      const { runtime } = start()
      const run = runtime.run(
        agent({ name: 'planner', instructions: '', model, tools: { a: simpleTool(() => 'found') } }),
        'go',
      )
      await run.result

      const talk = await runtime.conversation(run.conversationId)

      expect((await talk.transcript()).map(({ role, text }) => [role, text])).toEqual([
        ['user', 'go'],
        ['agent', 'found'],
      ])
    })
  })

  describe('what becomes of a call', () => {
    const search = tool({
      description: 'Search.',
      input: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
      execute: ({ q }: { q: string }) => `found ${q}`,
    })

    test.each<[string, ScriptedAnswer, RegExp]>([
      [
        'arguments that are not JSON',
        { calls: [{ name: 'search', input: '{"q": ' }] },
        /arguments of search are not JSON/,
      ],
      ['a tool that is not there', { calls: [{ name: 'serach', input: {} }] }, /no tool "serach".*search/],
      ['a tool that is denied', { calls: [{ name: 'rm', input: {} }] }, /rm is not allowed here/],
      ['arguments that do not fit', { calls: [{ name: 'search', input: {} }] }, /arguments of search are wrong.*q/s],
    ])('%s: a finished task with an error, and the model goes on', async (_, call, text) => {
      const { outcome, task } = await oneCall(call, { search, rm: simpleTool(() => 'gone') }, { deny: ['tool:rm'] })

      expect(task).toMatchObject({ state: 'finished', output: { isError: true } })
      expect(outcome.status).toBe('completed')
      expect(outcome.text).toMatch(text)
    })

    test('an allowed one runs', async () => {
      const { outcome, task } = await oneCall({ calls: [{ name: 'search', input: { q: 'x' } }] }, { search })

      expect(task).toMatchObject({ state: 'finished', output: { content: 'found x' } })
      expect(outcome.text).toBe('found x')
    })

    test('a call that must be asked for awaits approval, holds no worker, and runs when it is allowed', async () => {
      let ran = 0
      const { runtime } = start({ engine: { workers: 1 } })
      const run = runtime.run(
        asking(() => ran++),
        'go',
      )
      const task = await until('the approval', () =>
        tasksOf(world.store, run.id).find(({ state }) => state === 'awaiting_approval'),
      )
      expect(task).toMatchObject({ engineId: null, blockers: 0 })
      expect(eventsOfType(world.store, run.conversationId, 'approval-request')).toMatchObject([
        { nodeId: task.id, call: { name: 'send' }, reason: expect.stringContaining('tool:send') },
      ])
      expect(ran).toBe(0)

      await runtime.answer(task.id, { allow: true, by: 'ann' })

      expect(await run.result).toMatchObject({ status: 'completed', text: '0' })
      expect(ran).toBe(1)
      expect(world.store.node(task.id)?.metadata).toMatchObject({ approvedBy: 'ann' })
      expect(eventsOfType(world.store, run.conversationId, 'approval-answer')).toMatchObject([
        { allowed: true, by: 'ann' },
      ])
    })

    test('a call that is denied never runs, and the model reads why', async () => {
      let ran = 0
      const { runtime } = start()
      const run = runtime.run(
        asking(() => ran++),
        'go',
      )
      const task = await until('the approval', () =>
        tasksOf(world.store, run.id).find(({ state }) => state === 'awaiting_approval'),
      )

      await runtime.answer(task.id, { allow: false, reason: 'Not on a Friday.' })

      expect(await run.result).toMatchObject({
        status: 'completed',
        text: expect.stringMatching(/denied.*Not on a Friday/),
      })
      expect(ran).toBe(0)
      expect(world.store.node(task.id)?.state).toBe('rejected')
      await expect(runtime.answer(task.id, { allow: true })).rejects.toThrow(
        /does not await approval: \w+ has denied it already: .*Not on a Friday/,
      )
    })

    test('an answer may come from another process, after the one that asked is gone', async () => {
      const first = start()
      const run = first.runtime.run(
        asking(() => 'never'),
        'go',
      )
      const task = await until('the approval', () =>
        tasksOf(world.store, run.id).find(({ state }) => state === 'awaiting_approval'),
      )
      await first.runtime.close()
      const clerk = start()
      await clerk.runtime.answer(task.id, { allow: true })

      const heir = start({ agents: [asking(() => 'sent by the heir')] })
      const [resumed] = await heir.runtime.resume()

      expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'sent by the heir' })
    })

    test('a tool that throws is a result, and the model goes on', async () => {
      const fails = simpleTool(() => {
        throw new Error('disk full')
      })
      const { outcome, task } = await oneCall({ calls: [{ name: 'fails', input: {} }] }, { fails })

      expect(outcome).toMatchObject({ status: 'completed', text: expect.stringContaining('disk full') })
      expect(task).toMatchObject({ state: 'finished', output: { isError: true } })
    })

    function asking(send: () => unknown) {
      return agent({
        name: 'asker',
        instructions: '',
        model: scriptedModel(callsThenSays('send')),
        tools: { send: simpleTool(send) },
        grant: { ask: ['tool:send'] },
      })
    }

    async function oneCall(call: ScriptedAnswer, tools: Tools, grant: Grant = {}) {
      const model = scriptedModel(({ messages }) => {
        const result = messages.find(({ role }) => role === 'tool')
        return result ? String(result.content) : call
      })
      const { runtime } = start()
      const run = runtime.run(agent({ name: 'caller', instructions: '', model, tools, grant }), 'go')
      const outcome = await run.result
      return { outcome, task: tasksOf(world.store, run.id)[0] }
    }
  })

  describe('limits of one run', () => {
    test('calls beyond the limit are dropped from the stored message too, and counted', async () => {
      const model = scriptedModel([{ calls: ['a', 'a', 'a'].map((name) => ({ name, input: {} })) }, 'two of three'])
      const { runtime } = start()
      const counter = agent({
        name: 'counter',
        instructions: '',
        model,
        tools: { a: simpleTool(() => 'one') },
        budget: { toolCalls: 2 },
      })
      const run = runtime.run(counter, 'go')

      expect(await run.result).toMatchObject({ status: 'over_budget', toolCalls: 2, text: 'two of three' })

      const plan = world.store.nodesOf(run.id)[1]
      expect(plan?.output.calls).toHaveLength(2)
      expect(plan?.output.droppedCalls).toBe(1)
      expect(tasksOf(world.store, run.id)).toHaveLength(2)
    })

    test('the turn limit gives one call to wrap up, without tools, and no further expansion', async () => {
      const model = scriptedModel([
        { calls: [{ name: 'a', input: {} }] },
        { calls: [{ name: 'a', input: {} }] },
        { text: 'wrapped up', calls: [{ name: 'a', input: {} }] },
      ])
      const { runtime } = start()
      const tools = { a: simpleTool(() => 'one') }
      const run = runtime.run(
        agent({ name: 'counter', instructions: '', model, tools, budget: { modelCalls: 2 } }),
        'go',
      )

      expect(await run.result).toMatchObject({ status: 'max_turns', modelCalls: 2, text: 'wrapped up' })

      expect(model.requests[2]?.tools).toEqual([])
      expect(tasksOf(world.store, run.id)).toHaveLength(2)
    })
  })

  describe('streaming', () => {
    const chunks = ['Grüße ', 'aus ', 'München 🥨', '!']
    const text = chunks.join('')

    test('what was streamed is seen while it runs, and the message is its exact concatenation', async () => {
      const gate = makeGate()
      const model = {
        id: 'slow/model',
        async *stream() {
          for (const chunk of chunks) yield { type: 'text-delta', text: chunk } as const
          await gate.opened
          yield { type: 'finish', reason: 'stop', usage: NO_USAGE } as const
        },
      }
      const { runtime } = start()
      const run = runtime.run(agent({ name: 'writer', instructions: '', model }), 'go')
      const seen: RunEvent[] = []
      const reading = (async () => {
        for await (const event of run) seen.push(event)
      })()
      // A reader that comes later than the first chunks gets them in one.
      const streamed = () => seen.map((event) => (event.type === 'text-delta' ? event.text : '')).join('')
      await until('the deltas', () => streamed() === text)
      expect(world.store.nodesOf(run.id)[1]?.state).toBe('running')

      gate.open()
      await reading

      const message = eventsOfType(world.store, run.conversationId, 'message').at(-1)
      expect(message).toMatchObject({
        content: text,
        streamed: {
          chunks: chunks.length,
          bytes: Buffer.byteLength(text),
          sha256: createHash('sha256').update(text).digest('hex'),
        },
      })
      expect(eventsOf(world.store, run.conversationId).every(({ seq }) => Number.isInteger(seq))).toBe(true)
      expect(world.store.blocks(run.conversationId, 0)).toEqual([])
      expect(await run.result).toMatchObject({ text })
    })

    test('is seen by a reader in another process', async () => {
      const gate = makeGate()
      const model = {
        id: 'slow/model',
        async *stream() {
          for (const chunk of chunks) yield { type: 'text-delta', text: chunk } as const
          await gate.opened
          yield { type: 'finish', reason: 'stop', usage: NO_USAGE } as const
        },
      }
      const writer = start()
      const run = writer.runtime.run(agent({ name: 'writer', instructions: '', model }), 'go')
      await until('the run', () => world.store.turn(run.id))
      const reader = start()
      let streamed = ''
      for await (const event of await reader.runtime.attach(run.id)) {
        if (event.type === 'text-delta') streamed += event.text
        if (streamed === text) gate.open()
      }

      expect(streamed).toBe(text)
    })
  })
})

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
