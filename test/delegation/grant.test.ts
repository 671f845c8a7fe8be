import { type AnyAgent, agent, DefinitionError, type Grant, tool } from 'legate'
import { type ScriptedModel, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { eventsOf, only, openRuntime, resultIn, resultsIn, tasksOf, toolNamesIn } from '../support/reading.ts'

const Input = z.object({ n: z.number() })

/** Tools that count their runs. */
function tools() {
  const runs: string[] = []
  const named = (name: string) =>
    tool({
      description: name,
      input: { type: 'object' },
      execute: () => {
        runs.push(name)
        return `${name} ran`
      },
    })
  return { runs, all: { search: named('search'), deploy: named('deploy'), read_file: named('read_file') } }
}

/** Calls every tool by name, offered or not, then answers. */
function tryingAll(...names: string[]): ScriptedModel {
  return scriptedModel((request) =>
    resultsIn(request).length === 0 ? { calls: names.map((name) => ({ name, input: {} })) } : 'done',
  )
}

const everything = ['search', 'deploy', 'read_file']

describe('an agent’s own grant', () => {
  test.each<[string, Grant | undefined, readonly string[]]>([
    ['none: everything in the toolkit', undefined, everything],
    ['an empty one: the same', {}, everything],
    ['use: only that', { use: ['tool:search'] }, ['search']],
    ['use with a star', { use: ['tool:*_file', 'tool:s*'] }, ['search', 'read_file']],
    ['use: []', { use: [] }, []],
    ['deny', { deny: ['tool:deploy'] }, ['search', 'read_file']],
    ['deny beats use', { use: ['tool:*', 'tool:deploy'], deny: ['tool:deploy'] }, ['search', 'read_file']],
    ['a delegate says nothing of its own use', { delegate: [] }, everything],
  ])('%s', async (_name, grant, allowed) => {
    const { runs, all } = tools()
    const model = tryingAll(...everything)
    const clerk = agent({ name: 'clerk', instructions: '', model, tools: all, ...(grant ? { grant } : {}) })

    const outcome = await openRuntime().run(clerk, 'go').result

    expect(outcome.status).toBe('completed')
    expect(toolNamesIn(model.requests[0])).toEqual(allowed)
    expect(runs).toEqual(allowed)
    const refused = resultsIn(model.requests[1]).filter(({ isError }) => isError)
    expect(refused.map(({ name }) => name)).toEqual(everything.filter((name) => !allowed.includes(name)))
    for (const { name, content } of refused) expect(content).toMatch(new RegExp(`^${name} is not allowed here: `))
  })

  test('a denied tool is not named to a model that asks for one that is not there', async () => {
    const { all } = tools()
    const model = tryingAll('nope')
    const clerk = agent({ name: 'clerk', instructions: '', model, tools: all, grant: { deny: ['tool:deploy'] } })

    await openRuntime().run(clerk, 'go').result

    expect(resultIn(model.requests[1])).toBe('There is no tool "nope". There are: search, read_file.')
  })

  test('the runtime’s is a layer over every agent', async () => {
    const { runs, all } = tools()
    const model = tryingAll(...everything)
    const runtime = openRuntime({ grant: { deny: ['tool:deploy'] } })

    await runtime.run(agent({ name: 'clerk', instructions: '', model, tools: all, grant: { use: ['tool:*'] } }), 'go')
      .result

    expect(runs).toEqual(['search', 'read_file'])
  })
})

describe('I1: a child can do nothing that its host may not delegate', () => {
  /** A tower of agents: the last tries all tools; each may have a grant. */
  function tower(grants: readonly (Grant | undefined)[], all: ReturnType<typeof tools>['all']) {
    const leafModel = tryingAll(...everything)
    let below: AnyAgent | undefined
    for (let level = grants.length - 1; level >= 0; level--) {
      const isLeaf = below === undefined
      const grant = grants[level]
      const model = isLeaf
        ? leafModel
        : scriptedModel((request) =>
            resultsIn(request).length === 0 ? { calls: [{ name: 'ask', input: { n: 1 } }] } : 'done',
          )
      below = agent({
        name: `level${level}`,
        instructions: '',
        model,
        ...(level === 0 ? {} : { input: Input }),
        ...(grant ? { grant } : {}),
        ...(isLeaf ? { tools: all } : { subagents: { ask: below as AnyAgent } }),
      })
    }
    return { root: below as AnyAgent, leafModel }
  }

  test.each<[string, (Grant | undefined)[], readonly string[]]>([
    ['plain host, plain child', [undefined, undefined], everything],
    ['deny on the host', [{ deny: ['tool:deploy'] }, undefined], ['search', 'read_file']],
    ['deny on the host, allow on the child', [{ deny: ['tool:deploy'] }, { use: ['tool:*'] }], ['search', 'read_file']],
    ['delegate on the host', [{ delegate: ['tool:search'] }, { use: ['tool:*'] }], ['search']],
    ['use on the host is what it passes on', [{ use: ['agent:*', 'tool:search'] }, undefined], ['search']],
    ['delegate: []', [{ delegate: [] }, undefined], []],
    ['both narrow', [{ delegate: ['tool:s*', 'tool:d*'] }, { use: ['tool:d*', 'tool:r*'] }], ['deploy']],
    ['deny at depth 3', [{ deny: ['tool:deploy'] }, undefined, undefined, undefined], ['search', 'read_file']],
    ['deny in the middle', [undefined, undefined, { deny: ['tool:deploy'] }, undefined], ['search', 'read_file']],
    ['a little at each level', [{ deny: ['tool:deploy'] }, { deny: ['tool:search'] }, undefined], ['read_file']],
    [
      'a grandchild cannot regain',
      [{ delegate: ['agent:*', 'tool:search'] }, { delegate: ['agent:*', 'tool:*'] }, { use: ['tool:*'] }],
      ['search'],
    ],
  ])('%s', async (_name, grants, allowed) => {
    const { runs, all } = tools()
    const { root, leafModel } = tower(grants, all)

    const outcome = await openRuntime().run(root, 'go' as never).result

    expect(outcome.status).toBe('completed')
    expect(toolNamesIn(leafModel.requests[0])).toEqual(allowed)
    expect(runs).toEqual(allowed)
  })

  test('a session that goes on is bound as before', async () => {
    const { runs, all } = tools()
    const expertModel = scriptedModel((request) => {
      const last = request.messages.at(-1)
      return last?.role === 'tool' ? 'done' : { calls: [{ name: 'deploy', input: {} }] }
    })
    const expert = agent({ name: 'expert', instructions: '', model: expertModel, tools: all })
    const model = scriptedModel((request, call) => {
      const session = /^session_id: (\S+)/.exec(String(resultsIn(request).at(-1)?.content))?.[1]
      if (call > 1) return 'done'
      return { calls: [{ name: 'ask', input: { message: 'go', ...(session ? { session_id: session } : {}) } }] }
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: expert },
      grant: { deny: ['tool:deploy'] },
    })

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 2 })
    expect(expertModel.requests).toHaveLength(4)
    expect(runs).toEqual([])
  })

  test('an agent that may not be used is not offered, and a call by its name is refused', async () => {
    const childModel = scriptedModel([])
    const expert = agent({ name: 'expert', instructions: '', model: childModel, input: Input })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { n: 1 } }] }, 'done'])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: expert },
      grant: { use: ['tool:*'] },
    })

    await openRuntime().run(host, 'go').result

    expect(toolNamesIn(model.requests[0])).toEqual([])
    expect(resultIn(model.requests[1])).toBe(
      'Delegation skipped: subagent unavailable. no rule of host allows agent:expert',
    )
    expect(childModel.requests).toHaveLength(0)
  })
})

