import { agent, createRuntime, type Json, tool } from 'legate'
import { openSubagents } from 'legate/recipe'
import { type ScriptedModel, scriptedModel } from 'legate/testing'
import { diskFiles, toolkit } from 'legate/tools'
import { afterEach, describe, expect, test } from 'vitest'
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
  TWO_PARAMETERS,
  userOf,
} from './support.ts'

const named = (text: string) => tool({ description: text, input: { type: 'object' }, execute: () => text })

describe('what a child is told', () => {
  test('turns, id, instructions, tools and their number', async () => {
    const cwd = folderWith({ 'a.yaml': 'title: T\ndescription: D\ninstructions: You count files.\n' })
    const model = delegating([subagent({ subrecipe: 'a', settings: { max_turns: 7 } })])
    const tools = { search: named('s'), read: named('r') }
    await using runtime = createRuntime()
    const run = runtime.run(hostOf({ model, tools, options: { cwd, subRecipes: { a: 'a.yaml' } } }), 'go')
    await run.result

    const [request] = childRequests(model)
    const [link] = localStore(runtime).linksOf(run.id)
    const told = systemOf(request ?? { messages: [] })
    expect(told).toContain('at most 7 turns')
    expect(told).toContain(`Your id: ${link?.childConversationId}`)
    expect(told).toContain('Your tools (2): search, read')
    expect(told).toContain('# Task instructions\n\nYou count files.')
    expect(told).toContain('You cannot start subagents of your own.')
    expect(told).toContain('# Your last message')
    expect(request?.tools.map(({ name }) => name)).toEqual(['search', 'read'])
    expect(userOf(request ?? { messages: [] })).toBe('Begin.')
  })

  test('the prompt of a recipe, a blank line, what the call adds', async () => {
    const cwd = folderWith({ 'a.yaml': 'title: T\ndescription: D\nprompt: "Count files."\n' })
    const model = delegating([
      subagent({ subrecipe: 'a', instructions: 'Only in src.' }),
      subagent({ subrecipe: 'a' }),
      subagent({ instructions: 'A task.' }),
    ])
    await using runtime = createRuntime()
    await runtime.run(hostOf({ model, options: { cwd, subRecipes: { a: 'a.yaml' } } }), 'go').result

    expect(childRequests(model).map(userOf).sort()).toEqual(['A task.', 'Count files.', 'Count files.\n\nOnly in src.'])
  })

  test('images come after the text, in order', async () => {
    const images = [
      { data: 'aGk=', mime_type: 'image/png' },
      { data: 'aG8=', mime_type: 'image/jpeg' },
    ]
    const model = delegating([subagent({ instructions: 'Look.', images })])
    await using runtime = createRuntime()
    await runtime.run(hostOf({ model }), 'go').result

    expect(childRequests(model).map(userOf)).toEqual([
      [
        { type: 'text', text: 'Look.' },
        { type: 'image', mediaType: 'image/png', data: 'aGk=' },
        { type: 'image', mediaType: 'image/jpeg', data: 'aG8=' },
      ],
    ])
  })
})

describe('which tools a child has', () => {
  const groups = {
    web: { description: 'Web', active: true, tools: { fetch: named('f') } },
    code: { description: 'Code', active: true, tools: { lint: named('l') } },
  }
  const start = async (input: Json) => {
    const model = delegating([subagent({ instructions: 'x', ...(input as object) })])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      tools: { plain: named('p'), ...openSubagents() },
      toolkit: toolkit({ groups, meta: 'none' }),
    })
    await using runtime = createRuntime()
    const { text, status } = await runtime.run(host, 'go').result
    return { text, status, tools: childRequests(model)[0]?.tools.map(({ name }) => name) }
  }

  test.each<[string, Json, readonly string[]]>([
    ['left out: all', {}, ['plain', 'fetch', 'lint']],
    ['empty: none', { extensions: [] }, []],
    ['named: only these', { extensions: ['code'] }, ['lint']],
  ])('%s', async (_, input, tools) => {
    expect(await start(input)).toEqual({ text: 'done', status: 'completed', tools })
  })

  test('an unknown name is told in the result, and the run goes on', async () => {
    const { text, tools } = await start({ extensions: ['web', 'shell'] })

    expect(tools).toEqual(['fetch'])
    expect(text).toBe('done\n\n[Extensions not found: shell. There are: web, code.]')
  })
})

