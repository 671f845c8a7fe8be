import { agent, type Runtime, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { planner } from 'legate/hooks'
import { openSubagents } from 'legate/recipe'
import { type Script, type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { toolkit } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { localStore } from '../../support/rows.ts'
import { type Both, both, deltasOf, replayed, storyOf } from './support.ts'

const never = scriptedModel(() => {
  throw new Error('a model was called')
})

function expectSame({ first, second, runtime }: Both): void {
  expect([second.outcome.status, second.outcome.error]).toEqual([first.outcome.status, first.outcome.error])
  expect(second.outcome.text).toBe(first.outcome.text)
  expect(second.outcome.usage).toEqual(first.outcome.usage)
  expect(second.graph).toEqual(first.graph)
  expect(storyOf(second)).toEqual(storyOf(first))
  expect(deltasOf(second)).toEqual(deltasOf(first))
  runtime.assertComplete()
}

/** A host that calls what it is told to, one answer after the other. */
function caller(turns: readonly ScriptedAnswer[] | Script, extra: object = {}) {
  return agent({ name: 'host', instructions: 'You host.', model: scriptedModel(turns), ...extra })
}

const last = (request: Parameters<Script>[0]) => request.messages.at(-1)

test('a cut stream is played at once, and so is the call after it', async () => {
  const found = await both((at) => at.run(caller([{ text: 'Half', cut: true }, { chunks: ['Who', 'le.'] }]), 'go'))
  const since = performance.now()
  const runtime = replayed(found.file)
  expect((await runtime.run(caller([]), 'go').result).text).toBe('Whole.')

  expect(performance.now() - since).toBeLessThan(1_000)
  expectSame(found)
})

describe('every way to delegate', () => {
  test('messages: the session id of the recording becomes that of the replay', async () => {
    const expert = agent({
      name: 'expert',
      instructions: '',
      model: scriptedModel(({ messages }) => `Answer ${messages.filter(({ role }) => role === 'user').length}.`),
    })
    const asks: Script = (request) => {
      const results = request.messages.filter(({ role }) => role === 'tool')
      const [, session_id] = /^session_id: (\S+)/.exec(String(results[0]?.content)) ?? []
      if (results.length === 2) return `Both in ${session_id}: ${String(results[1]?.content)}`
      return {
        calls: [{ id: 'a', name: 'ask', input: session_id ? { message: 'more', session_id } : { message: 'hi' } }],
      }
    }
    const found = await both((runtime) => runtime.run(caller(asks, { subagents: { ask: expert } }), 'go'))

    expect(found.second.graph).toEqual(found.first.graph)
    expect(storyOf(found.second)).toEqual(storyOf(found.first))
    const [, session = ''] = /in (\S+):/.exec(found.second.outcome.text) ?? []
    expect(session).not.toBe(/in (\S+):/.exec(found.first.outcome.text)?.[1])
    expect(localStore(found.runtime).conversation(session)?.turnCount).toBe(2)
    expect(found.second.outcome.text).toMatch(/Answer 2\.$/)
    found.runtime.assertComplete()
  })

  test('nested children, three levels deep', async () => {
    const Input = z.object({ n: z.number() })
    const leaf = agent({ name: 'leaf', instructions: '', input: Input, model: scriptedModel(() => 'leaf') })
    const middle = (model: Script) =>
      agent({ name: 'middle', instructions: '', input: Input, subagents: { leaf }, model: scriptedModel(model) })
    const twice: Script = (request) =>
      last(request)?.role === 'tool'
        ? 'middle'
        : { calls: [1, 2].map((n) => ({ id: `l${n}`, name: 'leaf', input: { n } })) }
    const top: Script = (request) =>
      last(request)?.role === 'tool'
        ? 'top'
        : { calls: [1, 2, 3].map((n) => ({ id: `m${n}`, name: 'middle', input: { n } })) }

    expectSame(await both((runtime) => runtime.run(caller(top, { subagents: { middle: middle(twice) } }), 'go')))
  })

  test('background children that wake their host, in whatever order they ended', async () => {
    const reader = agent({
      name: 'reader',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        const asked = String(messages.at(-1)?.content)
        return { text: `read ${asked}`, delayMs: asked === 'a' ? 60 : 5 }
      }),
    })
    const heard: Script = (request) => {
      const said = String(last(request)?.content)
      if (last(request)?.role === 'tool') return 'They are at work.'
      if (said.startsWith('[background]')) return `Heard: ${said.split('\n').slice(1).length}`
      return {
        calls: ['a', 'b'].map((prompt) => ({ id: prompt, name: 'subagent_spawn', input: { name: prompt, prompt } })),
      }
    }
    const drive = async (runtime: Runtime) => {
      const run = runtime.run(caller(heard, { tools: { ...backgroundSubagents({ agent: reader }) } }), 'go')
      await run.result
      await runtime.idle()
      return run
    }
    const found = await both(drive)

    expectSame(found)
    const turns = async (runtime: Runtime, id: string) =>
      (await (await runtime.conversation(id)).recentTurns({ limitTurns: 10 })).map(({ text }) => text.slice(0, 17))
    expect(await turns(found.runtime, found.second.outcome.conversationId)).toEqual([
      'go',
      'They are at work.',
      '[background] 1 of',
      'Heard: 1',
      '[background] 1 of',
      'Heard: 1',
    ])
  })

  test('items of a plan that is being written', async () => {
    const Task = z.object({ title: z.string() })
    const worker = agent({
      name: 'worker',
      instructions: '',
      input: Task,
      model: scriptedModel(({ messages }) => ({ text: `did ${String(messages.at(-1)?.content)}`, delayMs: 5 })),
    })
    const text = '{"tasks":[{"title":"one"},{"title":"two"},{"title":"one"}],"note":"that is all"}'
    const lead = () =>
      agent({
        name: 'lead',
        instructions: '',
        output: z.object({ tasks: z.array(Task), note: z.string() }),
        eager: { 'tasks[*]': worker },
        model: {
          id: 'slow/plan',
          async *stream() {
            for (const piece of text.match(/.{1,7}/gs) ?? []) {
              await new Promise((resolve) => setTimeout(resolve, 4))
              yield { type: 'text-delta' as const, text: piece }
            }
            yield { type: 'finish' as const, reason: 'stop' as const, usage: USAGE }
          },
        },
      })

    const found = await both((runtime) => runtime.run(lead(), 'go'))

    expectSame(found)
    expect(found.second.outcome.delegations.map(({ text: said }) => said)).toEqual([
      'did {"title":"one"}',
      'did {"title":"two"}',
      'did {"title":"one"}',
    ])
  })

  test('an agent that a model describes', async () => {
    const model = scriptedModel((request) => {
      if (request.path.length > 1) return 'I have done it.'
      if (last(request)?.role === 'tool') return `It says: ${String(last(request)?.content)}`
      return { calls: [{ id: 'o', name: 'subagent', input: { instructions: 'Do it.', summary: false } }] }
    })
    const open = agent({ name: 'host', instructions: '', model, tools: { ...openSubagents() } })

    expectSame(await both((runtime) => runtime.run(open, 'go')))
  })

  test('agents that a tool starts from inside: its code does not run, they do', async () => {
    const ran: string[] = []
    const helper = agent({
      name: 'helper',
      instructions: '',
      input: z.object({ n: z.number() }),
      model: scriptedModel(({ messages }) => `helped ${String(messages.at(-1)?.content)}`),
    })
    const work = tool({
      description: 'Works.',
      input: { type: 'object' },
      execute: async (_input, { delegate }) => {
        ran.push('work')
        const first = await delegate(helper, { n: 1 })
        const others = await Promise.all([delegate(helper, { n: 2 }), delegate(helper, { n: 3 })])
        return [first, ...others].map(({ text }) => text)
      },
    })
    const turns: Script = (request) =>
      last(request)?.role === 'tool' ? 'ok' : { calls: [{ id: 'w', name: 'work', input: {} }] }
    const found = await both((runtime) => runtime.run(caller(turns, { tools: { work } }), 'go'), {
      options: { agents: [helper] },
    })

    expectSame(found)
    expect(ran).toEqual(['work'])
    expect(found.second.outcome.children).toBe(3)
  })
})

