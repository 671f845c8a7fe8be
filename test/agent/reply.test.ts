import { agent, createRuntime, type Effect, type Runtime } from 'legate'
import { registerTool } from 'legate/compat'
import { scriptedModel } from 'legate/testing'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { simpleTool, speaker, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { eventsOfType, tasksOf } from '../support/rows.ts'
import { lasting, stores } from '../support/stores.ts'

describe.each(lasting)('an agent that is code, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  describe('as an agent like any other', () => {
    test('an agent of code is run with a typed input and answers with a typed output, without a model', async () => {
      const adder = agent({
        name: 'adder',
        input: z.object({ a: z.number(), b: z.number().default(2) }),
        output: z.object({ sum: z.number() }),
        reply: async ({ a, b }, { path, owner, attributes }) => {
          expect([path, owner, attributes]).toEqual([['adder'], 'ann', { tenant: 'acme' }])
          return { sum: a + b }
        },
      })
      const { runtime, store } = start()
      const run = runtime.run(adder, { a: 1 }, { owner: 'ann', attributes: { tenant: 'acme' } })
      const outcome = await run.result
      expect(outcome).toMatchObject({ status: 'completed', output: { sum: 3 }, text: '{"sum":3}', modelCalls: 0 })
      expectTypeOf(outcome.output).toEqualTypeOf<{ sum: number } | null>()
      expect(store.nodesOf(run.id).at(-1)).toMatchObject({ state: 'finished', effect: 'effectful' })
    })

    test('what a generator says is streamed, and is its answer where it returns none', async () => {
      const teller = agent({
        name: 'teller',
        reply: async function* (message) {
          yield 'You said: '
          yield String(message)
        },
      })
      const { runtime, store } = start()
      const run = runtime.run(teller, 'hi')
      const deltas: string[] = []
      for await (const event of run) if (event.type === 'text-delta') deltas.push(event.text)
      expect(deltas.join('')).toBe('You said: hi')
      expect(await run.result).toMatchObject({ status: 'completed', text: 'You said: hi', output: null })
      const [, said] = eventsOfType(store, run.conversationId, 'message')
      expect(said).toMatchObject({ content: 'You said: hi', streamed: { chunks: 2, bytes: 12 } })
    })

    test('what a generator returns is the answer, checked, beside what it said', async () => {
      const both = agent({
        name: 'both',
        output: z.object({ n: z.number() }),
        reply: async function* () {
          yield 'Counting ...'
          return { n: 7 }
        },
      })
      const { runtime } = start()
      expect(await runtime.run(both, 'go').result).toMatchObject({ output: { n: 7 }, text: 'Counting ...' })
    })

    test('a text or blocks that are returned are the answer', async () => {
      const { runtime } = start()
      const text = agent({ name: 'text', reply: async () => 'Said.' })
      const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const
      const words = { type: 'text', text: 'See:' } as const
      const blocks = agent({ name: 'blocks', reply: async () => [words, image] })

      expect(await runtime.run(text, 'x').result).toMatchObject({ status: 'completed', text: 'Said.' })
      expect(await runtime.run(blocks, 'x').result).toMatchObject({
        status: 'completed',
        content: [words, image],
      })
    })

    test('an answer that does not fit, is empty or is data without a schema is a failure with a name', async () => {
      const { runtime } = start()
      const wrong = agent({
        name: 'wrong',
        output: z.object({ n: z.number() }),
        reply: async () => ({ n: 'x' }) as never,
      })
      const empty = agent({ name: 'empty', reply: async () => ' ' })
      const data = agent({ name: 'data', reply: (async () => ({ n: 1 })) as never })
      const thrower = agent({
        name: 'thrower',
        reply: async function* () {
          yield 'Half'
          throw new Error('no more')
        },
      })
      expect(await runtime.run(wrong, 'x').result).toMatchObject({
        status: 'invalid_output',
        error: { message: /n: / },
      })
      expect(await runtime.run(empty, 'x').result).toMatchObject({ status: 'failed', error: { code: 'empty_answer' } })
      expect(await runtime.run(data, 'x').result).toMatchObject({
        status: 'invalid_output',
        error: { message: expect.stringMatching(/define its output/) },
      })
      expect(await runtime.run(thrower, 'x').result).toMatchObject({
        status: 'failed',
        text: 'Half',
        error: { code: 'reply', message: 'no more' },
      })
    })

    test('an agent of code is a subagent by its schema, or by messages that go on in a session', async () => {
      const typed = agent({
        name: 'typed',
        input: z.object({ n: z.number() }),
        reply: async ({ n }) => `twice ${n * 2}`,
      })
      const echo = agent({ name: 'echo', reply: async (message) => `heard ${message}` })
      const host = agent({
        name: 'host',
        instructions: '',
        subagents: { typed, echo },
        model: scriptedModel([
          { calls: [{ name: 'typed', input: { n: 'x' } }] },
          {
            calls: [
              { name: 'typed', input: { n: 4 } },
              { name: 'echo', input: { message: 'you' } },
            ],
          },
          'Done.',
        ]),
      })
      const { runtime, store } = start()
      const run = runtime.run(host, 'go')
      expect(await run.result).toMatchObject({ status: 'completed', children: 2, modelCalls: 3 })
      const results = tasksOf(store, run.id).map(({ output }) => String(output.content))
      expect(results[0]).toMatch(/validation failed/)
      expect(results[1]).toBe('twice 8')
      expect(results[2]).toMatch(/^session_id: .*\n\nheard you$/s)
    })

    test('a text instead of its typed input is refused: code has nobody who could read it', async () => {
      const adder = agent({ name: 'adder', input: z.object({ a: z.number() }), reply: async ({ a }) => String(a) })
      await expect(adder.generate('one')).rejects.toMatchObject({ code: 'invalid_input' })
    })

    test('hooks hear what it says, whom it starts and its end', async () => {
      const heard: string[] = []
      const child = speaker('child', 'ok')
      const teller = agent({
        name: 'teller',
        reply: async function* (_, { delegate }) {
          yield `${(await delegate(child, 'x')).text}!`
        },
        hooks: {
          onEvent: { 'text-delta': ({ text }) => heard.push(`delta ${text}`) && undefined },
          onDelegationStart: ({ agent: name }) => heard.push(`start ${name}`),
          onFinally: ({ status }, { extra }) => heard.push(`end ${status} ${Object.keys(extra)}`),
        },
      })
      const { runtime } = start()
      expect((await runtime.run(teller, 'x').result).text).toBe('ok!')
      await runtime.idle()
      expect(heard).toEqual(['start child', 'delta ok!', 'end completed '])
    })

    test('the subagents of an agent of code are delegated to by their keys, with the settings they have there', async () => {
      const worker = agent({
        name: 'worker',
        input: z.object({ job: z.string(), lang: z.string() }),
        output: z.object({ words: z.string() }),
        reply: async ({ job, lang }) => ({ words: `${job} in ${lang}` }),
      })
      const lead = agent({
        name: 'lead',
        subagents: { plain: worker, preset: { agent: worker, name: 'french', presets: { lang: 'fr' } } },
        reply: async (_, { delegate }) => {
          const first = await delegate('plain', { job: 'a', lang: 'en' })
          expectTypeOf(first.output).toEqualTypeOf<{ words: string } | null>()
          const second = await delegate('preset', { job: 'b' })
          // @ts-expect-error there is no such subagent
          await expect(async () => delegate('nobody', {})).rejects.toThrow(/There are: plain, preset/)
          // @ts-expect-error its input has a job
          const third = await delegate('plain', { lang: 'en' })
          return [first.output?.words, second.output?.words, third.status].join(', ')
        },
      })
      const { runtime, store } = start()
      const run = runtime.run(lead, 'go')
      expect((await run.result).text).toBe('a in en, b in fr, invalid_input')
      expect(store.linksOf(run.id).map(({ toolName, agentName }) => [toolName, agentName])).toEqual([
        ['plain', 'worker'],
        ['preset', 'french'],
      ])
    })

    test('the budget of an agent of code counts: children, questions, time', async () => {
      const child = speaker('child')
      const greedy = agent({
        name: 'greedy',
        budget: { children: 1, toolCalls: 0 },
        reply: async (_, { delegate, ask }) => {
          const both = await Promise.all([delegate(child, 'x'), delegate(child, 'y')])
          const asked = await ask('May I?').catch((error: Error) => error.message)
          return [...both.map(({ status }) => status), asked].join(', ')
        },
      })
      const slow = agent({
        name: 'slow',
        budget: { wallMs: 30 },
        effect: 'pure',
        reply: async (_, { signal }) => {
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          return 'late'
        },
      })
      const { runtime } = start()
      expect((await runtime.run(greedy, 'x').result).text).toBe(
        'completed, unavailable, The limit of tool calls was reached: nobody was asked.',
      )
      expect(await runtime.run(slow, 'x').result).toMatchObject({ status: 'timed_out' })
    })

    test('an agent of code is cancelled: what it has said is kept, and an effect is in doubt', async () => {
      const said = makeGate()
      const talker = (effect: Effect) =>
        agent({
          name: `talker-${effect}`,
          effect,
          reply: async function* (_, { signal }) {
            yield 'Half.'
            said.open()
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
          },
        })
      const { runtime, store } = start()
      for (const effect of ['idempotent', 'effectful'] as const) {
        const run = runtime.run(talker(effect), 'go')
        await said.opened
        await until('it runs', () => store.nodesOf(run.id).at(-1)?.state === 'running')
        await run.cancel()
        const outcome = await run.result
        expect(outcome).toMatchObject({ status: 'cancelled', text: 'Half.' })
        expect(outcome.uncertain).toHaveLength(effect === 'effectful' ? 1 : 0)
      }
    })
  })

  describe('it asks a person', () => {
    const asker = (effect: Effect, ran: () => void = () => undefined) =>
      agent({
        name: 'asker',
        effect,
        reply: async (_, { ask }) => {
          ran()
          return `You like ${await ask('Which colour?')}.`
        },
      })

    test('and waits as a row, which holds no worker', async () => {
      const { runtime, store } = start({ engine: { workers: 1 } })
      const run = runtime.run(asker('effectful'), 'go')
      const [question] = await questionsOf(runtime)
      expect(question).toMatchObject({ text: 'Which colour?', to: 'person', path: ['asker'], runId: run.id })
      expect((await runtime.run(speaker('other'), 'x').result).status).toBe('completed')

      await runtime.answer(question?.nodeId ?? '', { text: 'red', by: 'ann' })
      expect(await run.result).toMatchObject({ status: 'completed', text: 'You like red.', toolCalls: 1 })
      expect(tasksOf(store, run.id)).toMatchObject([{ state: 'finished', input: { call: { name: 'ask_person' } } }])
    })

    test('and a restart in the middle loses nothing', async () => {
      let runs = 0
      const first = start()
      const run = first.runtime.run(
        asker('idempotent', () => runs++),
        'go',
      )
      await questionsOf(first.runtime)
      await first.runtime.close()

      const second = start({ agents: [asker('idempotent', () => runs++)] })
      const [resumed] = await second.runtime.resume()
      const [question, ...others] = await second.runtime.questions()
      expect(others).toEqual([])
      await second.runtime.answer(question?.nodeId ?? '', { text: 'blue' })
      expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'You like blue.' })
      expect([resumed?.id, runs, second.store.node(question?.nodeId ?? '')?.metadata['asked_by']]).toEqual([
        run.id,
        2,
        second.store.nodesOf(run.id).find(({ kind }) => kind === 'agent_message')?.id,
      ])
    })

    test('and is cancelled: the question is given up, and the clock goes on', async () => {
      const { runtime, store } = start()
      const run = runtime.run(asker('idempotent'), 'go')
      await questionsOf(runtime)
      await run.cancel()
      expect(await run.result).toMatchObject({ status: 'cancelled' })
      expect(await runtime.questions()).toEqual([])
      expect(store.turn(run.id)?.paused).toBeNull()
    })

    test('and does not wait for the answer: the question is given up with it', async () => {
      const hasty = agent({
        name: 'hasty',
        reply: async (_, { ask }) => {
          void ask('Well?')
          await questionsOf(runtime)
          return 'Never mind.'
        },
      })
      const { runtime, store } = start()
      const run = runtime.run(hasty, 'go')
      expect(await run.result).toMatchObject({ status: 'completed', text: 'Never mind.' })
      expect(await runtime.questions()).toEqual([])
      expect(tasksOf(store, run.id)).toMatchObject([{ state: 'stopped' }])
    })
  })

  describe('after a restart in the middle', () => {
    /** Its first try is held after its first child; the next goes through. */
    const lead = (effect: Effect, calls: string[]) => {
      const entered = makeGate()
      const held = makeGate()
      const reply = agent({
        name: 'lead',
        effect,
        subagents: { one: counted('one', calls), two: counted('two', calls) },
        reply: async (_, context) => {
          const first = await context.delegate('one', 'a')
          entered.open()
          if (calls.length === 1) await held.opened
          return `${first.text} and ${(await context.delegate('two', 'b')).text}`
        },
      })
      return { agent: reply, entered: entered.opened }
    }

    async function interrupted(effect: Effect, calls: string[]) {
      const { agent: first, entered } = lead(effect, calls)
      const process = start({ mayFail: true })
      const run = process.runtime.run(first, 'go')
      run.result.catch(() => undefined)
      await entered
      await process.runtime.close()
      return run
    }

    test.each<Effect>(['pure', 'idempotent'])(
      '%s: it runs again, and its children are answered from rows',
      async (effect) => {
        const calls: string[] = []
        const run = await interrupted(effect, calls)
        calls.push('restart')
        const { runtime, store } = start({ agents: [lead(effect, calls).agent] })
        const [resumed] = await runtime.resume()
        expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'one a and two b', children: 2 })
        expect(calls).toEqual(['one a', 'restart', 'two b'])
        expect(store.linksOf(run.id)).toHaveLength(2)
      },
    )

    test('effectful: it is uncertain, and never run again', async () => {
      const calls: string[] = []
      const run = await interrupted('effectful', calls)
      const { runtime, store } = start({ agents: [lead('effectful', calls).agent] })
      await runtime.resume()
      const outcome = await (await runtime.attach(run.id)).result
      const message = store.nodesOf(run.id).at(-1)
      expect(message).toMatchObject({ kind: 'agent_message', state: 'uncertain' })
      expect(outcome).toMatchObject({ status: 'uncertain', uncertain: [message?.id] })
      expect(calls).toEqual(['one a'])
    })
  })
})

