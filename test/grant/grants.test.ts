import { type AnyAgent, agent, type Grant, tool } from 'legate'
import { decide, explain, lint, narrow, readRequest, useLayer } from 'legate/grant'
import { memoryStore } from 'legate/store/memory'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultsIn, toolNamesIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const ran: string[] = []

function named(name: string) {
  return tool({
    description: name,
    input: { type: 'object' },
    effect: 'pure',
    execute: () => {
      ran.push(name)
      return `${name} ran`
    },
  })
}

const tools = { read: named('read'), write: named('write'), memory_search: named('memory_search') }

/** Calls each tool by name, whether it is shown or not, and says what came back. */
const tries: Script = ({ messages }) => {
  const results = messages.filter(({ role }) => role === 'tool')
  if (results.length > 0) return results.map(({ content }) => content).join('\n')
  return { calls: Object.keys(tools).map((name) => ({ name, input: {} })) }
}

function workerWith(grant?: Grant) {
  const model = scriptedModel(tries)
  return { model, agent: agent({ name: 'worker', instructions: '', model, tools, ...(grant ? { grant } : {}) }) }
}

function hostWith(below: AnyAgent, extra: { grant?: Grant; profile?: string; name?: string } = {}) {
  const model = scriptedModel(({ messages }) => {
    const result = messages.findLast(({ role }) => role === 'tool')
    return result === undefined ? { calls: [{ name: 'ask', input: { message: 'go' } }] } : String(result.content)
  })
  const { grant, profile, name = 'host' } = extra
  const subagents = { ask: profile === undefined ? below : { agent: below, profile } }
  return agent({ name, instructions: '', model, subagents, ...(grant ? { grant } : {}) })
}

describe('a narrow coordinator with a capable worker', () => {
  test('uses nothing itself, and its worker what it may pass on, no more', async () => {
    ran.length = 0
    const { agent: worker, model } = workerWith()
    const host = hostWith(worker, { grant: { use: ['agent:*'], delegate: ['tool:read', 'tool:write'] } })

    const { text } = await openRuntime().run(host, 'go').result

    expect(ran).toEqual(['read', 'write'])
    expect(text).toContain('memory_search is not allowed here: no rule of host allows tool:memory_search')
    expect(toolNamesIn(model.requests[0])).toEqual(['read', 'write'])
  })

  test('is refused itself what it passes on', async () => {
    ran.length = 0
    const model = scriptedModel(tries)
    const grant = { use: ['agent:*'], delegate: ['tool:read', 'tool:write'] }
    const host = agent({ name: 'host', instructions: '', model, tools, grant })

    await openRuntime().run(host, 'go').result

    expect(ran).toEqual([])
    expect(toolNamesIn(model.requests[0])).toEqual([])
    expect(resultsIn(model.requests[1]).map(({ content }) => content)).toEqual(
      Object.keys(tools).map((name) => `${name} is not allowed here: no rule of host allows tool:${name}.`),
    )
  })
})

test('an application that allows nothing has nothing done, at any depth, whatever agents say', async () => {
  ran.length = 0
  const everything = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']
  const wide = { use: everything, delegate: everything }
  const { agent: worker, model } = workerWith(wide)
  const runtime = openRuntime({ grant: { use: [] } })

  const host = hostWith(worker, { grant: wide })
  for (const who of [host, worker]) {
    const { status, error } = await runtime.run(who, 'go').result
    expect({ status, error }).toMatchObject({
      status: 'denied',
      error: { message: expect.stringMatching(/the runtime denies model:\*/) },
    })
  }
  expect(model.requests).toEqual([])
  expect(ran).toEqual([])
  const requests = [
    'tool:read',
    'agent:worker',
    'model:openai/gpt-5',
    'file.read:/workspace/a',
    'exec:git',
    'net:a.org',
  ]
  for (const request of requests) {
    expect(await runtime.explain(worker, request)).toMatchObject({ verdict: 'deny', by: 'the runtime' })
  }
})

