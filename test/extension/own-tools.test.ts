import path from 'node:path'
import { agent, auto, tool } from 'legate'
import { registerTool, toolFunc, useMcp, useTools } from 'legate/compat'
import { planner } from 'legate/hooks'
import { scriptedModel } from 'legate/testing'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultIn, resultsIn, toolNamesIn } from '../support/reading.ts'
import { MAY_START, serverFile } from '../tools/mcp/support.ts'

const calling = (name: string, input: object = {}) =>
  scriptedModel([{ calls: [{ name, input: input as never }] }, 'done'])
const says = (text: string) => tool({ description: text, input: { type: 'object' }, execute: () => text })

describe('tools of an agent', () => {
  test('a tool that is registered is usable at once, by this agent and by no other', async () => {
    const model = calling('look')
    const bare = agent({ name: 'who', instructions: '', model })
    const other = agent({ name: 'who', instructions: '', model: scriptedModel(() => 'x') })
    const looking = registerTool(bare, 'look', {
      description: 'Looks',
      input: z.object({}),
      execute: () => 'seen',
    })
    await openRuntime().run(looking, 'go').result

    expect(toolNamesIn(model.requests[0])).toEqual(['look'])
    expect(resultIn(model.requests[1])).toBe('seen')
    expect([bare, other].map(({ tools }) => [...tools.keys()])).toEqual([[], []])
  })

  test('two agents, each with a tool of one name, call each its own', async () => {
    const one = calling('helper')
    const two = calling('helper')
    const base = (model: typeof one) => agent({ name: 'same', instructions: '', model })
    const runtime = openRuntime()
    await Promise.all([
      runtime.run(registerTool(base(one), 'helper', says('one')), 'go').result,
      runtime.run(registerTool(base(two), 'helper', says('two')), 'go').result,
    ])

    expect([one, two].map(({ requests }) => resultIn(requests[1]))).toEqual(['one', 'two'])
  })

  test('use by name, by object, by list; a name that there is not is refused at once', () => {
    const count = auto({
      name: 'count',
      description: 'Counts',
      input: z.object({ text: z.string() }),
      output: z.number(),
    })
    const who = registerTool(agent({ name: 'who', instructions: '' }), 'one', says('1'))
    const all = useTools(useTools(useTools(who, 'one'), { two: says('2') }), [{ three: says('3') }, 'two', count])

    expect([...all.tools.keys(), ...all.subagents.keys()]).toEqual(['one', 'two', 'three', 'count'])
    expect(() => useTools(who, 'six')).toThrow(/there is no tool "six". It has: one/)
    expect(() => useTools(who, ['one', 'six'])).toThrow(/there is no tool "six"/)
    expect(() => useTools(who, { one: says('other') })).toThrow(/has a tool "one" already/)
    expect(() => useTools(who, () => 1)).toThrow(/the function has no name/)
    expect(() => registerTool(who, 'no name', says('x'))).toThrow(/is not a name for a tool/)
  })

  test('tools are shown in the order they were registered', async () => {
    const model = scriptedModel(() => 'ok')
    const names = ['zeta', 'alpha', 'mid', 'beta']
    const who = names.reduce(
      (made, name) => registerTool(made, name, says(name)),
      agent({ name: 'who', instructions: '', model }),
    )
    await openRuntime().run(who, 'go').result

    expect(toolNamesIn(model.requests[0])).toEqual(names)
  })

  test('a function becomes a tool under its name; it has signal, run and progress, which is seen in the stream', async () => {
    const model = calling('double', { n: 4 })
    async function double({ n }: { n: number }, context: { progress(text: string): void; signal: AbortSignal }) {
      context.progress(`doubling ${n}`)
      return context.signal.aborted ? 0 : n * 2
    }
    const who = toolFunc(agent({ name: 'who', instructions: '', model }), double, {
      description: 'Doubles',
      input: z.object({ n: z.number() }),
      effect: 'pure',
    })
    const seen: string[] = []
    for await (const event of openRuntime().run(who, 'go')) if (event.type === 'progress') seen.push(event.message)

    expect([resultIn(model.requests[1]), seen]).toEqual(['8', ['doubling 4']])
    expect(() => toolFunc(who, () => 1, { description: '', input: z.object({}) })).toThrow(/has no name/)
    expect([...toolFunc(who, () => 1, { name: 'one', description: '', input: z.object({}) }).tools.keys()]).toEqual([
      'double',
      'one',
    ])
  })

  test('tools of an MCP server are for this agent only, and are called; planned ones too', async () => {
    const server = { command: 'node', args: [serverFile('everything'), 'stdio'] }
    const echo = (script: Parameters<typeof scriptedModel>[0]) => {
      const model = scriptedModel(script)
      const bare = agent({ name: 'who', instructions: '', model, grant: MAY_START })
      return { model, bare, who: useMcp(bare, { mcpServers: { all: server } }) }
    }
    const native = echo([{ calls: [{ name: 'all__echo', input: { message: 'hi' } }] }, 'done'])
    const command = { purpose: 'hear', tool_name: 'all__echo', tool_kwargs: { message: 'ho' } }
    const planned = echo([JSON.stringify({ use_tool: true, tool_command: command }), 'done'])
    const runtime = openRuntime()
    await runtime.run(native.who, 'go').result
    const outcome = await runtime.run(planned.who.use(planner({ strategy: 'planner' })), 'go').result

    expect(resultIn(native.model.requests[1])).toBe('Echo: hi')
    expect(outcome.extra['tool_logs']).toMatchObject([{ tool_name: 'all__echo', result: 'Echo: ho' }])
    expect(native.bare.sources.size).toBe(0)
    expect(() => useMcp(native.who, { all: server })).toThrow(/has a source "all" already/)
    expect(() => useMcp(native.who, {})).toThrow(/name a server/)
  })

  test('a bare function is a tool: its parameters are what it takes, by their names', async () => {
    function price(dish: string, pieces = 2) {
      return `${pieces} x ${dish}`
    }
    const tell = ({ dish }: { readonly dish: string }) => `One ${dish}`
    const model = scriptedModel([
      { calls: [{ name: 'price', input: { dish: 'soup' } }] },
      { calls: [{ name: 'tell', input: { dish: 'tea' } }] },
      { calls: [{ name: 'price', input: { pieces: 3 } }] },
      'done',
    ])
    const bare = agent({ name: 'who', instructions: '', model })
    const who = useTools(toolFunc(bare, price), tell)
    await openRuntime().run(who, 'go').result

    expect(resultsIn(model.requests[3]).map(({ content }) => content)).toEqual([
      '2 x soup',
      'One tea',
      expect.stringContaining('dish'),
    ])
    expect(model.requests[0]?.tools[0]).toMatchObject({
      name: 'price',
      description: 'price',
      inputSchema: { properties: { dish: {}, pieces: { default: 2 } }, required: ['dish'] },
    })
    expect(() => toolFunc(bare, Math.max)).toThrow(
      /toolFunc: say what it takes: toolFunc\(agent, fn, \{ description, input \}\)/,
    )
  })

  test('what a tool takes may be a shape: types, and types with a description', async () => {
    const model = calling('weather', { city: 'Graz', days: 2 })
    const bare = agent({ name: 'who', instructions: '', model })
    const weather = {
      desc: 'Tells the weather.',
      kwargs: { city: ['str', 'Which city'], days: 'int' },
      func: ({ city, days }: { readonly city: string; readonly days: number }) => `${city}: ${days} days of sun`,
      returns: 'str',
    }
    await openRuntime().run(registerTool(bare, 'weather', weather), 'go').result

    expect(resultIn(model.requests[1])).toBe('Graz: 2 days of sun')
    expect(model.requests[0]?.tools).toMatchObject([
      {
        name: 'weather',
        description: 'Tells the weather.',
        inputSchema: {
          properties: { city: { type: 'string', description: 'Which city' }, days: { type: 'integer' } },
          required: ['city', 'days'],
        },
      },
    ])
    expect([...registerTool(bare, { name: 'sky', ...weather }).tools.keys()]).toEqual(['sky'])
    expect(() => registerTool(bare, 'x', { ...weather, kwarg: {} } as never)).toThrow(/Did you mean "kwargs"/)
    expect(() => registerTool(bare, 'x', undefined as never)).toThrow(/give it a name and a tool/)
  })

  test('an MCP server is named by its address, by its script, or not at all', async () => {
    const script = path.join(import.meta.dirname, '../tools/mcp/programs/server.mjs')
    const bare = agent({ name: 'who', instructions: '', grant: MAY_START })
    const about = (made: typeof bare) => Object.fromEntries([...made.sources].map(([name, one]) => [name, one.about]))

    expect(about(useMcp(bare, 'https://mcp.example.com/v1'))).toMatchObject({
      mcp_example_com: { mcp: 'https://mcp.example.com/v1' },
    })
    expect(about(useMcp(bare, 'tools/weather-now.py'))).toMatchObject({
      'weather-now': { mcp: 'python3 tools/weather-now.py' },
    })
    expect(about(useMcp(bare, 'server.js'))).toMatchObject({ server: { mcp: 'node server.js' } })
    expect(about(useMcp(bare, { command: 'uvx', args: ['x'] }))).toMatchObject({ uvx: { mcp: 'uvx x' } })
    for (const odd of ['server', 'ftp://x', 7, null]) {
      expect(() => useMcp(bare, odd as never)).toThrow(/is no server\. Give \{ github: .*'https:/)
    }

    const model = scriptedModel(() => 'done')
    const who = useMcp(agent({ name: 'who', instructions: '', model, grant: MAY_START }), script)
    const { status } = await openRuntime().run(who, 'go').result
    expect([status, toolNamesIn(model.requests[0]).length > 0]).toEqual(['completed', true])
  })

  test('methods of extensions stay with an agent that gets more tools', async () => {
    const who = registerTool(
      agent({ name: 'who', instructions: '', model: scriptedModel(() => 'ok') }).use({
        name: 'asks',
        methods: (made) => ({ tools_of: () => [...made.tools.keys()] }),
      }),
      'one',
      says('1'),
    )

    expect(who.tools_of()).toEqual(['one'])
  })
})

describe('functions that a model implements', () => {
  const Sum = z.object({ formula: z.string(), precision: z.number().default(2) })

  test('the input has all arguments by name, the description is the instruction, the value comes back itself', async () => {
    const model = scriptedModel(() => '7')
    const calc = auto({ name: 'calc', description: 'Works out a formula.', input: Sum, output: z.number(), model })
    const value = await calc({ formula: '3+4' })

    expectTypeOf(value).toEqualTypeOf<number>()
    expect(value).toBe(7)
    const [system, user] = model.requests[0]?.messages ?? []
    expect(String(system?.content)).toMatch(/the function "calc": Works out a formula\..*"type":"number"/s)
    expect(user?.content).toBe('{"formula":"3+4","precision":2}')
  })

  test('what cannot work fails when it is defined, a missing argument when it is called', async () => {
    const calc = auto({ description: 'x', input: Sum, output: z.number(), model: scriptedModel(() => '1') })

    // @ts-expect-error: formula is missing
    await expect(calc({})).rejects.toThrow(/formula/)
    // @ts-expect-error: words are no input
    await expect(calc('3+4')).rejects.toThrow(/input of "auto" is wrong/)
    function* generator() {}
    async function* asyncGenerator() {}
    expect(() => auto(generator as never)).toThrow(/a generator cannot be implemented by a model/)
    expect(() => auto(asyncGenerator as never)).toThrow(/a generator cannot be implemented/)
    expect(() => auto((() => 1) as never)).toThrow(/types are gone when code runs/)
    // @ts-expect-error: output is missing
    expect(() => auto({ description: 'x', input: Sum })).toThrow(/it needs an output/)
    expect(() => auto({ description: ' ', input: Sum, output: z.number() })).toThrow(/it needs a description/)
    expect(() => auto({ description: 'x', input: Sum, output: z.number(), tools: {} } as never)).toThrow(
      /has no option "tools"/,
    )
  })

  test('the agent’s tools, model and instructions are the function’s too; calls at once do not meet', async () => {
    const model = scriptedModel(({ messages }) => {
      const result = messages.find(({ role }) => role === 'tool')
      if (result !== undefined) return { text: String(result.content), delayMs: 2 }
      const { n } = JSON.parse(String(messages.at(-1)?.content)) as { n: number }
      return { calls: [{ name: 'double', input: { n } }], delayMs: 2 }
    })
    const host = toolFunc(
      agent({ name: 'host', instructions: 'You are exact.', model }),
      function double({ n }: { n: number }) {
        return n * 2
      },
      { description: '', input: z.object({ n: z.number() }), effect: 'pure' },
    )
    const twice = host.auto({
      name: 'twice',
      description: 'Doubles.',
      input: z.object({ n: z.number() }),
      output: z.number(),
    })
    const values = await Promise.all(Array.from({ length: 10 }, (_, n) => twice({ n })))

    expect(values).toEqual(Array.from({ length: 10 }, (_, n) => n * 2))
    expect(String(model.requests[0]?.messages[0]?.content)).toMatch(/^You are exact\.\n\nYou are the function "twice"/)
  })

  test('a call can be cancelled, and streamed', async () => {
    const slow = auto({
      description: 'x',
      input: z.object({}),
      output: z.object({ a: z.string(), b: z.number() }),
      model: scriptedModel((_, call) =>
        call === 0 ? { delayMs: 5_000, text: '{}' } : { chunks: ['{"a":"x",', '"b":1}'] },
      ),
    })
    const controller = new AbortController()
    const pending = slow({}, { abortSignal: controller.signal })
    setTimeout(() => controller.abort(), 20)
    await expect(pending).rejects.toMatchObject({ outcome: { status: 'cancelled' } })
    const run = slow.stream({})

    expect(await run.field('a')).toBe('x')
    expect((await run.result).output).toEqual({ a: 'x', b: 1 })
  })

  test('the same function is a tool and a subagent, with no more code: a delegation either way', async () => {
    const inner = scriptedModel(() => '3')
    const count = auto({
      name: 'count',
      description: 'Counts words.',
      input: z.object({ text: z.string() }),
      output: z.number(),
      model: inner,
    })
    const runtime = openRuntime()
    for (const kit of [
      { tools: { count } },
      { subagents: { count } },
      { subagents: [{ agent: count, toolName: 'count' }] },
    ]) {
      const model = calling('count', { text: 'a b c' })
      const outcome = await runtime.run(agent({ name: 'host', instructions: '', model, ...kit }), 'go').result

      expect([outcome.status, outcome.children]).toEqual(['completed', 1])
      expect(resultIn(model.requests[1])).toBe('3')
      expect(model.requests[0]?.tools).toMatchObject([{ name: 'count', description: 'Counts words.' }])
    }
    expect((await runtime.run(count, { text: 'a' }).result).output).toBe(3)
  })
})
