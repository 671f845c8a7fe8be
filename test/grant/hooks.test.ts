import { type AnyAgent, agent, createRuntime, tool } from 'legate'
import { extension, type Hooks } from 'legate/hooks'
import { type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openRuntime, resultIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { lasting, type Rows } from '../support/stores.ts'

const done: unknown[] = []
const send = tool({
  description: 'Sends',
  input: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  needs: ({ to }: { to?: string }) => [`net:${to}`],
  execute: (input: unknown) => {
    done.push(input)
    return 'sent'
  },
} as never)

const SENDS = [{ calls: [{ name: 'send', input: { to: 'a.example' } }] }, 'done'] as const

function clerk(beforeTool: Hooks['beforeTool'], grant: object = {}, script: readonly ScriptedAnswer[] = SENDS) {
  done.length = 0
  const model = scriptedModel(script)
  const hooks = beforeTool === undefined ? {} : { hooks: { beforeTool } }
  const who = agent({
    name: 'clerk',
    instructions: '',
    model,
    tools: { send },
    grant: { use: ['tool:*', 'net:*'], ...grant },
    ...hooks,
  })
  return { who, model }
}

function opened(create: () => Rows): Rows {
  const rows = create()
  onTestFinished(() => rows.drop())
  return rows
}

describe.each(lasting)('a hook before a tool, on %s', (_store, create) => {
  const open = () => openRuntime({ store: opened(create).open() })

  test('sees the call and may leave it as it is', async () => {
    const seen: unknown[] = []
    const { who } = clerk((call) => {
      seen.push(call)
      return undefined
    })
    const run = open().run(who, 'go')
    await run.result

    expect(seen).toMatchObject([{ tool: 'send', input: { to: 'a.example' }, runId: run.id }])
    expect(done).toEqual([{ to: 'a.example' }])
  })

  test('rewrites the input, and what it gives is what is decided', async () => {
    const { who, model } = clerk(() => ({ input: { to: 'evil.example' } }), { deny: ['net:evil.example'] })

    await open().run(who, 'go').result

    expect(resultIn(model.requests[1])).toMatch(/not allowed here: clerk denies net:evil.example/)
    expect(done).toEqual([])
  })

  test('rewrites what is denied into what is allowed, and that is what runs', async () => {
    const { who } = clerk(() => ({ input: { to: 'b.example' } }), { use: ['tool:*', 'net:b.example'] })

    await open().run(who, 'go').result

    expect(done).toEqual([{ to: 'b.example' }])
  })

  test.each<[string, Hooks['beforeTool'], RegExp]>([
    ['refuses in words', () => ({ refuse: 'not on Sundays' }), /^Refused: not on Sundays$/],
    [
      'throws',
      () => {
        throw new Error('broken')
      },
      /^Refused: the hook before it failed: broken$/,
    ],
    [
      'gives no JSON',
      () => ({ input: (() => undefined) as never }),
      /^Refused: the hook gave an input that is not JSON/,
    ],
    ['gives what does not fit', () => ({ input: { to: 7 } }), /arguments of send are wrong/],
  ])('a hook that %s lets nothing run', async (_name, hook, words) => {
    const { who, model } = clerk(hook)

    await open().run(who, 'go').result

    expect(resultIn(model.requests[1])).toMatch(words)
    expect(done).toEqual([])
  })

  test.each(['isolate', 'fail'] as const)(
    'of an extension that throws refuses the call, with onError %s',
    async (onError) => {
      const { who, model } = clerk(undefined)
      const broken = () => {
        throw new Error('broken')
      }
      const guard = extension({ name: 'guard', onError, hooks: { beforeTool: broken } })

      await open().run(who.use(guard), 'go').result

      expect(resultIn(model.requests[1])).toMatch(/^Refused: the hook before it failed: broken$/)
      expect(done).toEqual([])
    },
  )

  test('a hook that rewrites after the approval is asked for again', async () => {
    let times = 0
    const { who } = clerk(() => ({ input: { to: `${times++ === 0 ? 'first' : 'second'}.example` } }), {
      ask: ['tool:send'],
    })
    const runtime = open()
    const run = runtime.run(who, 'go')
    await expect.poll(async () => (await runtime.approvals()).length).toBe(1)
    const [first] = await runtime.approvals()
    await runtime.answer(first?.nodeId ?? '', { allow: true })

    await expect.poll(async () => (await runtime.approvals()).length).toBe(1)
    expect(done).toEqual([])
    const [second] = await runtime.approvals()
    expect(second?.input).toEqual({ to: 'second.example' })
    await runtime.answer(second?.nodeId ?? '', { allow: true })
    await run.result

    expect(done).toEqual([{ to: 'second.example' }])
  })

  test('a hook that rewrites is asked for again also when processes end between the approvals', async () => {
    const rows = opened(create)
    let times = 0
    const rewrites = () => clerk(() => ({ input: { to: `${times++}.example` } }), { ask: ['tool:send'] }, ['done']).who
    const first = createRuntime({ store: rows.open() })
    const run = first.run(clerk(() => ({ input: { to: 'first.example' } }), { ask: ['tool:send'] }).who, 'go')
    await expect.poll(async () => (await first.approvals()).length).toBe(1)
    await first.close()

    const second = createRuntime({ store: rows.open(), agents: [rewrites()] })
    await second.resume()
    const [asked] = await second.approvals()
    expect(asked?.input).toEqual({ to: 'first.example' })
    await second.answer(asked?.nodeId ?? '', { allow: true })
    await expect.poll(async () => (await second.approvals())[0]?.input).toEqual({ to: '0.example' })
    expect(done).toEqual([])
    await second.close()

    times = 0
    const third = openRuntime({ store: rows.open(), agents: [rewrites()] })
    await third.resume()
    const [again] = await third.approvals()
    await third.answer(again?.nodeId ?? '', { allow: true })
    expect(await (await third.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'done' })
    expect(done).toEqual([{ to: '0.example' }])
  })

  test('a hook that refused has refused for the next process too, and is not asked again', async () => {
    const rows = opened(create)
    let times = 0
    const { who } = clerk(() => ({ refuse: `no ${times++}` }), {}, [
      { calls: [{ name: 'send', input: { to: 'a.example' } }] },
      { text: 'never', delayMs: 60_000 },
    ])
    const first = createRuntime({ store: rows.open(), engine: { graceMs: 20 } })
    const run = first.run(who, 'go')
    await expect
      .poll(
        () =>
          localStore(first)
            .nodesOf(run.id)
            .filter(({ state }) => state === 'finished').length,
      )
      .toBe(3)
    await first.close()

    const next = clerk(() => ({ refuse: `no ${times++}` }), {}, ['done'])
    const second = openRuntime({ store: rows.open(), agents: [next.who] })
    await second.resume()
    expect(await (await second.attach(run.id)).result).toMatchObject({ status: 'completed', text: 'done' })
    expect(resultIn(next.model.requests[0])).toBe('Refused: no 0')
    expect([times, done]).toEqual([1, []])
  })

  test('is called before a delegation too, and is private: a child has its own', async () => {
    const seen: string[] = []
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'send', input: { to: 'x' } }] }, 'said']),
      tools: { send },
    })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'one' } }] }, 'done'])
    const host: AnyAgent = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: child },
      hooks: {
        beforeTool: ({ tool: name, input }) => {
          seen.push(name)
          return { input: { ...(input as object), message: 'two' } }
        },
      },
    })
    const runtime = open()
    const run = runtime.run(host as never, 'go' as never)
    await run.result

    expect(seen).toEqual(['ask'])
    const [link] = localStore(runtime).linksOf(run.id)
    expect(localStore(runtime).turn(link?.id ?? '')?.input).toEqual({ message: 'two' })
  })
})