describe('a profile', () => {
  test.each([
    ['full', ['read', 'write', 'memory_search']],
    ['minimal', []],
    ['memory_only', ['memory_search']],
    ['skills_only', []],
  ])('%s shows and runs only its tools, also those called by name', async (profile, allowed) => {
    ran.length = 0
    const { agent: worker, model } = workerWith()

    await openRuntime().run(hostWith(worker, { profile }), 'go').result

    expect(ran).toEqual(allowed)
    expect(toolNamesIn(model.requests[0])).toEqual(allowed)
  })

  test('of the application narrows too, and never widens what the host passes on', async () => {
    ran.length = 0
    const runtime = openRuntime({ profiles: { writers: { use: ['tool:write', 'tool:read'] } } })
    const { agent: worker } = workerWith()

    await runtime.run(hostWith(worker, { profile: 'writers', grant: { delegate: ['tool:read'] } }), 'go').result

    expect(ran).toEqual(['read'])
  })

  test.each(['unknown', '', 'Minimal', 'toString', '__proto__'])('%j is refused: it is not there', (profile) => {
    const runtime = openRuntime()

    expect(() => runtime.run(hostWith(workerWith().agent, { profile }), 'go')).toThrow(/There is no profile/)
  })

  test('a profile that is built in cannot be made wider', () => {
    expect(() => openRuntime({ profiles: { minimal: { use: ['tool:*'] } } })).toThrow(/"minimal" is built in/)
  })
})

describe('what was frozen', () => {
  test('is a ceiling: a wider host later does not widen a running child', async () => {
    ran.length = 0
    const store = { ...memoryStore(), close: async () => undefined }
    const { agent: worker } = workerWith()
    const first = openRuntime({ store })
    const run = first.run(hostWith(worker, { grant: { use: ['agent:*'], delegate: ['tool:read'] } }), 'go')
    await run.result
    const [link] = store.linksOf(run.id)

    const wide = openRuntime({ store, agents: [hostWith(worker), worker] })

    expect((await wide.explain(link?.id ?? '', 'tool:read')).verdict).toBe('allow')
    expect(await wide.explain(link?.id ?? '', 'tool:write')).toMatchObject({ verdict: 'deny', by: 'host' })
  })

  test('is listed once, also the layer of the runtime, for a child and a grandchild', async () => {
    const { agent: worker } = workerWith()
    const runtime = openRuntime({ grant: { use: ['tool:*', 'agent:*', 'model:*'] }, budget: { modelCalls: 100 } })
    const run = runtime.run(hostWith(hostWith(worker, { name: 'middle' })), 'go')
    await run.result
    const [child] = localStore(runtime).linksOf(run.id)
    const [grandchild] = localStore(runtime).linksOf(child?.id ?? '')

    for (const link of [child, grandchild]) {
      const { verdict, answers } = await runtime.explain(link?.id ?? '', 'tool:read')
      expect([verdict, answers.filter(({ by }) => by === 'the runtime')]).toEqual([
        'allow',
        [{ by: 'the runtime', verdict: 'allow', rule: 'tool:*' }],
      ])
    }
    const { answers } = await runtime.explain(run.id, 'tool:read')
    expect(answers.filter(({ by }) => by === 'the runtime')).toHaveLength(1)
  })

  test('is narrowed by what its host says now, at the next node', async () => {
    const store = { ...memoryStore(), close: async () => undefined }
    const { agent: worker } = workerWith()
    const first = openRuntime({ store })
    const run = first.run(hostWith(worker), 'go')
    await run.result
    const [link] = store.linksOf(run.id)

    const strict = openRuntime({ store, agents: [hostWith(worker, { grant: { deny: ['tool:write'] } }), worker] })

    expect(await strict.explain(link?.id ?? '', 'tool:write')).toMatchObject({ verdict: 'deny', by: 'host' })
    expect((await strict.explain(link?.id ?? '', 'tool:read')).verdict).toBe('allow')
  })

  test.each([
    ['another form', { v: 2, by: 'host', allow: ['tool:*'], ask: [], deny: [] }],
    ['no rules', { v: 1, by: 'host', allow: ['tool:*'], ask: [] }],
    ['a number for a rule', { v: 1, by: 'host', allow: [7], ask: [], deny: [] }],
    ['nothing', null],
  ])('and cannot be read (%s) allows nothing', async (_name, layer) => {
    ran.length = 0
    const store = memoryStore()
    const commit: typeof store.commit = (step) =>
      store.commit({
        ...step,
        conversations: step.conversations.map((row) => (row.depth === 0 ? row : { ...row, ceiling: [layer] })),
      })
    const { agent: worker } = workerWith()

    const { text } = await openRuntime({ store: { ...store, commit } }).run(hostWith(worker), 'go').result

    expect(text).toMatch(/cannot be read/)
    expect(ran).toEqual([])
  })
})

