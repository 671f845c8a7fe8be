import path from 'node:path'
import { loadRecipe, readRecipeFile, writeRecipe } from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import { folderWith, minimal, recipeFile, refusalOf } from './support/folder.ts'

describe('reading a recipe', () => {
  test('JSON and YAML of one recipe are equal', async () => {
    const json = { title: 'T', description: 'D', prompt: 'P {{ a }}', parameters: [parameter('a')], extensions: [] }
    const yaml = `${minimal}prompt: P {{ a }}\nparameters:\n  - {key: a, input_type: string, requirement: required, description: d}\nextensions: []\n`
    const folder = folderWith({ 'a.json': JSON.stringify(json, null, '\t'), 'a.yaml': yaml })

    const [a, b] = await Promise.all(
      ['a.json', 'a.yaml'].map((name) => loadRecipe(path.join(folder, name), given({ a: 'x' }))),
    )

    const plain = ({ recipe }: typeof a & object) => ({
      ...recipe,
      file: null,
      parameters: recipe.parameters.map((one) => ({ ...one, line: null })),
    })
    expect(a && plain(a)).toEqual(b && plain(b))
  })

  test('the desktop wrapper is opened; an empty list of extensions is not the same as none', async () => {
    const wrapped = `name: saved\nisGlobal: true\nlastModified: 2025-01-01\nrecipe:\n  title: T\n  description: D\n  prompt: P\n  extensions: []\n  version: 1.10\n`
    const { recipe } = await loadRecipe(recipeFile(wrapped))
    const plain = await loadRecipe(recipeFile(`${minimal}prompt: P\n`))

    expect(recipe).toMatchObject({ title: 'T', prompt: 'P', extensions: [], version: '1.10' })
    expect(plain.recipe.extensions).toBeNull()
  })

  test('a list of extensions without summon is noted: delegation is there all the same', async () => {
    const noted = async (fields: string, others = {}) => {
      const folder = folderWith({ 'r.yaml': `${minimal}prompt: P\n${fields}`, ...others })
      const { notices } = await readRecipeFile(path.join(folder, 'r.yaml'))
      return notices.filter(({ code }) => code === 'extension')
    }

    expect(await noted('extensions: [{ type: builtin, name: developer }]\n')).toMatchObject([
      {
        level: 'note',
        line: 4,
        message: 'it may start subagents, though its `extensions` do not list `summon`',
        hint: expect.stringContaining('deny `agent:*`'),
      },
    ])
    expect(await noted('extensions: []\n')).toHaveLength(1)
    expect(await noted('')).toEqual([])
    expect(await noted('extensions: [{ type: platform, name: summon }]\n')).toEqual([])
    const sub = 'extensions: []\nsub_recipes: [{ name: s, path: s.yaml }]\n'
    expect(await noted(sub, { 's.yaml': `${minimal}prompt: P\n` })).toEqual([])
  })

  test('an empty list of available tools means all of them, and a note says so', async () => {
    const file = recipeFile(
      `${minimal}prompt: P\nextensions:\n  - { type: platform, name: summon, available_tools: [] }\n`,
    )
    const { notices } = await readRecipeFile(file)

    expect(notices).toMatchObject([
      { level: 'note', code: 'extension', line: 5, message: expect.stringMatching(/is empty: .* all tools/) },
    ])
  })

  test('a missing field and a wrong type are told in the known words, with their lines', async () => {
    const missing = await refusalOf(loadRecipe(recipeFile('description: D\nprompt: P\n')))
    const wrong = await refusalOf(loadRecipe(recipeFile(`${minimal}prompt: P\nsettings:\n  temperature: "x"\n`)))

    expect(missing).toMatchObject({ problem: 'missing field `title`', line: 1, hint: 'Add "title: ...".' })
    expect(wrong).toMatchObject({ problem: 'settings.temperature: invalid type: string "x", expected f32', line: 5 })
  })

  test('everything that is wrong is told at once', async () => {
    const { notices } = await refusalOf(
      loadRecipe(recipeFile('description: [1]\nsettings: 5\nretry: {max_retries: 0, checks: []}\n')),
    )

    expect(notices.map(({ message, line }) => [line, message])).toEqual([
      [1, 'missing field `title`'],
      [1, 'description: invalid type: sequence, expected a string'],
      [2, 'settings: invalid type: integer `5`, expected a map'],
      [3, 'Invalid retry configuration: max_retries must be greater than 0'],
      [1, 'Recipe must specify at least one of `instructions` or `prompt`.'],
    ])
  })

  test('texts stay as they are written', async () => {
    const defaults = ['1.10', '0x10', 'yes', '007', '10', '0.85', '1.0.0', '""', '~', '', 'null', 'true', '1e3', '"  "']
    const text = `${minimal}version: 1.10\nprompt: "${defaults.map((_, at) => `{{ p${at} }}`).join('|')}"\nparameters:\n${defaults
      .map(
        (value, at) =>
          `  - {key: p${at}, input_type: string, requirement: user_prompt, description: 5, default: ${value}}\n`,
      )
      .join('')}`
    const { recipe } = await readRecipeFile(recipeFile(text))

    expect(recipe.parameters.map((one) => one.default)).toEqual([
      ...['1.10', '0x10', 'yes', '007', '10', '0.85', '1.0.0', '', null, null, null, 'true', '1e3', '  '],
    ])
    expect([recipe.version, recipe.parameters[0]?.description]).toEqual(['1.10', '5'])
  })

  test('values of a sub-recipe are typed first and kept as JSON', async () => {
    const file = recipeFile(
      `${minimal}prompt: P\nsub_recipes:\n  - name: s\n    path: s.yaml\n    values: {a: 1, b: true, c: [1, 2], d: x, e: 1.10, f: ~}\n`,
      { 's.yaml': `${minimal}prompt: P\n` },
    )
    const { recipe } = await loadRecipe(file)

    expect(recipe.subRecipes[0]?.values).toEqual({ a: '1', b: 'true', c: '[1,2]', d: 'x', e: '1.1', f: 'null' })
  })

  test('extensions of every type are read; an invalid extension is named by its index', async () => {
    const { recipe } = await loadRecipe(recipeFile(`${minimal}prompt: P\nextensions:\n${EXTENSIONS}`))
    const text = await refusalOf(
      loadRecipe(recipeFile(`${minimal}prompt: P\nextensions: [developer, {name: x}, {type: sse, name: y, uri: z}]\n`)),
    )

    expect(recipe.extensions?.map(({ type, name, description }) => [type, name, description])).toEqual([
      ['stdio', 'a', ''],
      ['builtin', 'b', ''],
      ['platform', 'c', 'cc'],
      ['streamable_http', 'd', ''],
      ['frontend', 'e', ''],
      ['inline_python', 'f', ''],
    ])
    expect(recipe.extensions?.[0]).toMatchObject({
      cmd: 'uvx',
      args: ['x@1.10', '5'],
      envKeys: ['KEY'],
      timeoutSeconds: 300,
    })
    expect(text.notices.map(({ message }) => message)).toEqual([
      'extensions[0]: invalid type: string "developer", expected an extension with a `type` and a `name`',
      'extensions[1]: missing field `type`',
      expect.stringMatching(/^extensions\[2\]: unknown variant `sse`, expected one of `stdio`, .*`streamable_http`/),
    ])
  })

  test('names of the environment that decide what runs are dropped with a warning', async () => {
    const { recipe, notices } = await loadRecipe(
      recipeFile(
        `${minimal}prompt: P\nextensions:\n  - {type: stdio, name: a, cmd: x, args: [], envs: {PATH: /evil, ld_preload: /e.so, OK: "1"}}\n`,
      ),
    )

    expect(recipe.extensions?.[0]).toMatchObject({ envs: { OK: '1' } })
    expect(notices.filter(({ level }) => level === 'warning').map(({ message }) => message)).toEqual([
      'extensions[0].envs: PATH may not be set by a file; it is dropped',
      'extensions[0].envs: ld_preload may not be set by a file; it is dropped',
    ])
  })

  test('checks are shell or Shell; a retry needs at least one attempt', async () => {
    const retry = (more: string) =>
      recipeFile(
        `${minimal}prompt: P\nretry:\n  max_retries: 2\n  checks: [{type: shell, command: a}, {type: Shell, command: b}]\n${more}`,
      )
    const { recipe } = await loadRecipe(retry('  on_failure: c\n  timeout_seconds: 9\n'))
    const zero = await refusalOf(loadRecipe(retry('  timeout_seconds: 0\n')))
    const other = await refusalOf(
      loadRecipe(recipeFile(`${minimal}prompt: P\nretry: {max_retries: 1, checks: [{type: http, command: a}]}\n`)),
    )

    expect(recipe.retry).toEqual({
      maxRetries: 2,
      checks: [
        { type: 'shell', command: 'a' },
        { type: 'shell', command: 'b' },
      ],
      onFailure: 'c',
      timeoutSeconds: 9,
      onFailureTimeoutSeconds: null,
    })
    expect(zero).toMatchObject({
      problem: 'Invalid retry configuration: timeout_seconds must be greater than 0 if specified',
      line: 7,
    })
    expect(other.problem).toBe('retry.checks[0]: unknown variant `http`, expected `shell`')
  })

  test('the words of goose and of Aster are the same; where both differ, goose wins and it is told', async () => {
    const settings = async (text: string) => loadRecipe(recipeFile(`${minimal}prompt: P\nsettings: {${text}}\n`))
    const goose = await settings('goose_provider: p, goose_model: 4.5, temperature: 0, max_turns: 7')
    const aster = await settings('aster_provider: p, aster_model: 4.5, temperature: 0, max_turns: 7')
    const both = await settings('goose_model: a, aster_model: b')

    expect(goose.recipe.settings).toEqual({ provider: 'p', model: '4.5', temperature: 0, maxTurns: 7 })
    expect(aster.recipe.settings).toEqual(goose.recipe.settings)
    expect(both.recipe.settings.model).toBe('a')
    expect(both.notices).toMatchObject([
      { level: 'warning', message: 'settings: goose_model and aster_model differ; goose_model wins' },
    ])
  })

  test('a response with more than 1,500 keywords is refused: to compile it would keep others waiting (I10)', async () => {
    const limits = (count: number) => Array.from({ length: count }, (_, at) => `{maxLength: ${at + 9}}`).join(', ')
    const written = (count: number) => `${minimal}prompt: P\nresponse: {json_schema: {allOf: [${limits(count)}]}}\n`

    const { problem } = await refusalOf(loadRecipe(recipeFile(written(1_500))))
    expect(problem).toBe('JSON schema validation failed: it has more than 1500 keywords')
    await loadRecipe(recipeFile(written(1_499)))
  })

  test('a response without a usable schema is refused when it is read', async () => {
    const problems = await Promise.all(
      [
        '{}',
        '{json_schema: {}}',
        '{json_schema: true}',
        '{json_schema: {type: objekt}}',
        '{json_schema: {type: object, properties: 5}}',
      ].map(
        async (response) =>
          (await refusalOf(loadRecipe(recipeFile(`${minimal}prompt: P\nresponse: ${response}\n`)))).problem,
      ),
    )

    for (const problem of problems) expect(problem).toMatch(/^JSON schema validation failed: /)
    const { recipe } = await loadRecipe(
      recipeFile(`${minimal}prompt: P\nresponse: {json_schema: {type: object, properties: {a: {type: string}}}}\n`),
    )
    expect(recipe.response?.jsonSchema).toEqual({ type: 'object', properties: { a: { type: 'string' } } })
  })

  test('unknown keys anywhere are told and harm nothing', async () => {
    const { notices } = await loadRecipe(
      recipeFile(`${minimal}prompt: P\nparameter: []\nsettings: {speed: 1}\nid: 5\n`),
    )

    expect(notices.map(({ level, message, line, hint }) => [level, message, line, hint])).toEqual([
      ['note', 'unknown key `parameter`', 4, 'It is ignored. Did you mean "parameters"?'],
      ['note', 'unknown key `id`', 6, 'It is ignored.'],
      ['note', 'unknown key `settings.speed`', 5, 'It is ignored.'],
    ])
  })

  test('invisible characters that only a model reads are refused; a flag made of them is not', async () => {
    const hidden = await refusalOf(loadRecipe(recipeFile(`${minimal}prompt: "do\\U000E0041 it"\n`)))
    const flag = await loadRecipe(
      recipeFile(`${minimal}prompt: "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}"\n`),
    )

    expect(hidden.problem).toBe('Recipe contains potentially harmful content')
    expect(flag.notices).toEqual([])
  })
})

