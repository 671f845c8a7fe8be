import { agent, ToolError, tool } from 'legate'
import { type ScriptedModel, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultIn, resultsIn, tasksOf } from '../support/reading.ts'

const anything = { type: 'object' } as const

/** An agent that calls `it` once and then answers; what its model is shown in between. */
async function callOnce(execute: () => unknown, extra: object = {}) {
  const model = scriptedModel([{ calls: [{ name: 'it', input: {} }] }, 'done'])
  const it = tool({ description: 'It', input: anything, execute, ...extra })
  const runtime = openRuntime()
  const run = runtime.run(agent({ name: 'clerk', instructions: '', model, tools: { it } }), 'go')
  const outcome = await run.result
  return { outcome, model, said: resultIn(model.requests[1]), message: resultsIn(model.requests[1])[0], runtime, run }
}

const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('no')
    },
    getPrototypeOf: () => {
      throw new Error('no')
    },
    ownKeys: () => {
      throw new Error('no')
    },
  },
)

describe('whatever a tool throws is a result the model reads, and the run goes on', () => {
  test.each<[string, unknown, string]>([
    ['an Error', new Error('disk is full'), 'Error: disk is full'],
    ['an Error with a cause', new Error('no file', { cause: new Error('ENOENT') }), 'Error: no file: ENOENT'],
    ['one of our errors', new ToolError('tool', 'no such row'), 'Error: no such row'],
    ['an AggregateError', new AggregateError([new Error('first')], 'all failed'), 'Error: all failed: first'],
    ['a string', 'plain words', 'Error: plain words'],
    ['null', null, 'Error: null'],
    ['undefined', undefined, 'Error: undefined'],
    ['a number', 42, 'Error: 42'],
    ['an object with a code', { code: 'EACCES' }, 'Error: EACCES'],
    ['an empty object', {}, 'Error: unknown error'],
    ['a hostile object', hostile, 'Error: unknown error'],
    ['an Error without a message', new Error(''), 'Error: Error'],
  ])('%s', async (_name, thrown, expected) => {
    const sync = await callOnce(() => {
      throw thrown
    })
    const late = await callOnce(() => Promise.reject(thrown))

    for (const { outcome, said, message } of [sync, late]) {
      expect(outcome).toMatchObject({ status: 'completed', text: 'done', toolCalls: 1, modelCalls: 2 })
      expect(said).toBe(expected)
      expect(message?.isError).toBe(true)
    }
  })

  test('a message of a megabyte is cut', async () => {
    const { said } = await callOnce(() => {
      throw new Error('x'.repeat(1_000_000))
    })

    expect(said.length).toBeLessThan(2_100)
  })

  test('a message with line breaks and control characters stays one line', async () => {
    const { said } = await callOnce(() => {
      throw new Error('first\nsecond\u0000\u001b[31mred')
    })

    expect(said).toMatch(/^Error: first second \[31mred$/)
  })
})

describe('a result that is not JSON says so and what to return instead', () => {
  const cycle: Record<string, unknown> = { name: 'a' }
  cycle['self'] = { deeper: cycle }

  test.each<[string, unknown, RegExp]>([
    ['a BigInt', { rows: [1n] }, /rows\[0\].*(BigInt|bigint)/],
    ['a cycle', cycle, /cycle/],
    ['a Map', { counts: new Map([['a', 1]]) }, /counts.*Object\.fromEntries/],
    ['a function', { run: () => 1 }, /run.*function/],
    ['a Promise inside', { later: Promise.resolve(1) }, /later.*await/],
    ['a class of its own', new (class Row {})(), /Row/],
    ['NaN', { ratio: Number.NaN }, /ratio/],
    ['a symbol', Symbol('x'), /symbol/i],
    ['100 levels', nested(100), /deep/],
    ['20 MB', 'x'.repeat(20_000_000), /16000000|16,000,000|bytes/],
    ['a value whose toJSON throws', { toJSON: () => fail() }, /./],
    ['a getter that throws', Object.defineProperty({}, 'x', { get: fail, enumerable: true }), /./],
    ['a hostile proxy', hostile, /./],
  ])('%s', async (_name, value, expected) => {
    const { outcome, said, message } = await callOnce(async () => value)

    expect(outcome).toMatchObject({ status: 'completed', text: 'done' })
    expect(said).toMatch(/^(The tool gave a result that is not JSON|Error): /)
    expect(said).toMatch(expected)
    expect(message?.isError).toBe(true)
  })

  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'null'],
    ['null', null, 'null'],
    ['a number', 42, '42'],
    ['text', 'as it is', 'as it is'],
    ['text that looks like JSON', '{"a":1}', '{"a":1}'],
    ['an empty text', '', ''],
    ['an object', { a: [1, { b: null }] }, '{"a":[1,{"b":null}]}'],
    ['undefined properties', { a: 1, b: undefined }, '{"a":1}'],
    ['a Date', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a __proto__ key', JSON.parse('{"__proto__":{"admin":true}}'), '{"__proto__":{"admin":true}}'],
    ['a lone surrogate', '\ud800', '\ufffd'],
  ])('but %s is a result', async (_name, value, expected) => {
    const { said, message } = await callOnce(() => value)

    expect(said).toBe(expected)
    expect(message?.isError).toBe(false)
  })
})

