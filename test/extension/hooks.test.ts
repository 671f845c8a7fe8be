import path from 'node:path'
import { type AnyAgent, agent, createRuntime, type Outcome, type Run, type RunEvent, tool } from 'legate'
import { type Extension, extension, type Hooks } from 'legate/hooks'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ToolResult } from '../../src/core/agent/definition/hooks.ts'
import { ErrorResult } from '../../src/core/tool/result.ts'
import { makeGate } from '../support/gate.ts'
import { eventsOf, only, openRuntime, resultIn, resultsIn } from '../support/reading.ts'
import { localStore, tasksOf } from '../support/rows.ts'
import { lasting, type Rows } from '../support/stores.ts'
import { tempFolder } from '../support/temp-folder.ts'

const echo = tool({
  description: 'Echo',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  effect: 'pure',
  execute: (input: unknown) => `heard ${(input as { text: string }).text}`,
} as never)

function speaker(hooks: Hooks = {}, script: Parameters<typeof scriptedModel>[0] = () => 'ok') {
  const model = scriptedModel(script)
  return { model, who: agent({ name: 'who', instructions: 'You speak.', model, tools: { echo }, hooks }) }
}

const callsEcho = [{ calls: [{ name: 'echo', input: { text: 'hi' } }] }, 'done'] as const

function emissions(events: readonly RunEvent[]): string[] {
  return only(events, 'extension').map(({ name }) => name)
}