describe('explain', () => {
  test('names every layer, its rule, and who decided', () => {
    const layers = [
      useLayer('the runtime', { use: ['tool:*'] }),
      useLayer('host', { deny: ['tool:deploy*'] }),
      useLayer('worker', { use: ['tool:deploy_prod'] }),
    ]

    expect(explain(layers, 'tool:deploy_prod')).toEqual({
      verdict: 'deny',
      by: 'host',
      reason: 'host denies tool:deploy*',
      request: 'tool:deploy_prod',
      answers: [
        { by: 'the runtime', verdict: 'allow', rule: 'tool:*' },
        { by: 'host', verdict: 'deny', rule: 'tool:deploy*' },
        { by: 'worker', verdict: 'allow', rule: 'tool:deploy_prod' },
      ],
      text: [
        'tool:deploy_prod: deny, host denies tool:deploy*',
        '  the runtime: allow by tool:*',
        '  host: deny by tool:deploy*',
        '  worker: allow by tool:deploy_prod',
      ].join('\n'),
    })
  })

  test('of a run names the layers that bind it, and says what a call of it comes to', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'ok' : { calls: names.map((name) => ({ name, input: {} })) },
    )
    const without = (name: string) => names.filter((one) => one !== name).map((one) => `tool:${one}`)
    const worker = agent({
      name: 'worker',
      instructions: '',
      model,
      tools: Object.fromEntries(names.map((name) => [name, named(name)])),
      grant: { use: without('e') },
    })
    const middle = hostWith(worker, { profile: 'mine', grant: { delegate: without('c'), use: ['agent:*'] } })
    const top = agent({
      name: 'top',
      instructions: '',
      model: scriptedModel([{ calls: [{ name: 'ask', input: { message: 'go' } }] }, 'ok']),
      subagents: { ask: middle },
      grant: { delegate: [...without('b'), 'agent:*'], use: ['agent:*'] },
    })
    const runtime = openRuntime({
      grant: { use: [...without('a'), 'agent:*'] },
      profiles: { mine: { use: without('d') } },
    })
    ran.length = 0
    const run = runtime.run(top, 'go')
    await run.result
    const [child] = (await runtime.usage(run.id)).children
    const [id = ''] = child?.children.map(({ runId }) => runId) ?? []

    expect(ran).toEqual(['f'])
    const told = await Promise.all(names.map((name) => runtime.explain(id, `tool:${name}`)))
    expect(told.map(({ verdict, by }) => `${verdict} ${by}`)).toEqual([
      'deny the runtime',
      'deny top',
      'deny host',
      'deny the profile mine',
      'deny worker',
      expect.stringMatching(/^allow/),
    ])
    expect(told.map(({ reason }) => reason).slice(0, 5)).toEqual(
      resultsIn(model.requests[1])
        .slice(0, 5)
        .map(({ content }) => /not allowed here: (.*)\.$/.exec(String(content))?.[1]),
    )
    for (const { answers } of told) {
      // What the runtime said when the child started, and what it says now.
      const holders = [...new Set(answers.map(({ by }) => by))]
      expect(holders).toEqual(['the runtime', 'top', 'host', 'the profile mine', 'worker'])
    }
  })

  test('of a runtime that allows nothing says so', async () => {
    const runtime = openRuntime({ grant: { use: [] } })

    expect(await runtime.explain(workerWith().agent, 'tool:read')).toMatchObject({ verdict: 'deny', by: 'the runtime' })
    await expect(runtime.explain('no run', 'tool:read')).rejects.toThrow(/There is no run/)
  })

  test('of rules that cannot be read denies, as the decision does', () => {
    const broken = [{ by: 'broken', allow: null, ask: [], deny: [] }] as never

    expect(decide(broken, readRequest('tool:x'))).toMatchObject({
      verdict: 'deny',
      reason: expect.stringMatching(/cannot be read/),
    })
    expect(explain(broken, 'tool:x').answers).toEqual([{ by: 'broken', verdict: 'deny', rule: null }])
  })
})

