import path from 'node:path'
import { agent, createRuntime, type Json } from 'legate'
import { type OpenOptions, openSubagents } from 'legate/recipe'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { localStore } from '../../support/rows.ts'
import { folderWith } from '../support/folder.ts'
import { type Call, childRequests, delegating, hostOf, shownTool, subagent, TWO_PARAMETERS, userOf } from './support.ts'

/** What a call gives back, and how many children it made. */
async function resultOf(call: Call, options: OpenOptions = {}) {
  const model = delegating([call])
  await using runtime = createRuntime()
  const run = runtime.run(hostOf({ model, options }), 'go')
  const { text, children } = await run.result
  const [task] = localStore(runtime)
    .nodesOf(run.id)
    .filter(({ kind }) => kind === 'task')
  return { text, children, task, model }
}

async function descriptionWith(options: OpenOptions): Promise<string> {
  const model = scriptedModel(['done'])
  await using runtime = createRuntime()
  await runtime.run(hostOf({ model, options }), 'go').result
  return shownTool(model, 'subagent')?.description ?? ''
}

describe('the tool as a model is shown it', () => {
  test('without sub-recipes', async () => {
    const model = scriptedModel(['done'])
    await using runtime = createRuntime()
    await runtime.run(hostOf({ model }), 'go').result

    const shown = shownTool(model, 'subagent')
    expect(shown?.description).toContain('Ad-hoc')
    expect(shown?.description).not.toContain('Available subrecipes')
    expect(Object.keys(shown?.inputSchema['properties'] as object)).toEqual([
      ...['instructions', 'subrecipe', 'parameters', 'extensions', 'settings', 'summary', 'images'],
    ])
    expect(shown?.inputSchema['required']).toBeUndefined()
  })

  test('the parameters of a sub-recipe are named, those that are preset are not', async () => {
    const cwd = folderWith({ 'two.yaml': TWO_PARAMETERS })

    const plain = await descriptionWith({ cwd, subRecipes: { two: 'two.yaml' } })
    expect(plain).toContain('Available subrecipes:\n• two - Does a thing (params: first [required], second [required])')
    const preset = await descriptionWith({ cwd, subRecipes: { two: { path: 'two.yaml', values: { second: 'x' } } } })
    expect(preset.split('(params:')[1]).toContain('first [required]')
    expect(preset.split('(params:')[1]).not.toContain('second')
  })

  test('what has a default or is asked of a person is optional', async () => {
    const text = TWO_PARAMETERS.replace(
      'requirement: required, description: one',
      'requirement: user_prompt, description: one',
    )
    const cwd = folderWith({ 'two.yaml': text.replace('description: two }', 'description: two, default: "2" }') })

    expect(await descriptionWith({ cwd, subRecipes: { two: 'two.yaml' } })).toContain(
      '(params: first [optional], second [optional])',
    )
  })

  test('only what is sequential says so', async () => {
    const cwd = folderWith({ 'a.yaml': TWO_PARAMETERS })
    const subRecipes = { a: { path: 'a.yaml', sequentialWhenRepeated: true, description: 'Own words' }, b: 'a.yaml' }

    const lines = (await descriptionWith({ cwd, subRecipes })).split('\n').filter((line) => line.startsWith('•'))
    expect(lines[0]).toMatch(/^• a \[run sequentially, not in parallel\] - Own words \(params:/)
    expect(lines[1]).toMatch(/^• b - Does a thing \(params:/)
  })

  test('a sub-recipe that cannot be read has no parameters, and harms nothing', async () => {
    const cwd = folderWith({ 'broken.yaml': 'title: [', 'none.yaml': 'just text' })

    const text = await descriptionWith({ cwd, subRecipes: { broken: 'broken.yaml', none: 'none.yaml' } })
    expect(text).toContain('• broken - No description\n• none - No description')
  })

  test('a file that is edited is told of anew, and run anew', async () => {
    const { writeFileSync } = await import('node:fs')
    const cwd = folderWith({ 'a.yaml': 'title: T\ndescription: Before\nprompt: Before\n' })
    const model = delegating([subagent({ subrecipe: 'a' })])
    const host = hostOf({ model, options: { cwd, subRecipes: { a: 'a.yaml' } } })
    await using runtime = createRuntime()
    await runtime.run(host, 'go').result
    writeFileSync(path.join(cwd, 'a.yaml'), 'title: T\ndescription: After it\nprompt: After\n')
    await runtime.run(host, 'go').result

    expect(childRequests(model).map(userOf)).toEqual(['Before', 'After'])
    expect(model.requests.filter(({ path: names }) => names.length === 1).at(-1)?.tools[0]?.description).toContain(
      'After it',
    )
  })
})

describe('what is refused starts nothing and costs no model call', () => {
  test.each<[name: string, input: Json, message: string]>([
    ['nothing', {}, "Must provide 'instructions' or 'subrecipe' (or both)"],
    ['blank words', { instructions: '  ' }, "Must provide 'instructions' or 'subrecipe' (or both)"],
    ['parameters alone', { instructions: 'x', parameters: {} }, "'parameters' can only be used with 'subrecipe'"],
    ['a number', { instructions: 5 }, 'Invalid parameters: instructions: invalid type: integer `5`, expected a string'],
    ['no object', [1], 'Invalid parameters: invalid type: sequence, expected an object'],
    [
      'settings that are none',
      { instructions: 'x', settings: 'fast' },
      'Invalid parameters: settings: invalid type: string "fast", expected an object',
    ],
    [
      'a text as temperature',
      { instructions: 'x', settings: { temperature: 'hot' } },
      'Invalid parameters: settings.temperature: invalid type: string "hot", expected a number',
    ],
    ['no turns', { instructions: 'x', settings: { max_turns: 0 } }, "'max_turns' must be at least 1"],
    [
      'names that are none',
      { instructions: 'x', extensions: ['a', 1] },
      'Invalid parameters: extensions[1]: invalid type: integer `1`, expected a string',
    ],
    [
      'a text as flag',
      { instructions: 'x', summary: 'yes' },
      'Invalid parameters: summary: invalid type: string "yes", expected a boolean',
    ],
    [
      'an image without its type',
      { instructions: 'x', images: [{ data: 'aGk=' }] },
      'Invalid parameters: images[0]: missing field `mime_type`',
    ],
    [
      'an image that is none',
      { instructions: 'x', images: [{ data: 'aGk=', mime_type: 'text/plain' }] },
      'Invalid parameters: images[0].mime_type: "text/plain" is no image type',
    ],
    [
      'an image that is no base64',
      { instructions: 'x', images: [{ data: '<svg>', mime_type: 'image/png' }] },
      'Invalid parameters: images[0].data is not base64',
    ],
    ['letters nobody sees', { instructions: 'x\u{E0041}' }, 'Recipe contains potentially harmful content'],
    [
      'an unknown provider',
      { instructions: 'x', settings: { provider: 'acme' } },
      "Failed to create provider 'acme': there is no provider of this name.",
    ],
  ])('%s', async (_, input, message) => {
    const { text, children, task, model } = await resultOf(subagent(input))

    expect(text.startsWith(message), text).toBe(true)
    expect([children, model.requests.length]).toEqual([0, 2])
    expect(task?.output).toMatchObject({ isError: true, metadata: { error: { code: 'INVALID_PARAMS' } } })
  })

  test('unknown keys and null are taken', async () => {
    const { text, children } = await resultOf(subagent({ instructions: 'x', subrecipe: null, whatever: 1 }))

    expect([text, children]).toEqual(['done', 1])
  })

  test('an unknown name is told with those there are, in order, and what is near', async () => {
    const cwd = folderWith({ 'a.yaml': TWO_PARAMETERS })
    const subRecipes = { zeta: 'a.yaml', deploy: 'a.yaml' }

    const { text, children } = await resultOf(subagent({ subrecipe: 'deploy-prod' }), { cwd, subRecipes })
    expect(text).toBe("Unknown subrecipe 'deploy-prod'. Available: deploy, zeta. Did you mean: deploy?")
    expect(children).toBe(0)
    const none = await resultOf(subagent({ subrecipe: 'x' }))
    expect(none.text).toBe("Unknown subrecipe 'x'. Available: none.")
  })

  test('what cannot be built is told: missing values, a broken file, one that is gone', async () => {
    const { rmSync } = await import('node:fs')
    const cwd = folderWith({ 'two.yaml': TWO_PARAMETERS, 'broken.yaml': 'title: [', 'gone.yaml': TWO_PARAMETERS })
    const options = { cwd, subRecipes: { two: 'two.yaml', broken: 'broken.yaml', gone: 'gone.yaml' } }

    const missing = await resultOf(subagent({ subrecipe: 'two' }), options)
    expect(missing.text).toContain('Failed to build subrecipe: Missing required parameters: ["first", "second"]')
    expect((await resultOf(subagent({ subrecipe: 'broken' }), options)).text).toContain('Failed to build subrecipe: ')
    const host = hostOf({ model: delegating([subagent({ subrecipe: 'gone' })]), options })
    rmSync(path.join(cwd, 'gone.yaml'))
    await using runtime = createRuntime()
    const { text, children } = await runtime.run(host, 'go').result
    expect(text).toContain("Failed to load subrecipe 'gone': ")
    expect(children).toBe(0)
  })
})

describe('the aliases do the same', () => {
  const surfaces = ['subagent', 'delegate', 'Agent'] as const

  test.each([
    ['delegate', { instructions: 'task', model: 'own/b', temperature: 0.5 }],
    ['Agent', { description: 'Do a task', prompt: 'task', model: 'own/b' }],
    ['subagent', { instructions: 'task', settings: { model: 'own/b' } }],
  ])('%s', async (name, input) => {
    const other = scriptedModel(['from b'], 'own/b')
    const model = delegating([{ name, input }])
    await using runtime = createRuntime({ models: { 'own/b': other } })
    const { text, children } = await runtime.run(hostOf({ model, options: { surfaces } }), 'go').result

    expect(children).toBe(1)
    expect(text).toContain('from b')
    expect(other.requests.map(userOf)).toEqual(['task'])
  })

  test('each is offered under its own name, with its own fields', async () => {
    const model = scriptedModel(['done'])
    await using runtime = createRuntime()
    await runtime.run(hostOf({ model, options: { surfaces } }), 'go').result

    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['subagent', 'delegate', 'Agent', 'load'])
    const fields = (name: string) => Object.keys(shownTool(model, name)?.inputSchema['properties'] as object)
    expect(fields('delegate')).toEqual([
      ...['instructions', 'source', 'parameters', 'extensions', 'provider', 'model', 'temperature', 'max_turns'],
      ...['context', 'async'],
    ])
    expect(shownTool(model, 'Agent')?.inputSchema).toMatchObject({
      required: ['description', 'prompt'],
      additionalProperties: false,
    })
  })

  test('Agent with an unknown type runs with the hint; its result is JSON with real numbers', async () => {
    const call = { name: 'Agent', input: { description: 'Look', prompt: 'Look at it', subagent_type: 'explorer' } }
    const { text, model } = await resultOf(call, { surfaces })

    expect(childRequests(model).map(userOf)).toEqual(['Specialized agent hint: explorer\n\nLook at it'])
    expect(JSON.parse(text)).toMatchObject({
      status: 'completed',
      content: [{ type: 'text', text: 'done' }],
      totalToolUseCount: 0,
      prompt: 'Specialized agent hint: explorer\n\nLook at it',
    })
  })

  test('Agent with the name of a sub-recipe runs it', async () => {
    const cwd = folderWith({ 'a.yaml': 'title: T\ndescription: D\nprompt: Recipe prompt\n' })
    const call = { name: 'Agent', input: { description: 'x', prompt: 'and more', subagent_type: 'a' } }
    const { text, model } = await resultOf(call, { surfaces, cwd, subRecipes: { a: 'a.yaml' } })

    expect(childRequests(model).map(userOf)).toEqual(['Recipe prompt\n\nand more'])
    expect(JSON.parse(text)).toMatchObject({ agentType: 'a' })
  })

  test.each<[Json, string]>([
    [{ description: 'x', prompt: 'y', cwd: 'here' }, 'cwd must be an absolute path'],
    [{ description: 'x', prompt: 'y', cwd: '/no/such/folder' }, 'cwd is not a directory: /no/such/folder'],
    [{ description: ' ', prompt: 'y' }, 'description cannot be empty'],
    [{ description: 'x', prompt: '' }, 'prompt cannot be empty'],
    [{ description: 'x' }, 'Invalid parameters: missing field `prompt`'],
    [{ description: 'x', prompt: 'y', colour: 1 }, 'Invalid parameters: unknown field `colour`'],
    [
      { description: 'x', prompt: 'y', run_in_background: true },
      'run_in_background is not supported in the current runtime; omit it or pass false',
    ],
    [{ description: 'x', prompt: 'y', isolation: 'worktree' }, 'isolation is not supported in the current runtime'],
    [{ description: 'x', prompt: 'y', team_name: 't' }, 'team_name is not supported in the current runtime'],
    [{ description: 'x', prompt: 'y', mode: 'plan' }, 'mode is not supported in the current runtime'],
  ])('Agent %j', async (input, message) => {
    expect((await resultOf({ name: 'Agent', input }, { surfaces })).text).toBe(message)
  })

  test.each<[Json, string]>([
    [{}, "Error: Must provide 'instructions' or 'source' (or both)"],
    [{ instructions: 'x', parameters: { a: 1 } }, "Error: 'parameters' can only be used with 'source'"],
    [{ instructions: 'x', max_turns: 0 }, "Error: 'max_turns' must be at least 1"],
    [{ instructions: 'x', max_turns: 5e9 }, 'Error: max_turns must be between 1 and 4294967295 (got 5000000000)'],
    [{ source: 'nobody' }, "Error: Source 'nobody' not found."],
  ])('delegate %j', async (input, message) => {
    expect((await resultOf({ name: 'delegate', input }, { surfaces })).text).toBe(message)
  })

  test('delegate says the session of its child, and puts context into the system prompt', async () => {
    const input = { instructions: 'x', context: 'The API is at port 80.' }
    const { text, task, model } = await resultOf({ name: 'delegate', input }, { surfaces })

    expect(text).toBe('done')
    expect(task?.output.metadata?.['subagent_session_id']).toBe(task?.output.subagent?.child_conversation_id)
    expect(JSON.stringify(childRequests(model)[0]?.messages[0])).toContain(
      '# Reference material\\n\\nThe API is at port 80.',
    )
  })
})

describe('definitions', () => {
  test.each<[object, string]>([
    [{ subRecipe: {} }, 'has no option "subRecipe". Did you mean "subRecipes"?'],
    [{ subRecipes: { a: '/no/such.yaml' } }, 'Sub-recipe file does not exist: /no/such.yaml'],
    [{ surfaces: ['task'] }, 'surfaces must be a list of "subagent", "delegate", "Agent", not ["task"].'],
    [{ compat: 'goose' }, 'compat must be one of "aster"'],
    [{ mode: 'yolo' }, 'mode must be one of "auto", "approve", "smart_approve", "chat"'],
    [{ background: 0 }, 'background must be a whole number of at least 1'],
    [{ timeoutMs: 0 }, 'timeoutMs must be a number above 0'],
    [{ nested: 'yes' }, 'nested must be true or false'],
  ])('openSubagents(%j) is refused', (options, message) => {
    expect(() => openSubagents(options)).toThrow(message)
  })

  test('two agents with the tools do not disturb each other', async () => {
    const cwd = folderWith({ 'a.yaml': 'title: T\ndescription: D\nprompt: Go\n' })
    const model = scriptedModel(() => 'done')
    const plain = agent({ name: 'plain', instructions: '', model, tools: { ...openSubagents() } })
    const rich = agent({
      name: 'rich',
      instructions: '',
      model,
      tools: { ...openSubagents({ cwd, subRecipes: { a: 'a.yaml' } }) },
    })
    await using runtime = createRuntime()
    await Promise.all([runtime.run(plain, 'x').result, runtime.run(rich, 'x').result])

    const shown = (name: string) => model.requests.find(({ path: names }) => names[0] === name)?.tools[0]?.description
    expect(shown('plain')).not.toContain('• a')
    expect(shown('rich')).toContain('• a - D')
  })
})