describe('composition', () => {
  test('an extension adds methods and state, typed without a cast; the agent without it has none', async () => {
    const counting = extension({
      name: 'counting',
      state: () => ({ calls: 0 }),
      hooks: {
        onRequest: (_request, { state, extra }) => {
          state.calls++
          extra['calls'] = state.calls
        },
      },
      methods: (who) => ({ countFor: async (text: string) => (await who.generate(text)).extra['calls'] }),
    })
    const { who } = speaker({}, () => 'ok')
    const counted = who.use(counting)

    expect(await counted.countFor('a')).toBe(1)
    expect(await counted.countFor('b')).toBe(1)
    expect('countFor' in who).toBe(false)
    // @ts-expect-error: there is no such method without the extension
    expect(who.countFor).toBeUndefined()
  })

  test('methods see what the agent uses later', async () => {
    const asking = extension({
      name: 'asking',
      methods: (who) => ({ ask: async () => (await who.generate('x')).text }),
    })
    const canned = extension({ name: 'canned', hooks: { wrapModel: () => 'canned' } })

    const both = speaker().who.use(asking).use(canned)

    expect(await both.ask()).toBe('canned')
  })

  test('two methods of one name are refused, naming both; the compiler sees it too', () => {
    const one = extension({ name: 'one', methods: () => ({ ask: () => 1 }) })
    const other = extension({ name: 'other', methods: () => ({ ask: () => 2 }) })
    const core = extension({ name: 'core', methods: () => ({ generate: () => 3 }) })
    const { who } = speaker()

    // @ts-expect-error: ask is there already
    expect(() => who.use(one).use(other)).toThrow(
      /the extension "other" has a method "ask", and so has the extension "one"/,
    )
    // @ts-expect-error: every agent has generate
    expect(() => who.use(core)).toThrow(/the extension "core" has a method "generate", and so has every agent/)
    // @ts-expect-error: it is used already
    expect(() => who.use(extension({ name: 'x' })).use(extension({ name: 'x' }))).toThrow(
      /uses an extension "x" already/,
    )
  })

  test.each([[['a', 'b']], [['b', 'a']]])('A before B, whatever order they are used in: %j', async (order) => {
    const seen: string[] = []
    const hooks = (name: string): Hooks => ({ onRequest: () => void seen.push(name) as never })
    const all: Record<string, Extension> = {
      a: extension({ name: 'a', before: ['b'], hooks: hooks('a') }),
      b: extension({ name: 'b', hooks: hooks('b') }),
    }
    const who = order.reduce((made, name) => made.use(all[name] as never), speaker().who as AnyAgent)

    await openRuntime().run(who as never, 'go' as never).result

    expect(seen).toEqual(['a', 'b'])
  })

  test('what is required must be there, on the agent or the runtime; circles and doubles are refused', async () => {
    const base = extension({ name: 'base' })
    const needs = extension({ name: 'needs', requires: ['base'] })
    const a = extension({ name: 'a', before: ['b'], hooks: { onFinally: () => undefined } })
    const b = extension({ name: 'b', before: ['a'] })
    const { who } = speaker()

    expect(() => openRuntime().run(who.use(needs), 'x')).toThrow(/"needs" requires "base"/)
    expect((await openRuntime({ extensions: [base] }).run(who.use(needs), 'x').result).status).toBe('completed')
    expect(() => openRuntime().run(who.use(a).use(b), 'x')).toThrow(/want to come before each other: a, b/)
    expect(() => openRuntime({ extensions: [extension({ name: 'a' })] }).run(who.use(a), 'x')).toThrow(
      /two extensions "a"/,
    )
  })

  test.each<[unknown, RegExp]>([
    [7, /an extension is an object/],
    [{ name: '' }, /is not a name for an extension/],
    [{ name: 'hooks' }, /the name of an agent's own hooks/],
    [{ name: 'x', hook: {} }, /has no option "hook"/],
    [{ name: 'x', hooks: { onReqest: () => 1 } }, /there is no hook "onReqest"/],
    [{ name: 'x', hooks: { onEvent: () => 1, onRequest: 3 } }, /hooks.onEvent is an object|hooks.onRequest must be/],
    [{ name: 'x', hooks: { onEvent: { 'text-delta': 3 } } }, /onEvent\[text-delta\] must be a function/],
    [{ name: 'x', requires: 'y' }, /requires must be a list/],
    [{ name: 'x', onError: 'ignore' }, /onError must be one of "isolate", "fail"/],
    [{ name: 'x', state: {} }, /state must be a function/],
  ])('what would never work is refused: %j', (given, message) => {
    expect(() => extension(given as never)).toThrow(message)
    expect(() => speaker().who.use(given as never)).toThrow(message)
    expect(() => openRuntime({ extensions: [given as never] })).toThrow(message)
  })
})

describe('hooks around a model call', () => {
  test('hooks before a request run in order and are awaited; the second sees the changes of the first; nobody else does', async () => {
    const seen: string[] = []
    const adds = (text: string) =>
      extension({
        name: text,
        hooks: {
          onRequest: async ({ messages }) => {
            await new Promise((resolve) => setTimeout(resolve, 5))
            seen.push(String(messages.at(-1)?.content))
            return { messages: [...messages, { role: 'user', content: text }] }
          },
        },
      })
    const { who, model } = speaker()
    const runtime = openRuntime()

    await runtime.run(who.use(adds('one')).use(adds('two')), 'go').result
    await runtime.run(who, 'go').result

    expect(seen).toEqual(['go', 'one'])
    expect(model.requests.map(({ messages }) => messages.map(({ content }) => content))).toEqual([
      ['You speak.', 'go', 'one', 'two'],
      ['You speak.', 'go'],
    ])
  })

  test('what is given before the stream, in whatever form, is seen in order before the first model event', async () => {
    const say = (name: string, onStreamStart: Hooks['onStreamStart']) =>
      extension({ name, hooks: { onStreamStart: onStreamStart as never } })
    const { who } = speaker({}, [{ chunks: ['a', 'b'] }])
    const all = who
      .use(say('sync', () => ({ name: 'sync', data: 1 })))
      .use(say('async', async () => ({ name: 'async' })))
      .use(
        say('generator', function* () {
          yield { name: 'first' }
          yield null
          yield { name: 'second' }
        }),
      )
      .use(
        say('asyncGenerator', async function* () {
          yield { name: 'third' }
          yield { name: 'fourth' }
        }),
      )
      .use(say('list', () => [{ name: 'fifth' }, undefined]))
      .use(say('nothing', () => undefined))

    const events = await eventsOf(openRuntime().run(all, 'go'))

    expect(emissions(events)).toEqual(['sync', 'async', 'first', 'second', 'third', 'fourth', 'fifth'])
    const types = events.map(({ type }) => type)
    expect(types.lastIndexOf('extension')).toBeLessThan(types.indexOf('text-delta'))
    expect(only(events, 'extension')[0]).toMatchObject({ extension: 'sync', name: 'sync', data: 1, path: ['who'] })
  })

  test('what is given after the stream comes after the last model event and before the message', async () => {
    const { who } = speaker(
      { onStreamEnd: async ({ content, calls }) => [{ name: 'ended', data: [String(content), calls.length] }] },
      [{ chunks: ['a', 'b'] }],
    )

    const types = (await eventsOf(openRuntime().run(who, 'go'))).map(({ type }) => type)

    expect(types.slice(types.indexOf('text-delta'))).toEqual([
      'text-delta',
      'text-delta',
      'extension',
      'usage',
      'message',
      'run-end',
    ])
  })

  test.each<[string, () => unknown]>([
    ['at once', () => ({ name: 'after' })],
    ['later', async () => ({ name: 'after' })],
  ])('a hook for an event fires for each; what it gives %s directly follows', async (_, give) => {
    const { who } = speaker({ onEvent: { 'text-delta': give } }, [{ chunks: ['a', 'b', 'c'] }])

    const events = await eventsOf(openRuntime().run(who, 'go'))

    const seen = events.filter(({ type }) => type === 'text-delta' || type === 'extension')
    expect(seen.map(({ type }) => type)).toEqual(Array(3).fill(['text-delta', 'extension']).flat())
  })

  test('bound methods, arrow functions, partials, proxies and methods of a class all run', async () => {
    const seen: string[] = []
    class Keeper {
      readonly name = 'kept'
      onRequest(): undefined {
        seen.push(this.name)
        return undefined
      }
      readonly onStreamStart = this.onRequest.bind({ name: 'bound' } as never)
      readonly onStreamEnd = new Proxy(() => void seen.push('proxy') as never, {})
      readonly onFinally = ((name: string) => seen.push(name)).bind(null, 'partial') as never
    }
    const { who } = speaker(new Keeper())
    const runtime = openRuntime()
    await runtime.run(who, 'go').result
    await runtime.idle()

    expect(seen).toEqual(['kept', 'bound', 'proxy', 'partial'])
  })

  test('a wrapper that answers is asked instead of the model; others change what it says', async () => {
    const canned = speaker({ wrapModel: () => 'canned' })
    const loud = speaker(
      {
        wrapModel: async function* (request, next) {
          for await (const part of next(request)) {
            yield part.type === 'text-delta' ? { ...part, text: part.text.toUpperCase() } : part
          }
        },
      },
      () => 'quiet',
    )

    const outcome = await openRuntime().run(canned.who, 'go').result
    const other = await openRuntime().run(loud.who, 'go').result

    expect([outcome.text, outcome.status, canned.model.requests.length]).toEqual(['canned', 'completed', 0])
    expect([other.text, loud.model.requests.length]).toEqual(['QUIET', 1])
  })

  test('wrappers nest in their order, and what the model throws is still the model’s to be tried again', async () => {
    const seen: string[] = []
    const wrap = (name: string) =>
      extension({
        name,
        hooks: {
          wrapModel: async function* (request, next) {
            seen.push(`${name} in`)
            yield* next(request)
            seen.push(`${name} out`)
          },
        },
      })
    const busy = Object.assign(new Error('busy'), { isRetryable: true, retryAfterMs: 1 })
    const { who } = speaker({}, [{ error: busy }, 'ok'])

    const { text } = await openRuntime().run(who.use(wrap('outer')).use(wrap('inner')), 'go').result

    expect(text).toBe('ok')
    expect(seen).toEqual(['outer in', 'inner in', 'outer in', 'inner in', 'inner out', 'outer out'])
  })

  test('who reacts to the last event reads the final result', async () => {
    const { who } = speaker({}, [{ chunks: ['a', 'b'] }])
    const runtime = openRuntime()
    const run = runtime.run(who, 'go')
    const texts: unknown[] = []
    for await (const event of run) {
      if (event.type === 'run-end')
        texts.push(localStore(runtime).node(event.outcome.answerNodeId ?? '')?.output.content)
    }

    expect(texts).toEqual(['ab'])
  })

  test('the same extension on the agent and the runtime runs once, the agent’s others before the runtime’s', async () => {
    const seen: string[] = []
    const sees = (name: string) => extension({ name, hooks: { onRequest: () => void seen.push(name) as never } })
    const both = sees('both')
    const { who } = speaker()

    await openRuntime({ extensions: [sees('runtime'), both] }).run(who.use(both).use(sees('agent')), 'go').result

    expect(seen).toEqual(['both', 'agent', 'runtime'])
  })

  test('hooks of the runtime apply to children too, hooks of an agent only to that agent', async () => {
    const seen: string[] = []
    const sees = (name: string) =>
      extension({ name, hooks: { onRequest: (_, { agent: whose }) => void seen.push(`${name}: ${whose}`) as never } })
    const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'said') })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x' } }] }, 'done']),
      subagents: { ask: child },
    }).use(sees('own'))

    await openRuntime({ extensions: [sees('all')] }).run(host, 'go').result

    expect(seen).toEqual(['own: host', 'all: host', 'all: child', 'own: host', 'all: host'])
  })
})

