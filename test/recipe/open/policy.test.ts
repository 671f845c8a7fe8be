import { agent, createRuntime, tool } from 'legate'
import { mcpServer } from 'legate/mcp'
import { openSubagents } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { localStore } from '../../support/rows.ts'
import { folderWith } from '../support/folder.ts'
import {
  calling,
  childRequests,
  delegating,
  hostOf,
  lastResult,
  resultsIn,
  subagent,
  systemOf,
  userOf,
} from './support.ts'

const named = (text: string) => tool({ description: text, input: { type: 'object' }, execute: () => text })

describe('the session of a child', () => {
  test('is a sub_agent of its host, with the call that made it, its name, folder and transcript', async () => {
    const cwd = folderWith()
    const model = delegating([subagent({ instructions: 'Count   the\nfiles.' })])
    await using runtime = createRuntime()
    const run = runtime.run(hostOf({ model, options: { cwd } }), 'go')
    await run.result

    const [link] = localStore(runtime).linksOf(run.id)
    const child = localStore(runtime).conversation(link?.childConversationId ?? '')
    expect(child).toMatchObject({
      type: 'sub_agent',
      title: 'Subagent task',
      parentConversationId: run.conversationId,
      parentTaskId: link?.taskId,
      metadata: {
        subagent: {
          name: 'subagent',
          parent_conversation_id: run.conversationId,
          spawned_from_node_id: link?.taskId,
          summary: 'Count the files.',
          cwd,
        },
      },
    })
    const talk = await runtime.conversation(child?.id ?? '')
    expect((await talk.transcript({ limitTurns: 5 })).map(({ text }) => text)).toEqual(['Count   the\nfiles.', 'done'])
  })

  test('has the title that a call gives it', async () => {
    const model = delegating([
      { name: 'Agent', input: { description: 'Look at logs', prompt: 'Look.', name: 'scout' } },
    ])
    await using runtime = createRuntime()
    const run = runtime.run(hostOf({ model, options: { surfaces: ['Agent'] } }), 'go')
    await run.result

    const [link] = localStore(runtime).linksOf(run.id)
    expect(localStore(runtime).conversation(link?.childConversationId ?? '')?.title).toBe('scout')
  })
})

describe('children of children', () => {
  const deep = (depth: number) =>
    scriptedModel((request) => {
      const result = lastResult(request)
      if (result !== undefined) return `${request.path.length}: ${result}`
      return request.path.length > depth ? 'bottom' : calling('subagent', { instructions: 'deeper' })
    })

  test.each([
    ['subagent', 'Subagents cannot create other subagents', { instructions: 'x' }],
    ['delegate', 'Error: Delegated tasks cannot spawn further delegations', { instructions: 'x' }],
    ['Agent', 'Agents cannot create other agents', { description: 'x', prompt: 'y' }],
  ] as const)('a child is not offered %s, and refused when it calls it all the same', async (name, words, input) => {
    const model = scriptedModel((request) => lastResult(request) ?? calling(name, input))
    await using runtime = createRuntime()
    const { text } = await runtime.run(hostOf({ model, options: { surfaces: [name] } }), 'go').result

    expect(text).toContain(words)
    expect(childRequests(model)[0]?.tools.map((shown) => shown.name)).not.toContain(name)
  })

  test('with nested they may, as deep as the budget allows; beyond it they are refused', async () => {
    const model = deep(3)
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { ...openSubagents({ nested: true }) },
      budget: { depth: 2 },
    })
    await using runtime = createRuntime()
    const { text } = await runtime.run(host, 'go').result

    expect(text).toContain('1: 2: 3: Subagents cannot create other subagents')
    const offered = (depth: number) => model.requests.find(({ path }) => path.length === depth)?.tools.length
    expect([offered(1), offered(2), offered(3)]).toEqual([1, 1, 0])
  })

  test('sub-recipes of a sub-recipe can be used only with nested', async () => {
    const cwd = folderWith({
      'a.yaml': 'title: T\ndescription: D\nprompt: A\nsub_recipes: [{ name: b, path: b.yaml }]\n',
      'b.yaml': 'title: T\ndescription: D\nprompt: B\n',
    })
    const model = () =>
      scriptedModel((request) => {
        if (lastResult(request) !== undefined) return String(lastResult(request))
        if (request.path.length === 3) return 'from b'
        return calling('subagent', { subrecipe: request.path.length === 1 ? 'a' : 'b' })
      })
    const run = async (nested: boolean) => {
      await using runtime = createRuntime()
      const options = { cwd, nested, subRecipes: { a: 'a.yaml' } }
      return (await runtime.run(hostOf({ model: model(), options }), 'go').result).text
    }

    expect(await run(true)).toBe('from b')
    expect(await run(false)).toContain('Subagents cannot create other subagents')
  })
})