describe('rules for models', () => {
  const call = { calls: [{ name: 'ask', input: { n: 1 } }] }

  test('deny the agent’s own: the run ends denied and nothing is called', async () => {
    const model = scriptedModel([], 'costly/big')

    const outcome = await openRuntime().run(
      agent({ name: 'clerk', instructions: '', model, grant: { deny: ['model:costly/*'] } }),
      'go',
    ).result

    expect(outcome).toMatchObject({
      status: 'denied',
      error: { code: 'denied', message: 'The model costly/big is not allowed here: clerk denies model:costly/*.' },
    })
    expect(model.requests).toHaveLength(0)
  })

  test.each<[string, Grant, boolean]>([
    ['without a model rule nothing is said of models', { use: ['tool:*', 'agent:*'], delegate: ['tool:*'] }, true],
    ['an allow for others denies the rest', { delegate: ['tool:*', 'model:cheap/*'] }, false],
    ['an allow that matches', { delegate: ['tool:*', 'model:*/big'] }, true],
    ['a deny', { deny: ['model:costly/**'] }, false],
  ])('of the host bind the child: %s', async (_name, grant, isAllowed) => {
    const childModel = scriptedModel(() => 'ok', 'costly/big')
    const expert = agent({ name: 'expert', instructions: '', model: childModel, input: Input })
    const model = scriptedModel([call, 'done'], 'cheap/small')

    await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert }, grant }), 'go')
      .result

    expect(childModel.requests).toHaveLength(isAllowed ? 1 : 0)
    expect(resultIn(model.requests[1])).toMatch(isAllowed ? /^ok$/ : /^Delegation skipped: .*costly\/big/)
  })
})