describe('agents that are code', () => {
  test('their code does not run, the agents they have started do', async () => {
    const ran: string[] = []
    const helper = agent({ name: 'helper', instructions: '', model: scriptedModel(() => 'helped') })
    const lead = agent({
      name: 'lead',
      output: z.object({ words: z.array(z.string()) }),
      reply: async function* (_message, { delegate }) {
        ran.push('lead')
        yield 'Working ...'
        const both = await Promise.all([delegate(helper, 'a'), delegate(helper, 'b')])
        return { words: both.map(({ text }) => text) }
      },
    })
    const found = await both((runtime) => runtime.run(lead, 'go'), { options: { agents: [helper] } })

    expect(found.second.outcome).toMatchObject({ text: 'Working ...', output: { words: ['helped', 'helped'] } })
    expect(found.second.outcome).toMatchObject({ children: 2, status: found.first.outcome.status })
    expect(found.second.graph).toEqual(found.first.graph)
    found.runtime.assertComplete()
    expect(ran).toEqual(['lead'])
  })
})

describe('what goes wrong goes wrong again', () => {
  test('failures that pass, cut streams and failures for good, without waiting', async () => {
    const busy = Object.assign(new Error('the provider is busy'), { statusCode: 503, retryAfterMs: 5 })
    const turns: ScriptedAnswer[] = [
      { text: 'half of ', error: busy },
      { chunks: ['a', 'b'], error: Object.assign(new Error('still busy'), { statusCode: 429, retryAfterMs: 5 }) },
      { text: 'never seen', error: new Error('the key is wrong') },
    ]
    const began = Date.now()
    expectSame(await both((runtime) => runtime.run(caller(turns), 'go')))
    expect(Date.now() - began).toBeLessThan(2_000)
  })

  test('tools that throw, give what they must not, take too long or are unknown', async () => {
    const of = (execute: () => unknown, extra: object = {}) =>
      tool({ description: '', input: { type: 'object' }, execute, ...extra } as never)
    const tools = {
      throws: of(() => {
        throw new Error('no such file')
      }),
      wrong: of(() => 7, { output: z.string() }),
      slow: of(() => new Promise((resolve) => setTimeout(resolve, 5_000).unref()), { timeoutMs: 20, effect: 'pure' }),
      unsure: of(() => new Promise((resolve) => setTimeout(resolve, 5_000).unref()), { timeoutMs: 20 }),
      big: of(() => 'x'.repeat(100_000)),
      fine: of(() => ({ made: new Date(0), list: [1, null] })),
    }
    const names = [...Object.keys(tools), 'unknown']
    const turns: Script = (request) =>
      last(request)?.role === 'tool' ? 'ok' : { calls: names.map((name) => ({ id: name, name, input: {} })) }

    expectSame(await both((runtime) => runtime.run(caller(turns, { tools }), 'go')))
  })

  test('an answer that does not fit and is asked for once more', async () => {
    const turns = ['{"n":"one"}', '{"n":1}']
    expectSame(await both((runtime) => runtime.run(caller(turns, { output: z.object({ n: z.number() }) }), 'go')))
  })

  test('a run that is cancelled in the middle of an answer', async () => {
    const slow = {
      id: 'slow/model',
      async *stream(_request: unknown, { signal }: { signal: AbortSignal }) {
        yield { type: 'text-delta' as const, text: 'I begin ' }
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    }
    const found = await both(async (runtime) => {
      const run = runtime.run(agent({ name: 'slow', instructions: '', model: slow }), 'go')
      for await (const { type } of run.events()) if (type === 'text-delta') break
      await run.cancel('enough')
      return run
    })

    expect(found.second.outcome).toMatchObject({ status: 'cancelled', text: 'I begin ' })
    expectSame(found)
  })
})

describe('what else runs goes on as it is', () => {
  test('approvals are asked for again, and an edited call is the one that was recorded', async () => {
    const pay = tool({
      description: '',
      input: z.object({ sum: z.number() }),
      execute: ({ sum }) => `paid ${sum}`,
    })
    const turns: Script = (request) =>
      last(request)?.role === 'tool'
        ? String(last(request)?.content)
        : { calls: [{ id: 'p', name: 'pay', input: { sum: 99 } }] }
    const drive = async (runtime: Runtime) => {
      const run = runtime.run(caller(turns, { tools: { pay }, grant: { ask: ['tool:pay'] } }), 'go')
      for await (const event of run.events()) {
        if (event.type === 'approval-request') break
      }
      const [asked] = await runtime.approvals()
      await runtime.answer(asked?.nodeId ?? '', { allow: true, edit: { sum: 5 } })
      return run
    }
    const found = await both(drive)

    expectSame(found)
    expect(found.second.outcome.text).toBe('paid 5')
  })

  test('a planner, its tool and its logs', async () => {
    const weather = tool({ description: 'Weather', input: { type: 'object' }, execute: () => ({ sky: 'grey' }) })
    const plan = '{"use_tool":true,"tool_command":{"purpose":"see","tool_name":"weather","tool_kwargs":{}}} and more'
    const who = caller([{ chunks: [...plan] }, 'It is grey.'], { tools: { weather } }).use(
      planner({ strategy: 'planner' }),
    )

    const found = await both((runtime) => runtime.run(who, 'How is it?'))

    expectSame(found)
    expect(found.second.outcome.extra).toEqual(found.first.outcome.extra)
  })

  test('extensions see the same and may ask twice', async () => {
    const hooks = {
      wrapModel: async function* (request: never, next: (request: never) => AsyncIterable<never>) {
        for await (const _part of next(request));
        yield* next(request)
      },
      afterTool: () => ({ result: 'cleaned' }),
    }
    const look = tool({ description: '', input: { type: 'object' }, execute: () => 'raw' })
    const turns: Script = (request) =>
      last(request)?.role === 'tool'
        ? `read ${String(last(request)?.content)}`
        : { calls: [{ id: 'l', name: 'look', input: {} }] }

    const found = await both((runtime) => runtime.run(caller(turns, { tools: { look }, hooks }), 'go'))

    expectSame(found)
    expect(found.second.outcome.text).toBe('read cleaned')
  })

  test('a hook before a tool and a budget decide again', async () => {
    const seen: string[] = []
    const look = tool({ description: '', input: { type: 'object' }, execute: () => 'seen' })
    const hooks = {
      beforeTool: ({ tool: name }: { tool: string }) => {
        seen.push(name)
        return { refuse: 'not this one' }
      },
    }
    const turns: Script = (request) =>
      request.tools.length === 0 ? 'Summed up.' : { calls: [{ id: `l${seen.length}`, name: 'look', input: {} }] }

    const found = await both((runtime) =>
      runtime.run(caller(turns, { tools: { look }, hooks, budget: { modelCalls: 2 } }), 'go'),
    )

    expectSame(found)
    expect(found.second.outcome).toMatchObject({ status: 'max_turns', text: 'Summed up.' })
    expect(seen).toEqual(['look', 'look', 'look', 'look'])
  })

  test('tool groups are really switched, and cut results really read', async () => {
    const big = tool({
      description: '',
      input: { type: 'object' },
      execute: () => `begin ${'x'.repeat(70_000)} end`,
    })
    const moves: Script = (request) => {
      const results = request.messages.filter(({ role }) => role === 'tool')
      if (results.length === 0) return { calls: [{ id: 'g', name: 'reset_equipped_tools', input: { files: true } }] }
      if (results.length === 1) return { calls: [{ id: 'b', name: 'big', input: {} }] }
      const [id = ''] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(String(results[1]?.content)) ?? []
      if (results.length === 2) return { calls: [{ id: 'r', name: 'read_result', input: { id, offset: 60_000 } }] }
      return String(results[2]?.content).slice(-3)
    }
    const kit = toolkit({
      groups: { files: { description: 'Files', active: false, tools: { big } } },
      meta: 'absolute',
    })
    const who = caller(moves, { toolkit: kit })
    const found = await both((runtime) => runtime.run(who, 'go'))

    expectSame(found)
    expect(found.second.outcome.text).toBe('end')
  })

  test('models that are named, or that nobody names, are not looked for', async () => {
    const options = { model: scriptedModel(['fine'], 'given/model') }
    const none = agent({ name: 'none', instructions: '' })
    const found = await both((runtime) => runtime.run(none, 'go'), { options, playing: {} })
    expectSame(found)
    expect(never.requests).toEqual([])
  })
})

const USAGE = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }

test('the declared subagents of code are known with it: at the top, and below a host', async () => {
  const kid = agent({ name: 'kid', description: 'k', instructions: '', model: scriptedModel(() => 'from kid') })
  const code = agent({
    name: 'code',
    description: 'c',
    subagents: { first: kid },
    reply: async (input, { delegate }) => (await delegate('first', String(input))).text,
  })
  const hosts: Script = (request) => {
    const heard = last(request)
    return heard?.role === 'tool'
      ? String(heard.content).slice(-8)
      : { calls: [{ name: 'ask', input: { message: 'do' } }] }
  }

  expectSame(await both((runtime) => runtime.run(code, 'x')))
  expectSame(await both((runtime) => runtime.run(caller(hosts, { subagents: { ask: code } }), 'go')))
})