describe('I1: a child in words may do no more than its host passes on', () => {
  test('what the host may not delegate is refused, whatever the call or the file says', async () => {
    const cwd = folderWith({ 'a.yaml': 'title: T\ndescription: D\nprompt: A\n' })
    const model = delegating([subagent({ instructions: 'x' }), subagent({ subrecipe: 'a' })], (request) => {
      return lastResult(request) ?? calling('deploy')
    })
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { deploy: named('deployed'), ...openSubagents({ cwd, subRecipes: { a: 'a.yaml' } }) },
      grant: { use: ['tool:*', 'agent:*'], delegate: ['tool:read_*', 'agent:*'] },
    })
    await using runtime = createRuntime()
    const { text } = await runtime.run(host, 'go').result

    expect(text.match(/deploy is not allowed here: no rule of host allows tool:deploy/g)).toHaveLength(2)
    expect(childRequests(model).flatMap(({ tools }) => tools)).toEqual([])
  })

  test('a host that may start no agent starts none; a name decides which', async () => {
    const cwd = folderWith({ 'a.yaml': 'title: T\ndescription: D\nprompt: A\n' })
    const model = delegating([subagent({ instructions: 'x' }), subagent({ subrecipe: 'a' })])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { ...openSubagents({ cwd, subRecipes: { a: 'a.yaml' } }) },
      grant: { use: ['tool:*', 'agent:a'] },
    })
    await using runtime = createRuntime()
    const { text, children } = await runtime.run(host, 'go').result

    expect(children).toBe(1)
    expect(text).toContain('Failed to execute task: no rule of host allows agent:subagent')
  })

  test('a model that the host may not use is not used by its child', async () => {
    const model = delegating([subagent({ instructions: 'x', settings: { model: 'dear/one' } })])
    const dear = scriptedModel(['expensive'], 'dear/one')
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { ...openSubagents() },
      grant: { use: ['tool:*', 'agent:*', 'model:scripted/*'] },
    })
    await using runtime = createRuntime({ models: { 'dear/one': dear } })
    const { text } = await runtime.run(host, 'go').result

    expect(text).toContain('The model dear/one is not allowed here')
    expect(dear.requests).toEqual([])
  })

  test('what children use counts once for the run above them; a budget that is used up starts none', async () => {
    const usage = { inputTokens: 100, outputTokens: 10 }
    const model = delegating([subagent({ instructions: 'a' }), subagent({ instructions: 'b' })], () => ({
      text: 'ok',
      usage,
    }))
    await using runtime = createRuntime()
    const outcome = await runtime.run(hostOf({ model }), 'go').result
    expect(outcome.usage).toMatchObject({ inputTokens: 200, outputTokens: 20 })

    const few = agent({
      name: 'host',
      instructions: '',
      model: delegating([subagent({ instructions: 'a' }), subagent({ instructions: 'b' })]),
      tools: { ...openSubagents() },
      budget: { children: 1 },
    })
    const { text, children } = await runtime.run(few, 'go').result
    expect(children).toBe(1)
    expect(text).toContain('this run has started 1 subagents, its limit')
  })

  test('tools that a definition allows or denies are enforced in the child', async () => {
    const cwd = folderWith({
      'narrow.md': '---\nname: narrow\ndescription: D\ntools: look\ndisallowedTools: peek\n---\nYou look.\n',
    })
    const model = delegating([subagent({ subrecipe: 'narrow', instructions: 'go' })], (request) =>
      resultsIn(request).length === 0
        ? { calls: ['look', 'peek', 'change'].map((name) => ({ name, input: {} })) }
        : resultsIn(request).join(' | '),
    )
    const tools = { look: named('seen'), peek: named('peeked'), change: named('changed') }
    await using runtime = createRuntime()
    const { text } = await runtime.run(
      hostOf({ model, tools, options: { cwd, subRecipes: { narrow: 'narrow.md' } } }),
      'go',
    ).result

    expect(childRequests(model)[0]?.tools.map(({ name }) => name)).toEqual(['look'])
    expect(text).toMatch(/^seen \| peek is not allowed here: .* \| change is not allowed here: /)
  })
})