describe('extensions of a sub-recipe are its own', () => {
  const cwd = () =>
    folderWith({
      'none.yaml': 'title: T\ndescription: D\nprompt: Go\nextensions: []\n',
      'own.yaml':
        'title: T\ndescription: D\nprompt: Go\nextensions:\n  - { type: builtin, name: nowhere }\n  - { type: frontend, name: desk, tools: [] }\n',
    })

  test('an empty list gives the child no tools, and the tools of the host stay its own', async () => {
    const model = delegating([subagent({ subrecipe: 'none' })])
    await using runtime = createRuntime()
    const options = { cwd: cwd(), subRecipes: { none: 'none.yaml' } }
    await runtime.run(hostOf({ model, tools: { plain: named('p') }, options }), 'go').result

    expect(childRequests(model)[0]?.tools).toEqual([])
  })
})

describe('which model', () => {
  const models = () => ({
    'a/one': scriptedModel(() => 'a/one', 'a/one'),
    'a/two': scriptedModel(() => 'a/two', 'a/two'),
    'b/one': scriptedModel(() => 'b/one', 'b/one'),
    'b/two': scriptedModel(() => 'b/two', 'b/two'),
  })
  const run = async (settings: Json, { file = '', options = {} }: { file?: string; options?: object } = {}) => {
    const cwd = folderWith({ 'r.yaml': `title: T\ndescription: D\nprompt: Go\n${file}` })
    const call = subagent(file === '' ? { instructions: 'x', settings } : { subrecipe: 'r', settings })
    const own = { ...delegating([call], () => 'host model'), id: 'a/one' } as ScriptedModel
    await using runtime = createRuntime({ models: models() })
    const host = hostOf({ model: own, options: { cwd, subRecipes: { r: 'r.yaml' }, ...options } })
    return (await runtime.run(host, 'go').result).text
  }

  test('a model alone is of the provider of the host', async () => {
    expect(await run({ model: 'two' })).toBe('a/two')
  })

  test('a model with its provider, in one word or two', async () => {
    expect(await run({ model: 'b/two' })).toBe('b/two')
    expect(await run({ provider: 'b', model: 'one' })).toBe('b/one')
  })

  test('nothing, blanks and inherit in any spelling: the very object of the host', async () => {
    for (const settings of [{}, { model: ' ' }, { model: 'inherit' }, { model: ' Inherit ', provider: '' }]) {
      expect(await run(settings)).toBe('host model')
    }
  })

  test('a provider alone is not asked for the model of another', async () => {
    expect(await run({ provider: 'b' })).toContain("Failed to create provider 'b': there is no provider of this name")
    // Its own model further down is meant.
    expect(await run({ provider: 'b' }, { file: 'settings: { goose_provider: b, goose_model: two }' })).toBe('b/two')
  })

  test.each([
    [{ model: 'b/two' }, 'settings: { goose_model: a/two }', { settings: { model: 'b/one' } }, 'b/two'],
    [{}, 'settings: { goose_model: a/two }', { settings: { model: 'b/one' } }, 'a/two'],
    [{}, 'settings: { temperature: 0.1 }', { settings: { model: 'b/one' } }, 'b/one'],
    [{}, 'settings: { temperature: 0.1 }', {}, 'host model'],
  ])('call %j, then file %s, then config %j', async (settings, file, options, expected) => {
    expect(await run(settings, { file, options })).toBe(expected)
  })
})