describe('writing a recipe', () => {
  test('what is written reads as the same; texts of several lines are blocks', async () => {
    const prompt = 'Say "hello":\n{% if a == "x" %}\n  yes: {{ a }}\n{% endif %}\n\n# no comment\n  - not: a list\n'
    const file = recipeFile('', { 's.yaml': `${minimal}prompt: P\n` })
    const parameters = [
      {
        key: 'a',
        inputType: 'string',
        requirement: 'optional',
        description: 'd: e',
        default: '1.10',
        options: [],
        line: null,
      },
    ] as const
    const recipe = {
      ...(await loadRecipe(path.join(path.dirname(file), 's.yaml'))).recipe,
      title: 'yes: no',
      prompt,
      version: '1.10',
      parameters,
      extensions: [],
      subRecipes: [
        {
          name: 's',
          path: path.join(path.dirname(file), 's.yaml'),
          folder: path.dirname(file),
          values: { a: '007' },
          locked: ['a'],
          sequentialWhenRepeated: true,
          description: null,
          line: null,
        },
      ],
    }
    const text = await writeRecipe(recipe, path.dirname(file))
    const again = await readRecipeFile(recipeFile(text, { 's.yaml': `${minimal}prompt: P\n` }))

    expect(text).toContain('prompt: |\n  Say "hello":\n  {% if a == "x" %}\n')
    expect(text).not.toContain('\\n')
    expect({
      ...again.recipe,
      file: null,
      parameters: again.recipe.parameters.map((one) => ({ ...one, line: null })),
    }).toMatchObject({
      ...recipe,
      file: null,
      subRecipes: [{ name: 's', values: { a: '007' }, locked: ['a'], sequentialWhenRepeated: true }],
    })
  })
})

const EXTENSIONS = `  - {type: stdio, name: a, cmd: uvx, args: [x@1.10, 5], description: null, env_keys: [KEY], timeout: 300, bundled: false}
  - {type: builtin, name: b}
  - {type: platform, name: c, description: cc}
  - {type: streamable_http, name: d, uri: "https://x", headers: {A: "\${B}"}, available_tools: [t]}
  - {type: frontend, name: e, tools: [{name: t}]}
  - {type: inline_python, name: f, code: "print(1)", dependencies: [numpy]}
`

function parameter(key: string) {
  return { key, input_type: 'string', requirement: 'required', description: 'd' }
}

function given(parameters: Readonly<Record<string, unknown>>) {
  return { parameters }
}