describe('an extension that does not start', () => {
  const missing = (required: boolean) => mcpServer({ command: '/no/such/program', required })
  const start = async (required: boolean) => {
    const model = delegating([subagent({ instructions: 'x' })])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { ...openSubagents() },
      sources: { gone: missing(false) },
      grant: { use: ['tool:*', 'agent:*', 'exec:*'] },
    })
    const strict = agent({ name: 'strict', instructions: '', model, tools: {}, sources: { gone: missing(required) } })
    await using runtime = createRuntime()
    const run = runtime.run(host, 'go')
    const { text, absent } = await run.result
    const [link] = localStore(runtime).linksOf(run.id)
    const [task] = localStore(runtime)
      .nodesOf(run.id)
      .filter(({ kind }) => kind === 'task')
    const refused = await runtime.run(strict, 'go').result
    return { text, absent, link, task, refused }
  }

  test('is told with the result, with the reason; one that is required fails the run', async () => {
    const { text, absent, link, task, refused } = await start(true)
    const gone = { name: 'gone', reason: expect.stringContaining('/no/such/program') }

    expect(absent).toEqual([gone])
    expect(link?.outcome?.absent).toEqual([gone])
    expect(task?.output.metadata?.['outcome']).toMatchObject({ absent: [gone] })
    expect(text).toMatch(/^done\n\n\[The tools of "gone" are not available: /)
    expect(refused.status).not.toBe('completed')
  })

  test('a server of the host is chosen by its name', async () => {
    const model = delegating([
      subagent({ instructions: 'x', extensions: [] }),
      subagent({ instructions: 'y', extensions: ['gone'] }),
    ])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { ...openSubagents() },
      sources: { gone: missing(false) },
      grant: { use: ['tool:*', 'agent:*', 'exec:*'] },
    })
    await using runtime = createRuntime()
    const [none, one] = (await runtime.run(host, 'go').result).text.split('\n---\n')

    expect(none).toBe('done')
    expect(one).toContain('[The tools of "gone" are not available: ')
  })
})

describe('sources that were found', () => {
  const project = () =>
    folderWith({
      '.agents/agents/reviewer.md': '---\nname: reviewer\ndescription: Reviews code.\n---\nYou review.\n',
      '.goose/recipes/count.yaml': 'title: Count\ndescription: Counts files.\nprompt: Count them.\n',
      '.agents/skills/style/SKILL.md': '---\nname: style\ndescription: House style.\n---\nWrite short.\n',
    })
  const start = async (call: { name: string; input: object }, child = () => 'done') => {
    const model = scriptedModel((request) => {
      if (request.path.length > 1) return child()
      return lastResult(request) ?? { calls: [call as never] }
    })
    await using runtime = createRuntime()
    const cwd = project()
    const { text } = await runtime.run(
      hostOf({ model, options: { cwd, discover: true, surfaces: ['delegate'] } }),
      'go',
    ).result
    return { text, model }
  }

  test('are named to the model, with when to start them', async () => {
    const { model } = await start({ name: 'load', input: {} })
    const shown = model.requests[0]?.tools.find(({ name }) => name === 'delegate')?.description

    expect(shown).toContain('• reviewer (agent) - Reviews code.')
    expect(shown).toContain('• count (recipe) - Counts files.')
    expect(shown).toContain('If the user writes @name')
  })

  test('load lists them, reads one, and names what is near', async () => {
    const list = (await start({ name: 'load', input: {} })).text
    expect(list).toContain('Available sources for load/delegate:')
    expect(list).toContain('Recipes:\n• count - Counts files.')
    expect(list).toContain('Agents:\n• reviewer - Reviews code.')
    const one = (await start({ name: 'load', input: { source: 'style' } })).text
    expect(one).toContain('# Loaded: style (skill)\n\nWrite short.')
    expect(one).toContain('This knowledge is now available in your context.')
    expect((await start({ name: 'load', input: { source: 'review' } })).text).toContain('Did you mean: reviewer?')
  })

  test.each([
    ['reviewer', 'You review.', undefined, 'Begin the work that your instructions describe, and report what you did.'],
    ['reviewer', 'You review.', 'Look at auth.rs', 'Look at auth.rs'],
    ['style', 'Write short.', undefined, 'Begin the work that your instructions describe, and report what you did.'],
    ['count', '', undefined, 'Count them.'],
  ])('delegate to %s', async (source, told, instructions, asked) => {
    const { model, text } = await start({ name: 'delegate', input: { source, ...(instructions && { instructions }) } })

    expect(text).toBe('done')
    const [child] = childRequests(model)
    expect(systemOf(child ?? { messages: [] })).toContain(told)
    expect(userOf(child ?? { messages: [] })).toBe(asked)
  })

  test('an unknown source names what is near', async () => {
    expect((await start({ name: 'delegate', input: { source: 'reviewer-two' } })).text).toBe(
      "Error: Source 'reviewer-two' not found. Did you mean: reviewer?",
    )
  })

  test('nothing is found unless it was asked for', async () => {
    const model = scriptedModel((request) => lastResult(request) ?? calling('load'))
    await using runtime = createRuntime()
    const host = hostOf({ model, options: { cwd: project(), surfaces: ['delegate'] } })

    expect((await runtime.run(host, 'go').result).text).toBe('No sources available for load/delegate.')
  })
})