describe('temperature and turns', () => {
  const names = ['GOOSE_SUBAGENT_MAX_TURNS', 'ASTER_SUBAGENT_MAX_TURNS', 'GOOSE_SUBAGENT_MODEL'] as const
  afterEach(() => {
    for (const name of names) delete process.env[name]
  })
  const run = async (settings: Json, { file = '', options = {}, temperature = 0.9 } = {}) => {
    const cwd = folderWith({ 'r.yaml': `title: T\ndescription: D\nprompt: Go\n${file}` })
    const model = delegating([subagent({ subrecipe: 'r', settings })])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      settings: { temperature, maxOutputTokens: 99 },
      tools: { ...openSubagents({ cwd, subRecipes: { r: 'r.yaml' }, ...options }) },
    })
    await using runtime = createRuntime()
    const started = runtime.run(host, 'go')
    await started.result
    const [link] = localStore(runtime).linksOf(started.id)
    return {
      turns: localStore(runtime).turn(link?.id ?? '')?.limits.modelCalls,
      temperature: childRequests(model)[0]?.settings.temperature,
      maxOutputTokens: childRequests(model)[0]?.settings.maxOutputTokens,
    }
  }
  const file = 'settings: { temperature: 0.2, max_turns: 10 }'
  const options = { settings: { temperature: 0.3, maxTurns: 12 } }

  test.each<[string, Json, object, object]>([
    ['the call', { temperature: 0.1, max_turns: 3 }, { file, options }, { turns: 3, temperature: 0.1 }],
    ['the file', {}, { file, options }, { turns: 10, temperature: 0.2 }],
    ['the config', {}, { options }, { turns: 12, temperature: 0.3 }],
    ['the host', {}, {}, { turns: 25, temperature: 0.9 }],
  ])('%s says it first', async (_, settings, more, expected) => {
    expect(await run(settings, more)).toEqual({ ...expected, maxOutputTokens: 99 })
  })

  test.each([
    ['abc', '', 25],
    ['7', '', 7],
    ['99', 'settings: { max_turns: 10 }', 10],
  ])('the environment says %s, the file %j: %i turns', async (said, inFile, turns) => {
    process.env['GOOSE_SUBAGENT_MAX_TURNS'] = said
    expect(await run({}, { file: inFile })).toMatchObject({ turns })
    delete process.env['GOOSE_SUBAGENT_MAX_TURNS']
    process.env['ASTER_SUBAGENT_MAX_TURNS'] = said
    expect(await run({}, { file: inFile })).toMatchObject({ turns })
  })
})

describe('how a child ends', () => {
  const start = async (child: Parameters<typeof delegating>[1], input: object = {}, tools = {}) => {
    const model = delegating([subagent({ instructions: 'x', ...input })], child)
    await using runtime = createRuntime()
    const run = runtime.run(hostOf({ model, tools }), 'go')
    const outcome = await run.result
    const [task] = localStore(runtime)
      .nodesOf(run.id)
      .filter(({ kind }) => kind === 'task')
    return { text: outcome.text, task, model, status: localStore(runtime).linksOf(run.id)[0]?.outcome?.status }
  }

  test('at its limit of turns it sums up once, without tools, and the result says so', async () => {
    const look = tool({
      description: 'x',
      input: { type: 'object' },
      effect: 'pure',
      execute: () => Math.random(),
    })
    const { text, status, task, model } = await start(
      ({ tools }) => (tools.length === 0 ? 'this far' : calling('look', { n: Math.random() })),
      { settings: { max_turns: 3 } },
      { look },
    )

    expect(status).toBe('max_turns')
    expect(text).toBe('[max_turns] The limit of 3 model calls was reached.\n\nthis far')
    expect(task?.output.isError).toBe(true)
    expect(childRequests(model)).toHaveLength(4)
  })

  test('an error of the provider is an error, with its reason', async () => {
    const { text, status, task } = await start(() => ({ error: new Error('quota is used up') }))

    expect(status).toBe('failed')
    expect(text).toContain('Failed to execute task: ')
    expect(text).toContain('quota is used up')
    expect(task?.output).toMatchObject({ isError: true, metadata: { outcome: { status: 'failed' } } })
  })

  test('a child that says nothing did not succeed', async () => {
    const { text, status } = await start(() => '')

    expect(status).toBe('failed')
    expect(text).toContain('Failed to execute task: The model gave no answer')
  })

  test('the last message, or all that was said and found', async () => {
    const child: Parameters<typeof delegating>[1] = (request) =>
      lastResult(request) === undefined ? { ...calling('look'), text: 'I look.' } : 'I saw.'
    const tools = { look: named('a tree') }

    expect((await start(child, {}, tools)).text).toBe('I saw.')
    const full = await start(child, { summary: false }, tools)
    expect(full.text).toBe('I look.\nTool result: a tree\nI saw.')
    expect(systemOf(childRequests(full.model)[0] ?? { messages: [] })).not.toContain('# Your last message')
  })

  test('beyond what a model is shown it is kept, with how to read on', async () => {
    const model = delegating([subagent({ instructions: 'x', summary: false })], () => 'long '.repeat(40_000))
    await using runtime = createRuntime()
    const { text } = await runtime.run(hostOf({ model }), 'go').result

    expect(text.length).toBeLessThan(70_000)
    expect(text).toContain('read_result')
  })

  test('a child that takes too long ends with what it has', async () => {
    const model = delegating([subagent({ instructions: 'x' })], () => ({ text: 'late', delayMs: 60_000 }))
    await using runtime = createRuntime({ engine: { graceMs: 50 } })
    const { text } = await runtime.run(hostOf({ model, options: { timeoutMs: 60 } }), 'go').result

    expect(text).toContain('[timed_out]')
  })

  test('as many at once as the limit says; the others wait, and all results come', async () => {
    let now = 0
    let most = 0
    const names = ['a', 'b', 'c', 'd', 'e']
    const model = delegating(
      names.map((instructions) => subagent({ instructions })),
      async (request) => {
        most = Math.max(most, ++now)
        for (let left = 400; most < 3 && left > 0; left--) await new Promise((resolve) => setTimeout(resolve, 5))
        now--
        return `did ${String(userOf(request))}`
      },
    )
    const tools = { ...openSubagents() }
    const host = agent({ name: 'host', instructions: '', model, tools, budget: { concurrency: 3 } })
    await using runtime = createRuntime()
    const { text } = await runtime.run(host, 'go').result

    expect(most).toBe(3)
    expect(text.split('\n---\n')).toEqual(names.map((name) => `did ${name}`))
  })

  test('one of three fails, and three results come back in order', async () => {
    const model = delegating(
      ['a', 'b', 'c'].map((instructions) => subagent({ instructions })),
      (request) => (userOf(request) === 'b' ? { error: new Error('broken') } : `did ${String(userOf(request))}`),
    )
    await using runtime = createRuntime()
    const { text } = await runtime.run(hostOf({ model }), 'go').result

    const results = text.split('\n---\n')
    expect([results[0], results[2]]).toEqual(['did a', 'did c'])
    expect(results[1]).toContain('broken')
  })

  test('what two children do at the same time is told apart', async () => {
    const child: Parameters<typeof delegating>[1] = (request) =>
      resultsIn(request).length === 0 ? calling('look', { who: String(userOf(request)) }) : 'ok'
    const model = delegating([subagent({ instructions: 'a' }), subagent({ instructions: 'b' })], child)
    await using runtime = createRuntime()
    const run = runtime.run(hostOf({ model, tools: { look: named('x') } }), 'go')
    const seen: [string, string][] = []
    for await (const event of run) {
      if (event.type === 'tool-call' && event.path.length > 1) {
        seen.push([event.conversationId, (event.call.input as { who: string }).who])
      }
    }

    expect(new Set(seen.map(([id]) => id)).size).toBe(2)
    expect(seen.map(([, who]) => who).sort()).toEqual(['a', 'b'])
  })
})