describe('a tool may return anything that can be awaited', () => {
  test('a thenable that is no Promise', async () => {
    const thenable = withThen({ value: (resolve: (value: string) => void) => setTimeout(resolve, 1, 'late') })

    expect((await callOnce(() => thenable)).said).toBe('late')
  })

  test('a thenable that throws', async () => {
    const thenable = withThen({ get: fail })

    expect((await callOnce(() => thenable)).said).toBe('Error: no')
  })
})

describe('a promised result', () => {
  const output = z.object({ rows: z.number().int() })

  test('a result that keeps the promise passes, as the schema makes it', async () => {
    const { said } = await callOnce(() => ({ rows: 3, internal: 'x' }), { output })

    expect(said).toBe('{"rows":3}')
  })

  test('a result that breaks it is an error the model reads', async () => {
    const { outcome, said, message } = await callOnce(() => ({ rows: 'three' }), { output })

    expect(outcome.status).toBe('completed')
    expect(said).toMatch(/not as promised: rows: /)
    expect(message?.isError).toBe(true)
  })
})

describe('a tool that is not there', () => {
  const search = tool({ description: 'Search', input: anything, execute: () => 'found' })

  test.each(['nope', 'constructor', '__proto__', 'toString', 'hasOwnProperty', ''])(
    'the name %j is answered with the names there are',
    async (name) => {
      const model = scriptedModel([{ calls: [{ name, input: {} }] }, 'done'])

      const { status } = await openRuntime().run(clerk(model, { search }), 'go').result

      expect(status).toBe('completed')
      expect(resultIn(model.requests[1])).toBe(`There is no tool ${JSON.stringify(name)}. There are: search.`)
      expect(resultsIn(model.requests[1])[0]?.isError).toBe(true)
    },
  )

  test('among 1,000, the ten most alike are named, and a name of 5,000 characters is cut', async () => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`tool_${at}`, search]))
    const long = 'x'.repeat(5_000)
    const calls = [
      { name: 'serch_files', input: {} },
      { name: long, input: {} },
    ]
    const model = scriptedModel([{ calls }, 'done'])

    await openRuntime().run(clerk(model, { ...many, search_files: search }), 'go').result

    const [near, cut] = resultsIn(model.requests[1]).map(({ content }) => String(content))
    expect(near).toMatch(
      /^There is no tool "serch_files"\. Most alike are: search_files, (tool_\d+, ){8}tool_\d+, of 1001\.$/,
    )
    expect(cut).toMatch(/^There is no tool "x{80}…"\. Most alike are: /)
    expect(cut?.length).toBeLessThan(300)
  })

  test('an agent without tools says that there are none', async () => {
    const model = scriptedModel([{ calls: [{ name: 'search', input: {} }] }, 'done'])

    await openRuntime().run(clerk(model, {}), 'go').result

    expect(resultIn(model.requests[1])).toBe('There is no tool "search". There are no tools here.')
  })

  test('a tool may be named like a property of every object', async () => {
    const model = scriptedModel([{ calls: [{ name: 'constructor', input: {} }] }, 'done'])

    await openRuntime().run(clerk(model, { constructor: search, toString: search }), 'go').result

    expect(resultIn(model.requests[1])).toBe('found')
  })
})