test('narrow adds a layer and refuses a rule that says nothing', () => {
  const layers = narrow([useLayer('host', undefined)], 'me', { use: ['tool:read'] })

  expect(decide(layers, readRequest('tool:read')).verdict).toBe('allow')
  expect(decide(layers, readRequest('tool:write')).verdict).toBe('deny')
  expect(() => narrow(layers, 'me', { use: ['read'] })).toThrow(/must start with one of/)
})

describe('lint', () => {
  const known = ['tool:read', 'tool:write', 'agent:expert']

  test('has nothing to say to a grant that fits', () => {
    expect(lint({ use: ['tool:read', 'tool:write', 'agent:expert'] }, known)).toEqual([])
    expect(lint({}, known)).toEqual([])
  })

  test.each<[string, Grant, string, string]>([
    [
      'a rule that a deny takes whole',
      { use: ['tool:read', 'tool:*', 'agent:*'], deny: ['tool:r*'] },
      'never_matters',
      'use: tool:read',
    ],
    ['an ask that a deny takes', { ask: ['tool:write'], deny: ['tool:write'] }, 'never_matters', 'ask: tool:write'],
    ['a rule that another covers', { use: ['tool:*', 'tool:read', 'agent:*'] }, 'never_matters', 'use: tool:read'],
    ['the same rule twice', { deny: ['tool:x*', 'tool:x*'] }, 'never_matters', 'deny: tool:x*'],
    [
      'a path inside another',
      { use: ['tool:*', 'agent:*', 'file.*:/a/**', 'file.read:/a/b'] },
      'never_matters',
      'use: file.read:/a/b',
    ],
    [
      'a tool that is not there',
      { use: ['tool:*', 'agent:*'], deny: ['tool:wriet'] },
      'matches_nothing',
      'deny: tool:wriet',
    ],
    ['a tool no rule allows', { use: ['tool:read', 'agent:*'] }, 'never_allowed', 'tool:write'],
  ])('finds %s', (_name, grant, problem, subject) => {
    expect(lint(grant, known)).toContainEqual({ problem, subject, message: expect.stringContaining(subject) })
  })
})

test('a tool that is not shown is denied when it is called by its name', async () => {
  ran.length = 0
  const { agent: worker, model } = workerWith({ use: ['tool:read'] })
  await openRuntime().run(hostWith(worker), 'go').result

  expect(toolNamesIn(model.requests[0])).toEqual(['read'])
  expect(resultsIn(model.requests[1]).map(({ content, isError }) => [content, isError])).toEqual([
    ['read ran', false],
    ['write is not allowed here: no rule of worker allows tool:write.', true],
    ['memory_search is not allowed here: no rule of worker allows tool:memory_search.', true],
  ])
  expect(ran).toEqual(['read'])
})