describe.each(stores)('an agent that is code whose process is killed, on %s', (_, create) => {
  const world = useWorld(create)

  test('I5: more often than others are given up, while a person is awaited: it goes on with the answer', async () => {
    const asker = agent({
      name: 'asker',
      effect: 'idempotent',
      reply: async (_message, { ask }) => `You said ${await ask('Well?')}.`,
    })
    const first = world.start()
    const run = first.runtime.run(asker, 'go')
    await questionsOf(first.runtime)
    await first.kill()
    const kills = 7
    for (let killed = 1; killed < kills; killed++) {
      const next = world.start({ agents: [asker] })
      await next.runtime.resume()
      await until('it runs again', () => {
        const [node] = world.store.nodesOf(run.id).filter(({ kind }) => kind === 'agent_message')
        return node?.recoveries === killed && node.state === 'running'
      })
      await next.kill()
    }
    const last = world.start({ agents: [asker] })
    await last.runtime.resume()
    const [question] = await questionsOf(last.runtime)
    await last.runtime.answer(question?.nodeId ?? '', { text: 'yes' })
    expect(await (await last.runtime.attach(run.id)).result).toMatchObject({
      status: 'completed',
      text: 'You said yes.',
    })
    expect(world.store.nodesOf(run.id).map(({ recoveries }) => recoveries)).toContain(kills)
  })
})

