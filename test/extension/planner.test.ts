import path from 'node:path'
import { agent, type RunEvent, type Tools, tool } from 'legate'
import { type PlannerOptions, planner } from 'legate/hooks'
import type { ModelRequest } from 'legate/models'
import { sqliteStore } from 'legate/store/sqlite'
import { type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { makeGate } from '../support/gate.ts'
import { PROMPTLY_MS } from '../support/pace.ts'
import { eventsOf, only, openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

const calls: unknown[] = []
const weather = tool({
  description: 'The weather of a city',
  input: {
    type: 'object',
    properties: { city: { type: 'string', description: 'Which one' }, days: { type: 'integer' } },
    required: ['city'],
  },
  effect: 'pure',
  execute: (input: unknown) => {
    calls.push(input)
    return { city: (input as { city: string }).city, sky: 'grey' }
  },
} as never)

const plan = (tool_name: string, tool_kwargs: object = { city: 'Graz' }, purpose = 'see the sky') =>
  JSON.stringify({ use_tool: true, tool_command: { purpose, tool_name, tool_kwargs } })

function who(
  script: readonly ScriptedAnswer[],
  options: PlannerOptions = { strategy: 'planner' },
  tools: Tools = { weather },
) {
  calls.length = 0
  const model = scriptedModel(script)
  return { model, agent: agent({ name: 'who', instructions: 'You help.', model, tools }).use(planner(options)) }
}

function mainOf(request: ModelRequest | undefined): string {
  return String(request?.messages.at(-1)?.content)
}

function toolEvents(events: readonly RunEvent[]) {
  return only(events, 'extension').map(({ name, data }) => ({ name, ...(data as object) }))
}

describe('the tool planner', () => {
  test('no tool needed: two requests, the first with input, instruct, tools and the fixed shape', async () => {
    const { agent: helper, model } = who(['{"use_tool": false}', 'Hello.'])
    const outcome = await helper.request().input('Hi').instruct('Be kind.').start().result

    expect([outcome.text, model.requests.length, calls]).toEqual(['Hello.', 2, []])
    const [judge, answer] = model.requests.map(mainOf)
    for (const part of [
      '[TOOLS]:\n[\nname: weather\ndesc: The weather of a city',
      '"city": <str>, // Which one',
      '"days": <int> // (may be left out)',
      '[extra instruction]:\nBe kind.',
      '[INPUT]:\nHi',
      '"use_tool": <bool>',
      '"tool_kwargs": <dict>',
    ]) {
      expect(judge).toContain(part)
    }
    expect(judge).not.toContain('[INSTRUCT]:\nBe kind.')
    expect(answer).toContain('[INSTRUCT]:\nBe kind.')
    expect(answer).not.toMatch(/ACTION RESULTS|TOOLS/)
    expect(model.requests.map(({ tools }) => tools)).toEqual([[], []])
  })

  test('the call that plans is left off as soon as it has said no', async () => {
    const heard: number[] = []
    const helper = agent({
      name: 'who',
      instructions: '',
      tools: { weather },
      model: {
        id: 'scripted/endless',
        async *stream({ outputSchema }) {
          yield { type: 'text-delta', text: outputSchema === null ? 'Hello.' : '{"use_tool": false' }
          if (outputSchema === null) {
            yield {
              type: 'finish',
              reason: 'stop',
              usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
            }
            return
          }
          for (let at = 0; at < 1_000; at++) {
            heard.push(at)
            yield { type: 'text-delta', text: ', "why": "a long story"' }
          }
        },
      },
    }).use(planner({ strategy: 'planner' }))
    const outcome = await openRuntime().run(helper, 'Hi').result

    expect(outcome.text).toBe('Hello.')
    expect(heard.length).toBeLessThan(3)
    expect(outcome.usage.inputTokens).toBeGreaterThan(10)
  })

  test('a tool needed: called once; the answer is asked for with what it found, and all of it is told', async () => {
    const { agent: helper, model } = who([plan('weather', { city: 'Graz', days: 2 }), { chunks: ['It is ', 'grey.'] }])
    const runtime = openRuntime()
    const run = runtime.run(helper, 'How is Graz?')
    const events = await eventsOf(run)
    const outcome = await run.result

    expect(calls).toEqual([{ city: 'Graz', days: 2 }])
    const answer = mainOf(model.requests[1])
    expect(answer).toMatch(/\[ACTION RESULTS\]:\n"?see the sky"?:\n +"?city"?: Graz\n +"?sky"?: grey/)
    expect(answer).toMatch(/\[extra_instruction\]:\n.*where what you use of them comes from/)
    expect(answer).toContain('[INPUT]:\nHow is Graz?')
    const log = {
      tool_name: 'weather',
      kwargs: { city: 'Graz', days: 2 },
      purpose: 'see the sky',
      result: { city: 'Graz', sky: 'grey' },
      success: true,
    }
    expect(outcome.extra).toEqual({ tool_logs: [log] })
    expect(toolEvents(events)).toEqual([{ name: 'tool', ...log }])
    const types = events.map(({ type }) => type)
    expect(types.indexOf('extension')).toBeLessThan(types.indexOf('text-delta'))
    expect(only(events, 'text-delta').map(({ text }) => text)).toEqual(['It is ', 'grey.'])
    expect(
      localStore(runtime)
        .nodesOf(run.id)
        .map(({ kind, purpose }) => purpose ?? kind),
    ).toEqual(['user_message', 'plan', 'task', 'answer'])
    const talk = await runtime.conversation(run.conversationId)
    expect((await talk.transcript()).map(({ text }) => text)).toEqual(['How is Graz?', 'It is grey.'])
  })

  test('the log is told to the logger and as an event only where it is wanted', async () => {
    const logged: string[] = []
    const { agent: helper } = who([plan('weather'), 'Grey.'], { strategy: 'planner', showToolLogs: true })
    const logger = {
      debug: () => undefined,
      info: (text: string) => void logged.push(text),
      warn: () => undefined,
      error: () => undefined,
    }
    const events = await eventsOf(openRuntime({ logger }).run(helper, 'Graz?'))

    expect(toolEvents(events).map(({ name }) => name)).toEqual(['tool', 'tool_log'])
    expect(logged).toContain('weather: see the sky')
  })

  test.each<[string, string, RegExp]>([
    ['a tool that throws', plan('breaks', {}), /error: "?Error: broken/],
    ['a tool that there is not', plan('nothing', {}), /error: .*There is no tool/],
    ['arguments that are wrong', plan('weather', { city: 7 }), /error: .*arguments of weather are wrong/],
  ])('%s is told to the model, and the run goes on', async (_, judged, words) => {
    const breaks = tool({
      description: '',
      input: { type: 'object' },
      execute: () => {
        throw new Error('broken')
      },
    })
    const { agent: helper, model } = who([judged, 'So be it.'], { strategy: 'planner' }, { weather, breaks })
    const outcome = await openRuntime().run(helper, 'go').result

    expect(outcome.text).toBe('So be it.')
    expect(mainOf(model.requests[1])).toMatch(words)
    expect(outcome.extra['tool_logs']).toMatchObject([{ success: false }])
  })

  test('a tool that gives a text which begins like an error has not failed', async () => {
    const says = tool({ description: '', input: { type: 'object' }, execute: () => 'Error: 42 is the code' })
    const { agent: helper } = who([plan('says', {}), 'ok'], { strategy: 'planner' }, { says })

    expect((await openRuntime().run(helper, 'go').result).extra['tool_logs']).toMatchObject([
      { success: true, result: 'Error: 42 is the code' },
    ])
  })

  test.each([
    'I would rather not.',
    '{"use_tool": "perhaps"}',
    '{"use_tool": true}',
    '{"use_tool": true, "tool_command": {"purpose": "x"}}',
    '{"use_tool": true, "tool_command": {"tool_name": "weather", "tool_kwargs": "Graz"}}',
    '{"use_tool": tr',
    '[]',
    '',
  ])('an invalid plan (%j) is warned of and not fatal', async (text) => {
    const { agent: helper } = who([text, 'Hello.'])
    const run = openRuntime().run(helper, 'Hi')
    const events = await eventsOf(run)

    expect((await run.result).text).toBe('Hello.')
    expect(only(events, 'warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^The plan for tools was left out: /),
    ])
    expect(calls).toEqual([])
  })

  test('left-out arguments are empty, and a left-out purpose is the name of the tool', async () => {
    const now = tool({ description: '', input: { type: 'object' }, execute: () => 'noon' })
    const judged = '{"use_tool": true, "tool_command": {"tool_name": "now"}}'
    const { agent: helper } = who([judged, 'ok'], { strategy: 'planner' }, { now })

    expect((await openRuntime().run(helper, 'go').result).extra['tool_logs']).toMatchObject([
      { kwargs: {}, purpose: 'now', result: 'noon' },
    ])
  })

  test('the planner sees instructions, system, history and info', async () => {
    const { agent: helper, model } = who(['{"use_tool": false}', 'one', '{"use_tool": false}', 'two'])
    const runtime = openRuntime()
    const { conversationId } = await runtime.run(helper, 'first').result
    await helper.request().system('Be brief.').info('It rains.').input('second').start({ runtime, conversationId })
      .result

    const judge = model.requests[2]
    expect(judge?.messages.slice(0, -1).map(({ content }) => content)).toEqual([
      'You help.',
      'Be brief.',
      'first',
      'one',
    ])
    expect(mainOf(judge)).toMatch(/\[INFO\]:\nIt rains\./)
  })

  test('ten runs at once have each their own log', async () => {
    const model = scriptedModel(({ outputSchema, messages }) => {
      const city = /city (\d+)/.exec(String(messages.at(-1)?.content))?.[1] ?? ''
      return outputSchema === null ? { text: city, delayMs: 3 } : { text: plan('weather', { city }), delayMs: 3 }
    })
    const helper = agent({ name: 'who', instructions: '', model, tools: { weather } }).use(
      planner({ strategy: 'planner' }),
    )
    const runtime = openRuntime()
    const runs = Array.from({ length: 10 }, (_, at) => runtime.run(helper, `city ${at}`))
    const outcomes = await Promise.all(runs.map(({ result }) => result))

    expect(
      outcomes.map(({ extra }) => (extra['tool_logs'] as { kwargs: object }[]).map(({ kwargs }) => kwargs)),
    ).toEqual(runs.map((_, at) => [{ city: String(at) }]))
  })

  test('several rounds, until it says no; equal purposes get a number; no more rounds than allowed', async () => {
    const asks = [plan('weather', { city: 'Graz' }), plan('weather', { city: 'Linz' })]
    const two = who([...asks, '{"use_tool": false}', 'Both.'], { strategy: 'planner', maxRounds: 5 })
    const capped = who([...asks, 'Both.'], { strategy: 'planner', maxRounds: 2 })
    const outcome = await openRuntime().run(two.agent, 'Graz and Linz?').result
    const other = await openRuntime().run(capped.agent, 'Graz and Linz?').result

    expect([outcome.text, other.text]).toEqual(['Both.', 'Both.'])
    expect(mainOf(two.model.requests[1])).toMatch(/\[ACTION RESULTS\]:\n"?see the sky"?:/)
    expect(mainOf(two.model.requests[3])).toMatch(/see the sky"?:\n(.*\n)+"?see the sky \(2\)"?:\n/)
    expect(capped.model.requests).toHaveLength(3)
  })

  test('a round of several tools: at the same time, as many as allowed, each under a purpose of its own', async () => {
    let running = 0
    const seen: { readonly most: number[]; readonly cities: string[] } = { most: [], cities: [] }
    const slow = tool({
      description: 'The weather',
      input: { type: 'object', properties: { city: { type: 'string' } } },
      effect: 'pure',
      execute: async (input) => {
        seen.most.push(++running)
        seen.cities.push((input as { city: string }).city)
        await new Promise((resolve) => setTimeout(resolve, 15))
        running--
        return 'grey'
      },
    })
    const commands = (...cities: string[]) =>
      JSON.stringify({
        use_tool: true,
        tool_commands: cities.map((city) => ({ purpose: 'see', tool_name: 'weather', tool_kwargs: { city } })),
      })
    const turns = [commands('a', 'b', 'c', 'd'), commands('e'), 'All grey.']
    const options = { strategy: 'planner', maxRounds: 2, parallel: 4, concurrency: 2 } as const
    const { agent: helper, model } = who(turns, options, { weather: slow })
    const runtime = openRuntime()
    const run = runtime.run(helper, 'Everywhere?')
    const outcome = await run.result

    expect(outcome.text).toBe('All grey.')
    expect([Math.max(...seen.most), seen.cities]).toEqual([2, ['a', 'b', 'c', 'd', 'e']])
    expect(mainOf(model.requests[0])).toContain('"tool_commands": [')
    for (const name of ['see', 'see (2)', 'see (3)', 'see (4)', 'see (5)']) {
      expect(mainOf(model.requests[2])).toMatch(new RegExp(`"?${name.replace(/[()]/g, '\\$&')}"?: grey`))
    }
    expect(model.requests).toHaveLength(3)
    const tasks = localStore(runtime)
      .nodesOf(run.id)
      .filter(({ kind }) => kind === 'task')
    expect(tasks.map(({ id }) => localStore(runtime).edgesTo(id).length)).toEqual([1, 1, 1, 1, 1])
  })

  test('without a limit all run at once; more commands than allowed are told and left out', async () => {
    const meeting = makeGate()
    let there = 0
    const wait = tool({
      description: '',
      input: { type: 'object' },
      effect: 'pure',
      execute: async () => {
        if (++there === 3) meeting.open()
        await meeting.opened
        return 'met'
      },
    })
    const command = { tool_name: 'wait', tool_kwargs: {} }
    const text = JSON.stringify({
      use_tool: true,
      tool_commands: [command, command, command, command, { tool_name: 7 }],
    })
    const { agent: helper } = who([text, 'Met.'], { strategy: 'planner', parallel: 3 }, { wait })
    const run = openRuntime().run(helper, 'Meet.')
    const warned = only(await eventsOf(run), 'warning').map(({ message }) => message)

    expect([(await run.result).text, there]).toEqual(['Met.', 3])
    expect(warned).toEqual(['The plan for tools was left out: of 5 commands only 3 may be carried out at once.'])
  })

  test('all rounds together take no longer than they may: it answers with what it has', async () => {
    const stuck = tool({
      description: '',
      input: { type: 'object' },
      effect: 'pure',
      execute: (_input, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    })
    const options = { strategy: 'planner', maxRounds: 9, timeoutMs: 60 } as const
    const { agent: helper, model } = who([plan('stuck', {}), 'Nothing came.'], options, { stuck })
    const began = Date.now()
    const outcome = await openRuntime().run(helper, 'Go.').result

    expect([outcome.text, model.requests.length]).toEqual(['Nothing came.', 2])
    expect(Date.now() - began).toBeLessThan(PROMPTLY_MS)
    expect(outcome.extra['tool_logs']).toMatchObject([{ tool_name: 'stuck', success: false }])
  })

  test('a planner and an executor of one’s own', async () => {
    const rounds: unknown[] = []
    const executed: unknown[] = []
    const { agent: helper, model } = who(['It is sunny.'], {
      strategy: 'planner',
      maxRounds: 5,
      parallel: 2,
      plan: async ({ input, tools, results, round, signal }) => {
        rounds.push([input, tools.map(({ name }) => name), Object.keys(results), round, signal.aborted])
        if (round > 1) return []
        return [
          { tool_name: 'weather', tool_kwargs: { city: 'Graz' }, purpose: 'here' },
          { tool_name: 'weather', tool_kwargs: { city: 'Linz' } },
        ]
      },
      execute: ({ tool: name, input }) => {
        executed.push([name, input])
        return (input as { city: string }).city === 'Graz' ? { sky: 'sunny' } : undefined
      },
    })
    const outcome = await openRuntime().run(helper, 'Sky?').result

    expect(outcome).toMatchObject({ text: 'It is sunny.' })
    expect(model.requests).toHaveLength(1)
    expect(rounds).toEqual([
      ['Sky?', ['weather'], [], 1, false],
      ['Sky?', ['weather'], ['here', 'weather'], 2, false],
    ])
    expect(executed).toHaveLength(2)
    expect(calls).toEqual([{ city: 'Linz' }])
    expect(outcome.extra['tool_logs']).toMatchObject([
      { purpose: 'here', result: { sky: 'sunny' } },
      { purpose: 'weather', result: { sky: 'grey' } },
    ])
  })

  test('plan only: the commands are the answer, and nothing is called', async () => {
    const { agent: helper, model } = who([plan('weather')], { strategy: 'planner', planOnly: true })
    const outcome = await openRuntime().run(helper, 'Sky?').result
    const commands = [{ purpose: 'see the sky', tool_name: 'weather', tool_kwargs: { city: 'Graz' } }]

    expect(outcome).toMatchObject({ status: 'completed', toolCalls: 0, extra: { tool_commands: commands } })
    expect(JSON.parse(outcome.text)).toEqual(commands)
    expect([calls, model.requests.length]).toEqual([[], 1])
  })

  test('a planner that throws or answers nonsense is not fatal; an object that is not a planner is refused', async () => {
    for (const broken of [
      () => {
        throw new Error('no idea')
      },
      () => 'weather' as never,
      () => [{ tool_name: '' }],
    ]) {
      const { agent: helper } = who(['Anyway.'], { strategy: 'planner', plan: broken })
      const run = openRuntime().run(helper, 'Sky?')
      expect(only(await eventsOf(run), 'warning')).toHaveLength(1)
      expect((await run.result).text).toBe('Anyway.')
    }
    expect(() => planner({ plan: 'x' as never })).toThrow('plan must be a function')
    expect(() => planner({ concurrency: 0 })).toThrow('concurrency must be a whole number of at least 1')
  })

  test.each([
    ['native', undefined, 2],
    ['auto', undefined, 2],
    ['auto', false, 2],
  ] as const)('%s, of a model whose nativeTools is %s: the same events', async (strategy, nativeTools, requests) => {
    const isPlanned = nativeTools === false
    const first = isPlanned ? plan('weather') : { calls: [{ name: 'weather', input: { city: 'Graz' } }] }
    const model = scriptedModel([first, 'Grey.'])
    const helper = agent({
      name: 'who',
      instructions: '',
      model: Object.assign(model, nativeTools === undefined ? {} : { nativeTools }),
      tools: { weather },
    }).use(planner({ strategy }))
    const run = openRuntime().run(helper, 'Graz?')
    const events = await eventsOf(run)

    expect((await run.result).extra['tool_logs']).toMatchObject([{ tool_name: 'weather', result: { sky: 'grey' } }])
    expect(toolEvents(events)).toMatchObject([{ name: 'tool', tool_name: 'weather' }])
    expect(model.requests).toHaveLength(requests)
    expect(model.requests[0]?.tools.length).toBe(isPlanned ? 0 : 1)
  })

  test('a subagent may be planned like a tool; an agent without tools plans nothing', async () => {
    const child = agent({
      name: 'child',
      description: 'Knows all',
      instructions: '',
      model: scriptedModel(() => 'It is so.'),
    })
    const model = scriptedModel([plan('ask', { message: 'Is it?' }, 'know'), 'Yes.'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: child } }).use(
      planner({ strategy: 'planner' }),
    )
    const alone = who(['Hello.'], { strategy: 'planner' }, {})
    const outcome = await openRuntime().run(host, 'Well?').result

    expect([outcome.children, outcome.text]).toEqual([1, 'Yes.'])
    expect(mainOf(model.requests[1])).toMatch(/know"?: .*It is so\./s)
    expect((await openRuntime().run(alone.agent, 'Hi').result).modelCalls).toBe(1)
  })

  test('the answer is still what the agent must answer with; the plan is not an answer', async () => {
    const model = scriptedModel([plan('weather'), '{"sky":"grey"}'])
    const typed = agent({
      name: 'typed',
      instructions: '',
      model,
      tools: { weather },
      output: { type: 'object', properties: { sky: { type: 'string' } }, required: ['sky'] },
    }).use(planner({ strategy: 'planner' }))
    const broken = who([plan('weather'), { error: new Error('gone') }])

    expect((await openRuntime().run(typed, 'Graz?').result).output).toEqual({ sky: 'grey' })
    expect(await openRuntime().run(broken.agent, 'Graz?').result).toMatchObject({ status: 'failed', text: '' })
  })

  test('within a budget: the plan is paid for like any call', async () => {
    const model = scriptedModel([plan('weather'), 'Grey.'])
    const helper = agent({ name: 'who', instructions: '', model, tools: { weather }, budget: { tokens: 50_000 } }).use(
      planner({ strategy: 'planner' }),
    )
    const outcome = await openRuntime().run(helper, 'Graz?').result

    expect(outcome).toMatchObject({ status: 'completed', text: 'Grey.', modelCalls: 2 })
  })

  test.each<[string, object, RegExp]>([
    ['a grant', { grant: { deny: ['tool:weather'] } }, /not allowed here: who denies tool:weather/],
    ['a hook', { hooks: { beforeTool: () => ({ refuse: 'not today' }) } }, /Refused: not today/],
    ['a limit of tool calls', { budget: { toolCalls: 0 } }, /Graz/],
  ])('%s binds a planned call like any other', async (_, parts, told) => {
    calls.length = 0
    const model = scriptedModel(() => (model.requests.length === 1 ? plan('weather') : 'So be it.'))
    const helper = agent({ name: 'who', instructions: '', model, tools: { weather, other: weather }, ...parts })
    const outcome = await openRuntime().run(helper.use(planner({ strategy: 'planner' })), 'Graz?').result

    expect(calls).toEqual([])
    expect(outcome.text).toBe('So be it.')
    expect(model.requests.map(mainOf).join('\n')).toMatch(told)
  })

  test('an approval binds a planned call like any other', async () => {
    const { agent: helper } = who([plan('weather'), 'So be it.'], { strategy: 'planner' }, { weather })
    const runtime = openRuntime()
    const run = runtime.run(helper, 'Graz?', { grant: { ask: ['tool:weather'] } })
    for await (const { type, nodeId } of run) {
      if (type !== 'approval-request' || nodeId === null) continue
      expect(calls).toEqual([])
      await runtime.answer(nodeId, { allow: true })
    }

    expect((await run.result).text).toBe('So be it.')
    expect(calls).toHaveLength(1)
  })

  test('I4: after a crash behind the tool, neither the plan nor the tool is made again', async () => {
    const file = path.join(tempFolder(), 'a.db')
    const { opened, open } = makeGate()
    const build = (script: Parameters<typeof scriptedModel>[0]) => {
      const model = scriptedModel(script)
      return {
        model,
        agent: agent({ name: 'who', instructions: '', model, tools: { weather } }).use(
          planner({ strategy: 'planner' }),
        ),
      }
    }
    calls.length = 0
    const first = build(async (_, call) => {
      if (call === 0) return plan('weather')
      open(undefined)
      return new Promise<never>(() => undefined)
    })
    const one = openRuntime({ store: sqliteStore(file), engine: { graceMs: 0 } })
    const run = one.run(first.agent, 'Graz?')
    run.result.catch(() => undefined)
    await opened
    await one.close()
    const second = build(['Grey.'])
    const two = openRuntime({ store: sqliteStore(file), agents: [second.agent] })
    await two.resume()
    const outcome = await (await two.attach(run.id)).result

    expect([outcome.text, calls.length, second.model.requests.length]).toEqual(['Grey.', 1, 1])
    expect(mainOf(second.model.requests[0])).toMatch(/see the sky/)
    expect(outcome.extra['tool_logs']).toHaveLength(1)
  })

  test.each<[object, RegExp]>([
    [{ strategy: 'magic' }, /strategy must be one of "auto", "native", "planner"/],
    [{ maxRounds: 0 }, /maxRounds/],
  ])('what would never work is refused: %j', (options, message) => {
    expect(() => planner(options)).toThrow(message)
  })

  test('on a runtime it is for all agents', async () => {
    const model = scriptedModel(['{"use_tool": false}', 'Hello.'])
    const plain = agent({ name: 'plain', instructions: '', model, tools: { weather } })
    const runtime = openRuntime({ extensions: [planner({ strategy: 'planner' })] })

    expect((await runtime.run(plain, 'Hi').result).modelCalls).toBe(2)
  })
})