describe('the hook for the end', () => {
  const ends = (outcomes: string[], more: Hooks = {}, onError: 'isolate' | 'fail' = 'isolate') =>
    extension({
      name: 'ends',
      onError,
      hooks: { ...more, onFinally: ({ status }: Outcome) => outcomes.push(status) },
    })

  test.each<[string, Parameters<typeof scriptedModel>[0], Hooks, string]>([
    ['success', () => 'ok', {}, 'completed'],
    ['an error of the model', [{ error: new Error('broken') }], {}, 'failed'],
    [
      'an error of a hook',
      () => 'ok',
      {
        onRequest: () => {
          throw new Error('broken')
        },
      },
      'failed',
    ],
  ])('runs once on %s', async (_, script, more, status) => {
    const outcomes: string[] = []
    const { who } = speaker({}, script)
    const outcome = await openRuntime().run(who.use(ends(outcomes, more, 'fail')), 'go').result

    expect([outcome.status, outcomes]).toEqual([status, [status]])
  })

  test('runs once on cancel, of a run that is at work and of one that has not begun', async () => {
    const outcomes: string[] = []
    const { opened, open } = makeGate()
    const { who } = speaker({}, async () => {
      open()
      await new Promise((resolve) => setTimeout(resolve, 300))
      return 'late'
    })
    const runtime = openRuntime({ engine: { graceMs: 10 } })
    const ended = who.use(ends(outcomes))
    const run = runtime.run(ended, 'go')
    await opened
    const queued = runtime.run(ended, 'more', { conversationId: run.conversationId })
    await queued.cancel()
    await queued.result
    await run.cancel()
    await run.result
    await runtime.idle()

    expect(outcomes).toEqual(['cancelled', 'cancelled'])
  })

  test('runs once when a reader stops early', async () => {
    const outcomes: string[] = []
    const { who } = speaker({}, [{ chunks: ['a', 'b', 'c'] }])
    const runtime = openRuntime()
    const run = runtime.run(who.use(ends(outcomes)), 'go')
    for await (const event of run) if (event.type === 'text-delta') break
    await run.result
    await runtime.idle()

    expect(outcomes).toEqual(['completed'])
  })

  test('runs once where two processes share a store, whichever ends the run', async () => {
    const file = path.join(tempFolder(), 'a.db')
    const outcomes: string[] = []
    const { opened, open } = makeGate()
    const { who } = speaker({}, async () => {
      open()
      await new Promise((resolve) => setTimeout(resolve, 100))
      return 'ok'
    })
    const ended = who.use(ends(outcomes))
    const one = openRuntime({ store: sqliteStore(file), agents: [ended], engine: { graceMs: 10 } })
    const two = openRuntime({ store: sqliteStore(file), agents: [ended] })
    const run = one.run(ended, 'go')
    await opened
    const cancelled = one.run(ended, 'stopped')
    await two.resume()
    await (await two.attach(cancelled.id)).cancel()
    await Promise.all([run.result, cancelled.result])
    await new Promise((resolve) => setTimeout(resolve, 400))

    expect(outcomes.toSorted()).toEqual(['cancelled', 'completed'])
  })

  test('a host is not ended twice, though a child that outlives it still has hooks above', async () => {
    const seen: string[] = []
    const hostEnded = makeGate()
    const child = agent({
      name: 'child',
      instructions: '',
      tools: { echo },
      model: scriptedModel(async ({ messages }) => {
        await hostEnded.opened
        return messages.some(({ role }) => role === 'tool') ? 'ok' : { calls: [{ name: 'echo', input: { text: 'x' } }] }
      }),
    })
    const start = tool({
      description: '',
      input: { type: 'object' },
      execute: async () => (await runtime.spawn(child, 'go', { wake: 'passive' })).id,
    })
    const onFinally = () => {
      seen.push('end')
      hostEnded.open()
    }
    const host = agent({
      name: 'host',
      instructions: '',
      tools: { start },
      model: scriptedModel([{ calls: [{ name: 'start', input: {} }] }, 'done']),
      hooks: { onChildTool: () => seen.push('call'), onFinally },
    })
    const runtime = openRuntime({ engine: { sweepMs: 20 } })
    await runtime.run(host, 'go').result
    await runtime.idle()
    await runtime.close()

    expect(seen).toEqual(['end', 'call'])
  })

  test('a hook that throws, or takes its time, holds nobody up; close waits for it', async () => {
    const seen: string[] = []
    const { who } = speaker({
      onFinally: async () => {
        await new Promise((resolve) => setTimeout(resolve, 30))
        seen.push('ended')
        throw new Error('broken')
      },
    })
    // Without a logger of its own a runtime warns as Node does.
    const warnings: string[] = []
    const warned = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`)
    process.on('warning', warned)
    onTestFinished(() => void process.off('warning', warned))
    const runtime = openRuntime()
    const { status } = await runtime.run(who, 'go').result
    expect([status, seen]).toEqual(['completed', []])
    await runtime.close()

    expect(seen).toEqual(['ended'])
    await expect.poll(() => warnings).toEqual(['LegateWarning: The hook onFinally failed: broken'])
  })
})

describe('a hook that throws', () => {
  const broken = () => {
    throw new Error('broken')
  }
  const failing: [string, Hooks][] = [
    ['onRequest', { onRequest: broken }],
    ['onRequest', { onRequest: () => ({ path: [] }) as never }],
    ['onRequest', { onRequest: () => ({ messages: 'none' }) as never }],
    ['wrapModel', { wrapModel: broken }],
    ['wrapModel', { wrapModel: () => Promise.reject(new Error('broken')) }],
    ['onStreamStart', { onStreamStart: broken }],
    ['onStreamStart', { onStreamStart: () => 'no event' as never }],
    ['onStreamStart', { onStreamStart: () => ({ name: 'x', data: (() => 1) as never }) }],
    ['onStreamEnd', { onStreamEnd: async () => broken() }],
    ['onEvent', { onEvent: { 'text-delta': broken } }],
    ['onEvent', { onEvent: { 'text-delta': () => Promise.reject(new Error('broken')) } }],
  ]

  test.each(failing)('isolate: the run goes on, with an event (%s)', async (hook, hooks) => {
    const { who } = speaker(hooks)

    const run = openRuntime({ logger: silent }).run(who, 'go')
    const events = await eventsOf(run)

    expect((await run.result).text).toBe('ok')
    expect(only(events, 'extension-error')).toMatchObject([{ extension: 'hooks', hook, message: expect.any(String) }])
  })

  test.each(failing)('fail: the run fails with the extension’s name (%s)', async (hook, hooks) => {
    const { who } = speaker()
    const strict = who.use(extension({ name: 'strict', onError: 'fail', hooks }))

    const outcome = await openRuntime({ logger: silent }).run(strict, 'go').result

    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'extension' } })
    expect(outcome.error?.message).toMatch(new RegExp(`^The extension "strict" failed in ${hook}: `))
  })

  test('a wrapper that fails in the middle of an answer fails the call: half of it has been seen', async () => {
    const { who } = speaker({
      wrapModel: async function* () {
        yield { type: 'text-delta', text: 'half' }
        throw new Error('broken')
      },
    })

    const outcome = await openRuntime({ logger: silent }).run(who, 'go').result

    expect(outcome).toMatchObject({ status: 'failed', text: 'half', error: { code: 'extension' } })
  })

  test('hooks that only look at events never change a run, not even when they throw at each other’s errors', async () => {
    const seen: string[] = []
    const looks = (name: string) =>
      extension({
        name,
        hooks: {
          onEvent: {
            '*': ({ type }) => {
              if (name === 'a') seen.push(type)
              if (type !== 'text-delta') throw new Error(`no ${type}`)
            },
          },
        },
      })
    const { who } = speaker({}, [...callsEcho])
    const runtime = openRuntime({ logger: silent })

    const outcome = await runtime.run(who.use(looks('a')).use(looks('b')), 'go').result
    await runtime.idle()

    expect(outcome.text).toBe('done')
    expect(seen).toEqual(
      expect.arrayContaining(['run-start', 'tool-call', 'tool-result', 'run-end', 'extension-error']),
    )
    expect(seen.length).toBeLessThan(60)
  })

  test('a state that cannot be made counts as a failure of the hook', async () => {
    const { who } = speaker()
    const broke = extension({ name: 'broke', onError: 'fail', state: broken, hooks: { onRequest: () => undefined } })

    expect((await openRuntime({ logger: silent }).run(who.use(broke), 'go').result).error?.code).toBe('extension')
  })
})

describe.each(lasting)('hooks before a tool, on %s', (_, create) => {
  const opened = (): Rows => {
    const rows = create()
    onTestFinished(() => rows.drop())
    return rows
  }

  test('before it: answers without running it, or refuses; of several values the last stands', async () => {
    const answered = speaker({ beforeTool: () => ({ answer: { from: 'cache' } }) }, [...callsEcho])
    const rewritten = speaker(
      {
        beforeTool: function* () {
          yield { input: { text: 'one' } }
          yield { input: { text: 'two' } }
        },
      },
      [...callsEcho],
    )
    const refused = speaker({ beforeTool: async () => [{ input: { text: 'x' } }, { refuse: 'no' }] }, [...callsEcho])
    for (const { who } of [answered, rewritten, refused]) {
      await openRuntime({ store: opened().open() }).run(who, 'go').result
    }

    const results = [answered, rewritten, refused].map(({ model }) => resultIn(model.requests[1]))
    expect(results).toEqual(['{"from":"cache"}', 'heard two', 'Refused: no'])
  })

  test.each<[unknown, string]>([
    [{ refused: 'no' }, '{ refused }'],
    [{ allow: false }, '{ allow }'],
    [{ deny: true }, '{ deny }'],
    [{ input: { text: 'x' }, refuse: 'no' }, '{ input, refuse }'],
    [{}, '{}'],
    [false, 'false'],
    ['no', 'a text'],
  ])('a hook before the call that returns %j refuses the call', async (said, shown) => {
    const { who, model } = speaker({ beforeTool: () => said as never }, [...callsEcho])
    const rows = opened()
    const runtime = createRuntime({ store: rows.open(), logger: silent })
    const run = runtime.run(who, 'go')
    await run.result
    await runtime.close()

    const words = `Refused: the hook before it failed: beforeTool gives { input }, { answer }, { refuse } or nothing, not ${shown}`
    expect(resultIn(model.requests[1])).toBe(words)
    const [task] = tasksOf(localStore(openRuntime({ store: rows.open() })), run.id)
    expect(task?.output?.content).toBe(words)
  })
})

describe('hooks around a tool', () => {
  const long = Array.from({ length: 20_000 }, (_, at) => `line ${at}`)

  test.each<[string, unknown, (result: ToolResult) => unknown]>([
    ['a text', long.join('\n'), ({ content }) => content],
    ['a value', { long }, ({ value }) => value],
    ['a failure', new ErrorResult(long.join('\n')), ({ content }) => content],
  ])('after it: %s that is too long to show is seen whole', async (_, gives, read) => {
    const seen: unknown[] = []
    const big = tool({ description: 'Big', input: { type: 'object' }, effect: 'pure', execute: () => gives })
    const model = scriptedModel([{ calls: [{ name: 'big', input: {} }] }, 'done'])
    const hooks: Hooks = { afterTool: (_call, result) => void seen.push(read(result)) }
    await openRuntime().run(agent({ name: 'who', instructions: '', model, tools: { big }, hooks }), 'go').result

    expect(seen).toEqual([gives instanceof ErrorResult ? gives.content : gives])
    expect(resultIn(model.requests[1])).toMatch(/\[cut: 65\d+ of \d+ bytes shown/)
  })

  test.each(lasting)(
    'after it: what replaces a long result is paged like any other, also after a restart, on %s',
    async (_, create) => {
      const rows = create()
      onTestFinished(() => rows.drop())
      const entered = makeGate()
      let runs = 0
      const big = tool({
        description: 'Big',
        input: { type: 'object' },
        execute: () => {
          runs++
          return long.join('\n')
        },
      })
      const hooks: Hooks = {
        afterTool: ({ tool: name }, { content }) =>
          name === 'big' ? { result: String(content).replaceAll('line', 'LINE') } : undefined,
      }
      const reader = (isLeft: boolean) => {
        const model = scriptedModel(({ messages }) => {
          const text = messages.map(({ content }) => String(content)).join('\n')
          const [, id] = /read_result\(\{ "id": "(.*?)"/.exec(text) ?? []
          const [, offset] = /(?:"offset": |offset )(\d+)[^\d]*$/.exec(text) ?? []
          if (id === undefined) return { calls: [{ name: 'big', input: {} }] }
          if (isLeft) {
            entered.open()
            return makeGate().opened.then(() => 'never')
          }
          return offset === undefined
            ? 'done'
            : { calls: [{ name: 'read_result', input: { id, offset: Number(offset) } }] }
        })
        return { model, who: agent({ name: 'who', instructions: '', model, tools: { big }, hooks }) }
      }
      const first = createRuntime({ store: rows.open(), engine: { graceMs: 20 } })
      const run = first.run(reader(true).who, 'go')
      await entered.opened
      await first.close()
      const { model, who } = reader(false)
      const second = createRuntime({ store: rows.open(), agents: [who] })
      await second.resume()
      await (await second.attach(run.id)).result
      await second.close()

      const read = resultsIn(model.requests.at(-1)).map(({ content }) => String(content))
      expect(runs).toBe(1)
      expect(read.length).toBeGreaterThan(2)
      expect(read.join('\n')).toContain('LINE 0')
      expect(read.join('\n')).toContain('LINE 19999')
      expect(read.join('\n')).not.toContain('line')
    },
  )

  test('after it: each replaces what the one before left; failures are told, not hidden', async () => {
    const redacts = extension({
      name: 'redacts',
      hooks: { afterTool: (_, { content }) => ({ result: String(content).replace('hi', '***') }) },
    })
    const frames = extension({
      name: 'frames',
      hooks: {
        afterTool: async ({ tool: name }, { content, isError }) => ({ result: { name, content, isError } as never }),
      },
    })
    const { who, model } = speaker({}, [...callsEcho])

    await openRuntime().run(who.use(redacts).use(frames), 'go').result

    expect(JSON.parse(resultIn(model.requests[1]))).toEqual({ name: 'echo', content: 'heard ***', isError: false })
  })

  test('after it: one that must not be gone on without withholds the result', async () => {
    const breaks = (onError: 'isolate' | 'fail') =>
      extension({ name: 'breaks', onError, hooks: { afterTool: () => Promise.reject(new Error('broken')) } })
    const strict = speaker({}, [...callsEcho])
    const loose = speaker({}, [...callsEcho])
    await openRuntime({ logger: silent }).run(strict.who.use(breaks('fail')), 'go').result
    await openRuntime({ logger: silent }).run(loose.who.use(breaks('isolate')), 'go').result

    expect(resultIn(strict.model.requests[1])).toMatch(
      /^The result of echo is withheld: .*"breaks" failed in afterTool/,
    )
    expect(resultIn(loose.model.requests[1])).toBe('heard hi')
  })

  test('a delegation is seen when it starts and when it ends, with the run it belongs to, and not by afterTool', async () => {
    const seen: unknown[] = []
    const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'said') })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'x' } }] }, 'done']),
      subagents: { ask: child },
      hooks: {
        afterTool: ({ tool: name }) => void seen.push(['a tool', name]),
        onDelegationStart: ({ agent: whose, tool: name }, { runId }) => seen.push(['start', whose, name, runId]),
        onDelegationEnd: ({ status }, { runId }) => seen.push(['end', status, runId]),
      },
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    expect(seen).toEqual([
      ['start', 'child', 'ask', run.id],
      ['end', 'completed', run.id],
    ])
  })

  test('the end of a delegation has the metadata of its result: why there is no answer, and what the hooks of the child left', async () => {
    const seen: unknown[] = []
    const child = agent({
      name: 'child',
      instructions: '',
      model: scriptedModel(['said', { error: new Error('no such model') }]),
      hooks: {
        onRequest: (_request, { extra }) => {
          extra['sources'] = 2
        },
      },
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([
        { calls: [{ name: 'ask', input: { message: 'x' } }] },
        { calls: [{ name: 'ask', input: { message: 'y' } }] },
        'done',
      ]),
      subagents: { ask: child },
      hooks: { onDelegationEnd: ({ status, metadata }) => void seen.push([status, metadata]) },
    })
    const runtime = openRuntime({ logger: silent })
    const run = runtime.run(host, 'go')
    await run.result
    await runtime.idle()

    expect(seen).toMatchObject([
      ['completed', { response_metadata: { sources: 2 } }],
      ['failed', { unavailable: true, error: expect.stringContaining('no such model') }],
    ])
    expect(seen[0]).not.toHaveProperty('1.unavailable')
  })
})

test('ten runs of one agent at once keep ten states', async () => {
  const keeps = extension({
    name: 'keeps',
    state: ({ runId }) => ({ runId, inputs: [] as string[] }),
    hooks: {
      onRequest: ({ messages }, { state, extra }) => {
        state.inputs.push(String(messages.find(({ role }) => role === 'user')?.content))
        extra['kept'] = [state.runId, ...state.inputs]
      },
    },
  })
  const { who } = speaker({}, ({ messages }) =>
    messages.some(({ role }) => role === 'tool')
      ? 'done'
      : { calls: [{ name: 'echo', input: { text: 'x' } }], delayMs: 5 },
  )
  const runtime = openRuntime()
  const kept = who.use(keeps)
  const runs: Run[] = Array.from({ length: 10 }, (_, at) => runtime.run(kept, `input ${at}`))
  const outcomes = await Promise.all(runs.map(({ result }) => result))

  expect(outcomes.map(({ extra }) => extra['kept'])).toEqual(
    runs.map(({ id }, at) => [id, `input ${at}`, `input ${at}`]),
  )
})

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
