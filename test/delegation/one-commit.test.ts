import { type AnyAgent, agent, type StandardSchema, StoreError, type Tools } from 'legate'
import type { Hooks } from 'legate/hooks'
import type { ModelRequest } from 'legate/models'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { simpleTool, speaker, useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'
import { eventsOf, tasksOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

describe.each(stores)('a child that its host asks for, on %s', (_, create) => {
  const world = useWorld(create)

  test('is started by the commit of the answer: a crash leaves both or none', async () => {
    const { runtime, kinds } = noting()

    const { conversationId, id, result } = runtime.run(hostOf({ ask: speaker('child') }), 'go')

    expect(await result).toMatchObject({ status: 'completed', children: 1 })
    expect(kinds).toEqual(['say', 'expand', 'end', 'end'])
    expect(typesOf(conversationId)).toEqual(DELEGATION)
    expect(tasksOf(world.store, id)).toMatchObject([{ state: 'finished', epoch: 1, attempt: 1 }])
  })

  test('is started by its task where the application makes the agent, once per delegation', async () => {
    const { runtime, kinds } = noting()
    let made = 0
    const provider = () => {
      made++
      return speaker('child')
    }

    const run = runtime.run(hostOf({ ask: { agent: provider } }, 2), 'go')
    await run.result

    expect(kinds.filter((kind) => kind === 'spawn')).toHaveLength(2)
    expect(made).toBe(2)
    expect(typesOf(run.conversationId).slice(0, DELEGATION.length - 3)).toEqual(DELEGATION.slice(0, -3))
  })

  test.each([
    ['at once', (value: unknown) => ({ value }), ['spawn']],
    ['later', async (value: unknown) => ({ value }), ['spawn', 'spawn', 'spawn']],
  ] as const)(
    'with a schema that answers %s is checked once per delegation that it allows',
    async (__, answer, spawns) => {
      const { runtime, kinds } = noting()
      let checks = 0
      const input = schemaOf((value) => {
        checks++
        return answer(value)
      })
      const child = agent({ name: 'child', instructions: '', input, model: scriptedModel(() => 'ok') })

      await runtime.run(hostOf({ ask: child }, 3), 'go').result

      expect(checks).toBe(3)
      expect(kinds.filter((kind) => kind === 'spawn')).toEqual(spawns)
    },
  )

  test('knows the same of its host, whoever starts it', async () => {
    const briefings = await Promise.all(
      [false, true].map(async (isProvided) => {
        const requests: ModelRequest[] = []
        const child = agent({
          name: 'child',
          instructions: '',
          briefing: 'fork',
          model: scriptedModel((request) => {
            requests.push(request)
            return 'ok'
          }),
        })
        const { runtime } = world.start()
        await runtime.run(hostOf({ ask: isProvided ? { agent: () => child } : child }, 2), 'go').result
        return requests.map(({ messages }) => JSON.stringify(messages).replace(/[0-9a-f-]{36}|\d{4}-[^"\\]*Z/g, ''))
      }),
    )

    expect(briefings[0]).toHaveLength(2)
    expect(briefings[0]?.[0]).toContain('I shall ask, 1.')
    expect(briefings[0]).toEqual(briefings[1])
  })

  test('is denied by what was forbidden while the host spoke', async () => {
    const { runtime } = world.start()
    const host = agent({
      name: 'host',
      instructions: '',
      subagents: { ask: speaker('child') },
      model: scriptedModel(async ({ messages }) => {
        const told = messages.at(-1)
        if (told?.role === 'tool') return String(told.content)
        await (await runtime.conversation(run.conversationId)).configure({ policyProfile: 'minimal' })
        return { calls: [{ name: 'ask', input: { message: 'x' } }] }
      }),
    })
    const run = runtime.run(host, 'go')

    const outcome = await run.result

    expect(outcome.children).toBe(0)
    expect(outcome.text).toMatch(/denied|not_in_profile/)
  })

  test('has to be let through by hooks first', async () => {
    const { runtime, kinds } = noting()
    const seen: string[] = []
    const hooks: Hooks = { beforeTool: ({ tool }) => void seen.push(tool) }
    const host = { ...hostOptions({ ask: speaker('child') }), hooks }

    await runtime.run(agent(host), 'go').result

    expect(seen).toEqual(['ask'])
    expect(kinds).toContain('spawn')
  })

  test('a child that is asked the same again and again is refused, as any call', async () => {
    const { runtime } = world.start()
    const child = scriptedModel(() => 'the same')
    const input = schemaOf((value) => ({ value }))
    const host = agent({
      name: 'host',
      instructions: '',
      subagents: { ask: agent({ name: 'child', instructions: '', input, model: child }) },
      model: scriptedModel(({ messages }) => {
        const told = messages.at(-1)
        if (told?.role === 'tool' && String(told.content).startsWith('Refused')) return 'enough'
        return { calls: [{ name: 'ask', input: { message: 'x' } }] }
      }),
    })

    const outcome = await runtime.run(host, 'go').result

    expect(outcome).toMatchObject({ text: 'enough', children: 3 })
    expect(child.requests).toHaveLength(3)
  })

  test('needs one worker, not two: its waiting task has none', async () => {
    const { runtime } = world.start({ engine: { workers: 2 } })

    const outcome = await runtime.run(hostOf({ ask: speaker('child') }, 12), 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 12 })
  })

  test('is started by its task where there are many', async () => {
    const { runtime, kinds } = noting()
    const calls = Array.from({ length: 40 }, (__, n) => ({ name: 'ask', input: { message: `${n}` } }))
    const model = scriptedModel([{ calls }, 'done'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: speaker('child') } })

    expect(await runtime.run(host, 'go').result).toMatchObject({ text: 'done', children: 40 })

    expect(kinds.filter((kind) => kind === 'spawn').length).toBeGreaterThanOrEqual(40)
  })

  test('is denied by what was forbidden when the answer was stored, where another was faster', async () => {
    const second = world.start()
    const host = hostOf({ ask: speaker('child') })
    const runtime = beforeAnswer(async () => {
      await (await second.runtime.conversation(run.conversationId)).configure({ policyProfile: 'minimal' })
    })
    const run = runtime.run(host, 'go')

    const outcome = await run.result

    expect(outcome.children).toBe(0)
    expect(tasksOf(world.store, run.id)).toMatchObject([{ output: { isError: true } }])
  })

  test('a child that could not be stored leaves nothing behind', async () => {
    const runtime = beforeAnswer(() => Promise.reject(new StoreError('store_busy', 'busy')))
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x' } }] }, 'on my own'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: speaker('child') } })

    const outcome = await runtime.run(host, 'go').result

    expect(outcome).toMatchObject({ text: 'on my own', children: 0 })
    const { directory } = runtime as unknown as { directory: { registry: { home: { entries(): Iterable<unknown> } } } }
    expect([...directory.registry.home.entries()]).toEqual([])
  })

  test('has its place by the order of the calls, whoever starts it', async () => {
    const { runtime } = world.start()
    const calls = ['made', 'ask'].map((name) => ({ name, input: { message: 'x' } }))
    const model = scriptedModel([{ calls }, 'done'])
    const subagents = { made: { agent: () => speaker('made') }, ask: speaker('child') }
    const run = runtime.run(agent({ name: 'host', instructions: '', model, subagents, budget: { children: 1 } }), 'go')
    await run.result

    const { store } = world
    expect(store.linksOf(run.id).map(({ agentName }) => agentName)).toEqual(['made'])
    expect(tasksOf(store, run.id).map(({ output }) => output.isError === true)).toEqual([false, true])
  })

  describe('by the late answer of a process that was taken for dead', () => {
    test('does not take the place of what its heir does', async () => {
      const [entered, paying] = [makeGate(), makeGate()]
      const pay = simpleTool(
        async () => {
          entered.open()
          await paying.opened
          return 'paid'
        },
        { effect: 'effectful' },
      )
      const host = (call: string) => asking(call, { pay }, { ask: speaker('child', 'of the zombie') })
      const { run, zombie, heir } = await takenOver(host('ask'), host('pay'))
      await entered.opened

      zombie.thaw()
      await lateResult(run.conversationId)
      paying.open()

      expect((await (await heir.runtime.attach(run.id)).result).text).toBe('paid')
      expect(world.store.linksOf(run.id)).toEqual([])
    })

    test('is not taken for the child of its heir', async () => {
      const entered = makeGate()
      const host = (call: string, answer: Script) =>
        asking(
          call,
          {},
          {
            ask: speaker('child', 'said by child'),
            tell: agent({ name: 'other', instructions: '', model: scriptedModel(answer) }),
          },
        )
      const never = async () => {
        entered.open()
        return makeGate().opened.then(() => 'never')
      }
      const { run, zombie, heir } = await takenOver(
        host('ask', () => 'said by other'),
        host('tell', never),
      )
      await entered.opened

      zombie.thaw()
      await lateResult(run.conversationId)
      await heir.kill()

      expect((await (await zombie.runtime.attach(run.id)).result).text).toContain('said by other')
      expect(world.store.linksOf(run.id).map(({ agentName }) => agentName)).toEqual(['other'])
    })

    /** The first process falls asleep right before it stores its answer, and the second goes on with the run. */
    async function takenOver(first: AnyAgent, second: AnyAgent) {
      const asleep = makeGate()
      const store = (inner: LocalStore) =>
        onAnswer(inner, () => {
          zombie.freeze()
          asleep.open()
          return wokenUp.opened
        })
      const wokenUp = makeGate()
      const zombie = world.start({ engine: { leaseMs: 100 }, store })
      const run = zombie.runtime.run(first, 'go')
      await asleep.opened
      const heir = world.start({ agents: [second], engine: { leaseMs: 5_000 } })
      await heir.runtime.resume()
      return {
        run,
        heir,
        zombie: {
          ...zombie,
          thaw: () => {
            zombie.thaw()
            wokenUp.open()
          },
        },
      }
    }

    function lateResult(rootId: string): Promise<unknown> {
      return until('the late result', () => eventsOf(world.store, rootId).find(({ type }) => type === 'late-result'))
    }
  })

  /** A process that does this first when it stores its first answer with calls. */
  function beforeAnswer(act: () => Promise<void>) {
    return world.start({ store: (inner) => onAnswer(inner, act), mayFail: true }).runtime
  }

  /** A process, and the kinds of what it commits to trees. */
  function noting() {
    const kinds: string[] = []
    const store = (inner: LocalStore): LocalStore => ({
      ...inner,
      commit: (commit) => {
        if (commit.rootId !== null) kinds.push(commit.kind)
        return inner.commit(commit)
      },
    })
    return { runtime: world.start({ store }).runtime, kinds }
  }

  function typesOf(rootId: string): string[] {
    return eventsOf(world.store, rootId).map(({ type }) => type)
  }
})

const DELEGATION = [
  ...['run-start', 'message', 'usage', 'message', 'tool-call'],
  ...['delegation-start', 'run-start', 'message', 'usage', 'message', 'run-end', 'delegation-end', 'tool-result'],
  ...['usage', 'message', 'run-end'],
]

type Subagents = NonNullable<Parameters<typeof agent>[0]['subagents']>

function onAnswer(store: LocalStore, act: () => Promise<void>): LocalStore {
  let isFirst = true
  return {
    ...store,
    commit: (commit) => {
      if (commit.kind !== 'expand' || !isFirst) return store.commit(commit)
      isFirst = false
      return act().then(() => store.commit(commit))
    },
  }
}

/** Calls this once, and says what came of it. */
function asking(call: string, tools: Tools, subagents: Subagents) {
  const model = scriptedModel(({ messages }) => {
    const told = messages.at(-1)
    return told?.role === 'tool' ? String(told.content) : { calls: [{ name: call, input: { message: 'x' } }] }
  })
  return agent({ name: 'host', instructions: '', model, tools, subagents })
}

/** Asks so often, each time something else, and is done. */
function hostOptions(subagents: Subagents, times = 1) {
  const model = scriptedModel(({ messages }) => {
    const asked = messages.filter(({ role }) => role === 'tool').length
    if (asked === times) return 'done'
    return { text: `I shall ask, ${asked + 1}.`, calls: [{ name: 'ask', input: { message: `${asked}` } }] }
  })
  return { name: 'host', instructions: '', model, subagents }
}

function hostOf(subagents: Subagents, times = 1) {
  return agent(hostOptions(subagents, times))
}

function schemaOf(validate: StandardSchema['~standard']['validate']): StandardSchema {
  const jsonSchema = { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) }
  return { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } } as StandardSchema
}