describe('a call that must be asked for', () => {
  test('waits as a row, runs when it is allowed, and its siblings do not wait for it', async () => {
    const { runs, all } = tools()
    const model = tryingAll('deploy', 'search')
    const runtime = openRuntime()
    const run = runtime.run(
      agent({ name: 'clerk', instructions: '', model, tools: all, grant: { ask: ['tool:deploy'] } }),
      'go',
    )
    let asked = ''
    for await (const event of run) {
      if (event.type === 'approval-request') asked = event.nodeId ?? ''
      if (event.type === 'tool-result' && event.tool === 'search') break
    }

    expect(runs).toEqual(['search'])
    expect(tasksOf(runtime, run)[0]).toMatchObject({ id: asked, state: 'awaiting_approval' })
    await runtime.answer(asked, { allow: true, by: 'ann' })

    expect((await run.result).status).toBe('completed')
    expect(runs).toEqual(['search', 'deploy'])
    expect(toolNamesIn(model.requests[0])).toContain('deploy')
  })

  test('is denied with the reason, and the run goes on', async () => {
    const { runs, all } = tools()
    const model = tryingAll('deploy')
    const runtime = openRuntime()
    const run = runtime.run(
      agent({ name: 'clerk', instructions: '', model, tools: all, grant: { ask: ['tool:deploy'] } }),
      'go',
    )
    for await (const event of run) {
      if (event.type !== 'approval-request') continue
      await runtime.answer(event.nodeId ?? '', { allow: false, reason: 'Not on a Friday.' })
      break
    }

    expect((await run.result).status).toBe('completed')
    expect(runs).toEqual([])
    expect(resultIn(model.requests[1])).toBe('Error: this call was denied. Not on a Friday.')
    expect(only(await eventsOf(run), 'approval-answer')).toMatchObject([{ allowed: false, by: 'user' }])
  })

  test('by a host’s rule is asked for in its child too, at any depth', async () => {
    const { runs, all } = tools()
    const leaf = agent({ name: 'leaf', instructions: '', model: tryingAll('deploy'), input: Input, tools: all })
    const ask = { calls: [{ name: 'ask', input: { n: 1 } }] }
    const middle = agent({
      name: 'middle',
      instructions: '',
      model: scriptedModel([ask, 'done']),
      input: Input,
      subagents: { ask: leaf },
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel([ask, 'done']),
      subagents: { ask: middle },
      grant: { ask: ['tool:deploy'] },
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    for await (const event of run) {
      if (event.type !== 'approval-request') continue
      expect(event.path).toEqual(['host', 'middle', 'leaf'])
      expect(runs).toEqual([])
      await runtime.answer(event.nodeId ?? '', { allow: true })
    }

    expect((await run.result).status).toBe('completed')
    expect(runs).toEqual(['deploy'])
  })
})

test('a delegation that must be asked for starts its child when it is allowed, and not before', async () => {
  const childModel = scriptedModel(['ok'])
  const expert = agent({ name: 'expert', instructions: '', model: childModel, input: Input })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: { n: 1 } }] }, 'done'])
  const runtime = openRuntime()
  const run = runtime.run(
    agent({ name: 'host', instructions: '', model, subagents: { ask: expert }, grant: { ask: ['agent:expert'] } }),
    'go',
  )
  for await (const event of run) {
    if (event.type !== 'approval-request') continue
    expect(event).toMatchObject({ call: { name: 'ask', input: { n: 1 } }, reason: 'host asks for agent:expert' })
    expect(childModel.requests).toHaveLength(0)
    await runtime.answer(event.nodeId ?? '', { allow: true })
  }

  expect(await run.result).toMatchObject({ status: 'completed', children: 1 })
  expect(resultIn(model.requests[1])).toBe('ok')
})

test('a rule that is mistyped is refused where it is written', () => {
  const wrong = { use: ['tols:search'] }

  expect(() => agent({ name: 'clerk', instructions: '', grant: wrong })).toThrow(DefinitionError)
  expect(() => openRuntime({ grant: { deny: ['database:drop'] } })).toThrow(/"database:drop"/)
  expect(() => agent({ name: 'clerk', instructions: '', grant: null as never })).toThrow(DefinitionError)
})