test('presets win over what a hook gives, as over what a model says', async () => {
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x', repo: 'secrets' } }] }, 'done'])
  const properties = { message: { type: 'string' }, repo: { type: 'string' } }
  const expert = agent({
    name: 'expert',
    instructions: '',
    model: scriptedModel(() => 'ok'),
    input: { type: 'object', properties, required: ['message', 'repo'] } as never,
  })
  const host = agent({
    name: 'host',
    instructions: '',
    model,
    subagents: { ask: { agent: expert as AnyAgent, presets: { repo: 'legate' } } },
    hooks: { beforeTool: () => ({ input: { message: 'hooked', repo: 'other' } }) },
  })
  const runtime = openRuntime()
  const run = runtime.run(host, 'go')
  await run.result

  const [link] = localStore(runtime).linksOf(run.id)
  expect(localStore(runtime).turn(link?.id ?? '')?.input).toEqual({ message: 'hooked', repo: 'legate' })
})

test.each<[unknown, RegExp]>([
  [{ before: () => undefined }, /there is no hook "before". There are .*beforeTool/],
  [{ beforeTool: 1 }, /hooks.beforeTool must be a function/],
  [7, /hooks are an object/],
])('hooks that would never be called are refused: %j', (hooks, message) => {
  expect(() => agent({ name: 'a', instructions: '', hooks: hooks as never })).toThrow(message)
})