describe('an agent has a model or a reply', () => {
  const reply = async () => 'ok'

  test.each([
    'model',
    'instructions',
    'tools',
    'prompt',
    'settings',
    'sources',
    'toolkit',
    'repair',
    'eager',
    'briefing',
    'toolTrace',
    'contextTurns',
  ])('%s beside a reply is refused by its name', (key) => {
    expect(() => agent({ name: 'both', reply, [key]: {} } as never)).toThrow(
      new RegExp(`"both" has a reply and "${key}", which is for a model`),
    )
  })

  test('what is neither, no function, or an effect of a model is refused', () => {
    expect(() => agent({ name: 'none' } as never)).toThrow(/needs instructions.*Code that answers needs a reply/)
    expect(() => agent({ name: 'text', reply: 'hi' } as never)).toThrow(/must be a function/)
    expect(() => agent({ name: 'odd', reply, effect: 'none' } as never)).toThrow(/"pure", "idempotent" or "effectful"/)
    expect(() => agent({ name: 'talker', instructions: '', effect: 'pure' } as never)).toThrow(/give it a reply too/)
  })

  test('what only a model could use cannot be added later', async () => {
    const code = agent({ name: 'code', reply })
    expect(() =>
      registerTool(
        code,
        'x',
        simpleTool(() => 1),
      ),
    ).toThrow(/has a reply.*no model for tools/)
    expect(() => code.auto({ description: 'x', input: z.string(), output: z.string() })).toThrow(/has a reply/)
    expect(() => code.request()).toThrow(/has a reply.*no model for a request/)
    const host = { name: 'host', instructions: '', subagents: { code: { agent: code, model: scriptedModel(['x']) } } }
    await using runtime = createRuntime()
    expect(() => runtime.run(agent(host), 'x')).toThrow(/has a reply.*no model for another one/)
  })
})

/** Says who it is and what it was asked, and notes each answer. */
function counted(name: string, calls: string[]) {
  return agent({
    name,
    effect: 'pure',
    reply: async (message) => {
      calls.push(`${name} ${message}`)
      return `${name} ${message}`
    },
  })
}

async function questionsOf(runtime: Runtime) {
  for (;;) {
    const questions = await runtime.questions()
    if (questions.length > 0) return questions
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
