import { type AnyAgent, agent, type Runtime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { callsThenSays, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { eventsOfType } from '../support/rows.ts'
import { lasting } from '../support/stores.ts'

/** What the code of `lead` does with its subagents `one` and `two`. */
type Doing = (context: {
  delegate(key: 'one' | 'two', input: string, options?: { key?: string }): Promise<{ text: string | null }>
  ask(question: string): Promise<string | null>
}) => Promise<string>

describe.each(lasting)('the calls of code that runs again, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  /** Runs code until it is held, closes its process, and goes on with other code in another one. */
  async function interrupted(before: Doing, after: Doing, edited?: AnyAgent) {
    const calls: string[] = []
    const held = makeGate()
    const first = start({ mayFail: true })
    const run = first.runtime.run(
      leadOf(calls, async (context) => {
        await before(context)
        held.open()
        return new Promise(() => undefined)
      }),
      'go',
    )
    run.result.catch(() => undefined)
    await held.opened
    await first.runtime.close()
    calls.push('restart')
    const { runtime, store } = start({ agents: [leadOf(calls, after, edited)] })
    const [resumed] = await runtime.resume()
    return { calls, runtime, store, run, outcome: await resumed?.result }
  }

  test('may come in another order: each gets its own result', async () => {
    const { calls, outcome } = await interrupted(
      ({ delegate }) => both(delegate('one', 'a'), delegate('two', 'b')),
      async ({ delegate }) => {
        const last = await delegate('two', 'b')
        return both(delegate('one', 'a'), Promise.resolve(last))
      },
    )
    expect(outcome).toMatchObject({ status: 'completed', text: 'one a, two b', children: 2 })
    expect(calls).toEqual(['one a', 'two b', 'restart'])
  })

  test.each<[string, Doing, string[], string]>([
    ['another agent', ({ delegate }) => both(delegate('two', 'a'), delegate('one', 'a')), ['two a'], 'two a, one a'],
    ['another input', ({ delegate }) => both(delegate('one', 'c'), delegate('one', 'a')), ['one c'], 'one c, one a'],
    [
      'one more of the same',
      ({ delegate }) => both(delegate('one', 'a'), delegate('one', 'a')),
      ['one a'],
      'one a, one a',
    ],
    ['none at all', async () => 'Nothing.', [], 'Nothing.'],
  ])('may be others, %s: what was asked before is not asked again', async (_name, after, ran, text) => {
    const { calls, outcome } = await interrupted(async ({ delegate }) => textOf(delegate('one', 'a')), after)
    expect(outcome).toMatchObject({ status: 'completed', text })
    expect(calls).toEqual(['one a', 'restart', ...ran])
  })

  test('calls that are equal are different children, and after a restart the same ones', async () => {
    const five: Doing = async ({ delegate }) => {
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => delegate('one', 'a')))
      return outcomes.map(({ text }) => text).join()
    }
    const { calls, store, run, outcome } = await interrupted(five, five)
    expect(outcome).toMatchObject({ status: 'completed', children: 5 })
    expect(calls).toEqual([...Array(5).fill('one a'), 'restart'])
    expect(new Set(store.linksOf(run.id).map(({ id }) => id)).size).toBe(5)
  })

  test('keep their result where the definition of their agent has changed', async () => {
    const twice: Doing = async ({ delegate }) => both(delegate('one', 'a'), delegate('two', 'b'))
    const edited = agent({ name: 'one', description: 'Edited.', reply: async () => 'edited' })
    const { calls, store, run, outcome } = await interrupted(twice, twice, edited)
    expect(outcome).toMatchObject({ status: 'completed', text: 'one a, two b', children: 2 })
    expect(calls).toEqual(['one a', 'two b', 'restart'])
    const child = store.conversation(
      store.linksOf(run.id).find(({ agentName }) => agentName === 'one')?.childConversationId ?? '',
    )
    expect(eventsOfType(store, run.conversationId, 'definition-changed')).toEqual([
      expect.objectContaining({ agent: 'one', runId: run.id, from: child?.agent.hash, to: edited.identity.ref.hash }),
    ])
  })

  test('tell of an edited agent once, however many of its children are used again', async () => {
    const many: Doing = async ({ delegate }) => {
      const asked = [
        delegate('one', 'a'),
        delegate('one', 'b'),
        delegate('one', 'b'),
        delegate('one', 'c', { key: 'x' }),
      ]
      return (await Promise.all(asked)).map(({ text }) => text).join()
    }
    const edited = agent({ name: 'one', description: 'Edited.', reply: async () => 'edited' })
    const { store, run, outcome } = await interrupted(many, many, edited)
    expect(outcome).toMatchObject({ status: 'completed', text: 'one a,one b,one b,one c', children: 4 })
    expect(eventsOfType(store, run.conversationId, 'definition-changed')).toMatchObject([{ agent: 'one' }])
  })

  test('tell of nothing where no agent was edited', async () => {
    const twice: Doing = async ({ delegate }) => both(delegate('one', 'a'), delegate('two', 'b'))
    const { store, run } = await interrupted(twice, twice)
    expect(eventsOfType(store, run.conversationId, 'definition-changed')).toEqual([])
  })

  test.each(['retry', 'rerun'] as const)(
    'of a turn that %s made are made anew with the definition of now, and within that turn they are kept again',
    async (change) => {
      const calls: string[] = []
      const held = makeGate()
      const ends = change === 'retry' ? async () => Promise.reject(new Error('no')) : async () => undefined
      const doing = (then: () => Promise<unknown>): Doing => {
        return async ({ delegate }) => {
          const text = await textOf(delegate('one', 'a'))
          await then()
          return text
        }
      }
      const one = (description: string, says: string) =>
        agent({
          name: 'one',
          description,
          effect: 'pure',
          reply: async () => {
            calls.push(says)
            return says
          },
        })
      const first = start({ mayFail: true })
      const run = first.runtime.run(leadOf(calls, doing(ends), one('First.', 'first')), 'go')
      await run.result
      await first.runtime.close()

      const waits = async () => {
        held.open()
        return new Promise(() => undefined)
      }
      const second = start({ agents: [leadOf(calls, doing(waits), one('Second.', 'second'))], mayFail: true })
      const talk = await second.runtime.conversation(run.conversationId)
      const answer = second.store.nodesOf(run.id).find(({ kind }) => kind === 'agent_message')
      const again = await talk.history[change](answer?.id ?? '')
      again.result.catch(() => undefined)
      await held.opened
      await second.runtime.close()

      const third = start({
        agents: [
          leadOf(
            calls,
            doing(async () => undefined),
            one('Third.', 'third'),
          ),
        ],
      })
      const [resumed] = await third.runtime.resume()
      expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'second', children: 1 })
      expect(calls).toEqual(['first', 'second'])
      expect(
        eventsOfType(third.store, run.conversationId, 'definition-changed').filter((event) => event.agent === 'one'),
      ).toMatchObject([{ runId: again.id }])
    },
  )

  test('find a child that is not over yet: it goes on with the definition of now', async () => {
    const asked = makeGate()
    const worker = (description: string, reply: () => Promise<string>) =>
      agent({ name: 'worker', description, effect: 'pure', reply })
    const host = (below: AnyAgent) =>
      agent({
        name: 'host',
        effect: 'idempotent',
        reply: async (_input, { delegate }) => String((await delegate(below as never, 'a')).text),
      })
    const first = start({ mayFail: true })
    const never = worker('Old.', async () => {
      asked.open()
      return new Promise(() => undefined)
    })
    const run = first.runtime.run(host(never), 'go')
    run.result.catch(() => undefined)
    await asked.opened
    await first.runtime.close()

    const { runtime, store } = start({ agents: [host(worker('New.', async () => 'new'))] })
    const [resumed] = await runtime.resume()
    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'new', children: 1 })
    expect(eventsOfType(store, run.conversationId, 'definition-changed')).toMatchObject([{ agent: 'worker' }])
  })

  describe('with a key', () => {
    test('are told apart by it where they ask the same', async () => {
      const { calls, outcome } = await interrupted(
        async ({ delegate }) => textOf(delegate('one', 'a', { key: 'y' })),
        ({ delegate }) => both(delegate('one', 'a', { key: 'x' }), delegate('one', 'a', { key: 'y' })),
      )
      expect(outcome).toMatchObject({ status: 'completed', children: 2 })
      expect(calls).toEqual(['one a', 'restart', 'one a'])
    })

    test('are one call, however often it is made', async () => {
      const { calls, outcome } = await interrupted(
        async () => '',
        ({ delegate }) => both(delegate('one', 'a', { key: 'x' }), delegate('one', 'a', { key: 'x' })),
      )
      expect(outcome).toMatchObject({ status: 'completed', text: 'one a, one a', children: 1 })
      expect(calls).toEqual(['restart', 'one a'])
    })

    test.each<[string, Doing]>([
      ['another input', async ({ delegate }) => textOf(delegate('one', 'b', { key: 'x' }))],
      ['another agent', async ({ delegate }) => textOf(delegate('two', 'a', { key: 'x' }))],
    ])('and %s are a conflict, also where the code goes on after it', async (_name, other) => {
      const catching: Doing = async (context) => (await other(context).catch(() => 'caught')) ?? ''
      const pinned: Doing = async ({ delegate }) => textOf(delegate('one', 'a', { key: 'x' }))
      const { calls, runtime, outcome } = await interrupted(pinned, catching)
      expect(outcome).toMatchObject({ status: 'failed', error: { code: 'conflict' } })
      expect(calls).toEqual(['one a', 'restart'])

      const again = leadOf([], async (context) => `${await pinned(context)} ${await catching(context)}`)
      expect(await runtime.run(again, 'go').result).toMatchObject({ status: 'failed', error: { code: 'conflict' } })
    })
  })

  test('to agents of one name with several definitions do not take the children of one another', async () => {
    const calls: string[] = []
    const held = makeGate()
    const judge = (of: string) =>
      agent({
        name: 'judge',
        description: `Judges ${of}.`,
        effect: 'pure',
        reply: async () => {
          calls.push(of)
          return of
        },
      })
    const host = (order: string[], then: () => Promise<void>) =>
      agent({
        name: 'host',
        effect: 'idempotent',
        reply: async (_input, { delegate }) => {
          const said = []
          for (const of of order) said.push((await delegate(judge(of), 'Judge.')).text)
          await then()
          return said.join()
        },
      })
    const first = start({ mayFail: true })
    const waiting = host(['b'], async () => {
      held.open()
      return new Promise(() => undefined)
    })
    const run = first.runtime.run(waiting, 'go')
    run.result.catch(() => undefined)
    await held.opened
    await first.runtime.close()
    const { runtime } = start({ agents: [host(['a', 'b'], async () => undefined)] })
    const [resumed] = await runtime.resume()
    expect(await resumed?.result).toMatchObject({
      status: 'failed',
      error: { code: 'conflict', message: expect.stringMatching(/of one name.*name of its own/) },
    })
  })

  test('calls that ask a person are known by their text: each question gets its own answer, and is asked once', async () => {
    const first = start({ mayFail: true })
    const asker = (questions: string[]) =>
      agent({
        name: 'asker',
        effect: 'idempotent',
        reply: async (_input, { ask }) => (await Promise.all(questions.map((text) => ask(text)))).join(),
      })
    const run = first.runtime.run(asker(['Left?', 'Left?', 'Right?']), 'go')
    run.result.catch(() => undefined)
    expect(await questionsIn(first.runtime, 3)).toHaveLength(3)
    await first.runtime.close()

    const { runtime, store } = start({ agents: [asker(['Right?', 'Up?', 'Left?', 'Left?'])] })
    const [resumed] = await runtime.resume()
    for (const { nodeId, text } of await questionsIn(runtime, 4)) await runtime.answer(nodeId, { text: `${text[0]}` })
    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'R,U,L,L', toolCalls: 4 })
    expect(store.nodesOf(run.id).filter(({ metadata }) => metadata['asked_by'] !== undefined)).toHaveLength(4)
  })

  test('of a tool may come in another order, too', async () => {
    const calls: string[] = []
    const held = makeGate()
    const worker = agent({
      name: 'worker',
      effect: 'pure',
      reply: async (message) => {
        calls.push(String(message))
        return `did ${message}`
      },
    })
    const host = (order: string[], then: () => Promise<void>) =>
      agent({
        name: 'host',
        instructions: '',
        model: scriptedModel(callsThenSays('survey')),
        subagents: { worker },
        tools: {
          survey: tool({
            description: 'Asks around.',
            input: { type: 'object' },
            effect: 'idempotent',
            execute: async (_input, { delegate }) => {
              const said = await Promise.all(order.map((of) => delegate(worker, of)))
              await then()
              return said.map(({ text }) => text).join()
            },
          }),
        },
      })
    const first = start({ mayFail: true })
    const waiting = host(['a', 'b', 'b'], async () => {
      held.open()
      return new Promise(() => undefined)
    })
    const run = first.runtime.run(waiting, 'go')
    run.result.catch(() => undefined)
    await held.opened
    await first.runtime.close()
    calls.push('restart')
    const { runtime } = start({ agents: [host(['b', 'c', 'a', 'b'], async () => undefined)] })
    const [resumed] = await runtime.resume()
    expect(await resumed?.result).toMatchObject({ status: 'completed', text: 'did b,did c,did a,did b' })
    expect(calls).toEqual(['a', 'b', 'b', 'restart', 'c'])
  })
})

function leadOf(calls: string[], doing: Doing, one: AnyAgent = counted('one', calls)) {
  return agent({
    name: 'lead',
    effect: 'idempotent',
    subagents: { one, two: counted('two', calls) },
    reply: async (_input, context) => doing(context as never),
  })
}

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

async function both(first: Promise<{ text: string | null }>, second: Promise<{ text: string | null }>) {
  const outcomes = await Promise.all([first, second])
  return outcomes.map(({ text }) => text).join(', ')
}

async function textOf(outcome: Promise<{ text: string | null }>): Promise<string> {
  return (await outcome).text ?? ''
}

async function questionsIn(runtime: Runtime, count: number) {
  for (;;) {
    const questions = await runtime.questions()
    if (questions.length >= count) return questions
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