describe('arguments that are not JSON', () => {
  test.each<[string, string]>([
    ['cut', '{"q": "unfinis'],
    ['prose', 'search for cats'],
    ['too deep', '['.repeat(1_000)],
    ['a number beyond all', '{"q": 1e999}'],
  ])('%s are answered with what is wrong, and the tool is not run', async (_name, input) => {
    let runs = 0
    const it = tool({ description: 'It', input: anything, execute: () => ++runs })
    const model = scriptedModel([{ calls: [{ name: 'it', input }] }, 'done'])

    const { status } = await openRuntime().run(clerk(model, { it }), 'go').result

    expect(status).toBe('completed')
    expect(resultIn(model.requests[1])).toMatch(/^The arguments of it are not JSON: /)
    expect(runs).toBe(0)
  })

  test('no arguments at all are an empty object', async () => {
    const it = tool({ description: 'It', input: anything, execute: (input) => input as object })
    const model = scriptedModel([{ calls: [{ name: 'it', input: '' }] }, 'done'])

    await openRuntime().run(clerk(model, { it }), 'go').result

    expect(resultIn(model.requests[1])).toBe('{}')
  })
})

test('every failure of one message is shown in call order', async () => {
  const tools = {
    bad: tool({ description: 'Bad', input: z.object({ q: z.string() }), execute: () => 'never' }),
    slow: tool({ description: 'Slow', input: anything, execute: () => later(30, 'slow') }),
    throws: tool({ description: 'Throws', input: anything, execute: () => fail() }),
    odd: tool({ description: 'Odd', input: anything, execute: () => 1n }),
    quick: tool({ description: 'Quick', input: anything, execute: () => 'quick' }),
  }
  const names = ['slow', 'bad', 'nope', 'throws', 'odd', 'quick', 'slow']
  const model = scriptedModel([{ calls: names.map((name) => ({ id: 'same', name, input: {} })) }, 'done'])
  const runtime = openRuntime()

  const run = runtime.run(clerk(model, tools), 'go')
  const outcome = await run.result

  expect(outcome).toMatchObject({ status: 'completed', toolCalls: 7 })
  const shown = resultsIn(model.requests[1])
  expect(shown.map(({ name }) => name)).toEqual(names)
  expect(shown.map(({ isError }) => isError)).toEqual([false, true, true, true, true, false, false])
  expect(shown.map(({ content }) => String(content).split(/[ :.]/)[0])).toEqual([
    ...['slow', 'The', 'There', 'Error', 'The', 'quick', 'slow'],
  ])
  expect(tasksOf(runtime, run).every(({ state }) => state === 'finished')).toBe(true)
})

test('a tool that changes its input in place changes nothing that was recorded', async () => {
  const spoil = (input: unknown) => {
    const { list } = Object.assign(input as { list: number[] }, { q: 'changed' })
    return list.splice(0).length
  }
  const anyList = z.object({ q: z.string(), list: z.any() })
  const tools = {
    raw: tool({ description: 'Raw', input: anything, execute: spoil }),
    typed: tool({ description: 'Typed', input: anyList, execute: spoil }),
  }
  const calls = ['raw', 'typed'].map((name) => ({ id: name, name, input: { q: 'asked', list: [1, 2] } }))
  const asked = structuredClone(calls)
  const model = scriptedModel([{ calls }, 'done'])
  const runtime = openRuntime()

  const run = runtime.run(clerk(model, tools), 'go')
  await run.result

  expect(resultsIn(model.requests[1]).map(({ content }) => content)).toEqual(['2', '2'])
  expect(model.requests[1]?.messages[1]).toEqual({ role: 'assistant', content: '', calls: asked })
  expect(tasksOf(runtime, run).map(({ input }) => input.call)).toEqual(asked)
})

function clerk(model: ScriptedModel, tools: Parameters<typeof agent>[0]['tools']) {
  return agent({ name: 'clerk', instructions: '', model, tools: tools ?? {} })
}

function withThen(descriptor: PropertyDescriptor): object {
  return Object.defineProperty({}, 'then', descriptor)
}

function later<T>(ms: number, value: T): Promise<T> {
  return new Promise((resolve) => setTimeout(resolve, ms, value))
}

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let at = 0; at < levels; at++) value = [value]
  return value
}

function fail(): never {
  throw new Error('no')
}