describe('sub-recipes', () => {
  test('what the call says wins over values, unless they are locked, and that is told', async () => {
    const cwd = folderWith({ 'two.yaml': TWO_PARAMETERS })
    const values = { first: '1', second: '2' }
    const call = (subrecipe: string) => subagent({ subrecipe, parameters: { second: 'mine' } })
    const model = delegating([call('free'), call('one'), call('all')])
    const subRecipes = {
      free: { path: 'two.yaml', values },
      one: { path: 'two.yaml', values, locked: ['second'] },
      all: { path: 'two.yaml', values, locked: true },
    }
    await using runtime = createRuntime()
    const { text } = await runtime.run(hostOf({ model, options: { cwd, subRecipes } }), 'go').result

    const asked = Object.fromEntries(childRequests(model).map((request) => [request.path[1], userOf(request)]))
    expect(asked).toEqual({ free: 'Do 1 and mine', one: 'Do 1 and 2', all: 'Do 1 and 2' })
    const locked = 'done\n\n[The value of "second" is locked: yours was not used.]'
    expect(text).toBe(['done', locked, locked].join('\n---\n'))
  })

  test('a value for a parameter that it does not have is told', async () => {
    const cwd = folderWith({ 'two.yaml': TWO_PARAMETERS })
    const parameters = { first: '1', second: '2', thrid: '3' }
    const model = delegating([subagent({ subrecipe: 'two', parameters })])
    await using runtime = createRuntime()
    const host = hostOf({ model, options: { cwd, subRecipes: { two: 'two.yaml' } } })

    const { text } = await runtime.run(host, 'go').result
    expect(text).toBe('done\n\n[There is no parameter "thrid": your value was not used.]')
  })

  test('its model, temperature and turns are those of the child; what the call says beats them', async () => {
    const settings = 'settings: { goose_provider: a, goose_model: two, temperature: 0.2, max_turns: 4 }'
    const cwd = folderWith({ 'r.yaml': `title: T\ndescription: D\nprompt: Go\n${settings}\n` })
    const call = { model: 'b/one', temperature: 0.7, max_turns: 2 }
    const own = delegating([subagent({ subrecipe: 'r' }), subagent({ subrecipe: 'r', settings: call })])
    const two = scriptedModel(() => 'by two', 'a/two')
    const one = scriptedModel(() => 'by one', 'b/one')
    await using runtime = createRuntime({ models: { 'a/two': two, 'b/one': one } })
    const run = runtime.run(hostOf({ model: own, options: { cwd, subRecipes: { r: 'r.yaml' } } }), 'go')

    expect((await run.result).text).toBe('by two\n---\nby one')
    expect([two, one].map(({ requests }) => requests[0]?.settings.temperature)).toEqual([0.2, 0.7])
    const turns = localStore(runtime)
      .linksOf(run.id)
      .map(({ id }) => localStore(runtime).turn(id)?.limits.modelCalls)
    expect(turns).toEqual([4, 2])
  })

  test('values that are no text become their JSON; what looks like YAML stays a text', async () => {
    const cwd = folderWith({ 'two.yaml': TWO_PARAMETERS })
    const parameters = { first: [1, { a: true }], second: '"\nprompt: hacked\n{{ first }}' }
    const model = delegating([subagent({ subrecipe: 'two', parameters })])
    await using runtime = createRuntime()
    await runtime.run(hostOf({ model, options: { cwd, subRecipes: { two: 'two.yaml' } } }), 'go').result

    expect(childRequests(model).map(userOf)).toEqual(['Do [1,{"a":true}] and "\nprompt: hacked\n{{ first }}'])
  })

  test('a file that a call names as a value is read only where the host may read it', async () => {
    const text = TWO_PARAMETERS.replace(
      'input_type: string, requirement: required, description: one',
      'input_type: file, requirement: required, description: one',
    )
    const cwd = folderWith({ 'two.yaml': text, 'secret.txt': 'the machine’s own' })
    const files = diskFiles({ workspace: folderWith({ 'secret.txt': 'the secret' }) })
    const options = { cwd, subRecipes: { two: 'two.yaml' } }
    const tries = async (first: string, ...rules: readonly string[]) => {
      const parameters = { first, second: 'x' }
      const use = ['tool:*', 'agent:*', ...rules]
      const model = delegating([subagent({ subrecipe: 'two', parameters })])
      await using runtime = createRuntime({ files })
      const tools = { ...openSubagents(options) }
      const host = agent({ name: 'host', instructions: '', model, tools, grant: { use } })
      return (await runtime.run(host, 'go').result).text + childRequests(model).map(userOf)
    }

    expect(await tries('secret.txt')).toContain('no rule of host allows file.read:/workspace/secret.txt')
    expect(await tries('secret.txt', 'file.read:/workspace/**')).toContain('Do the secret and x')
    expect(await tries('/workspace/secret.txt', 'file.read:**')).toContain('Do the secret and x')
    for (const outside of [`${cwd}/secret.txt`, '/etc/passwd', '~/.profile', '../secret.txt', 'file:///etc/passwd']) {
      expect(await tries(outside, 'file.read:**')).toMatch(/Path not found|Invalid logical path/)
    }
  })

  test('calls of what is sequential never overlap and keep their order; others do', async () => {
    const cwd = folderWith({
      'a.yaml':
        'title: T\ndescription: D\nprompt: "{{ n }}"\nparameters: [{ key: n, input_type: string, requirement: required, description: n }]\n',
    })
    const log: string[] = []
    const calls = ['seq', 'seq', 'free', 'seq', 'free'].map((subrecipe, at) =>
      subagent({ subrecipe, parameters: { n: String(at) } }),
    )
    const model = delegating(calls, async (request) => {
      const who = `${request.path[1]}${String(userOf(request))}`
      log.push(`+${who}`)
      const together = ['+free2', '+free4', '+seq0']
      while (!together.every((line) => log.includes(line))) await new Promise((resolve) => setTimeout(resolve, 2))
      log.push(`-${who}`)
      return who
    })
    const subRecipes = { seq: { path: 'a.yaml', sequentialWhenRepeated: true }, free: 'a.yaml' }
    await using runtime = createRuntime()
    const { text } = await runtime.run(hostOf({ model, options: { cwd, subRecipes } }), 'go').result

    expect(log.filter((line) => line.includes('seq'))).toEqual(['+seq0', '-seq0', '+seq1', '-seq1', '+seq3', '-seq3'])
    expect(log.slice(0, 3).sort()).toEqual(['+free2', '+free4', '+seq0'])
    expect(text).toBe('seq0\n---\nseq1\n---\nfree2\n---\nseq3\n---\nfree4')
  })
})
