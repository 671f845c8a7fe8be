import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describeRecipe, loadAgentFile, loadRecipe, readRecipeFile, secretsOf, subRecipeValues } from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import { folderWith, minimal, recipeFile, refusalOf } from './support/folder.ts'

test('reading a recipe or an agent file runs nothing of it: no server, no check, no command of a template', async () => {
  const file = recipeFile(
    `${minimal}prompt: Go\nextensions: [{ type: stdio, name: s, cmd: touch, args: [started] }]\nretry: { max_retries: 1, checks: [{ type: shell, command: touch started }], on_failure: touch started }\n`,
  )
  const server = 'mcpServers: { s: { command: touch, args: [started] } }'
  const agent = '.claude/agents/a.md'
  const folder = folderWith({
    [agent]: `---\nname: a\ndescription: d\n${server}\n---\nDo it with !\`touch started\`.\n`,
  })
  await readRecipeFile(file)
  await loadRecipe(file)
  await loadAgentFile(path.join(folder, agent))

  for (const place of [path.dirname(file), folder, path.join(folder, '.claude/agents'), '.']) {
    expect(existsSync(path.join(place, 'started'))).toBe(false)
  }
})

describe('parameters', () => {
  test('values and defaults are put in; an empty default is one', async () => {
    const file = recipeFile(
      `${minimal}instructions: I am {{ my_name }}.\nprompt: "{{ my_name }}, {{ mood }}{{ nothing }}!"\n${parameters(['my_name'], ['mood', 'optional', 'fine'], ['nothing', 'optional', '""'])}`,
    )
    const { recipe } = await loadRecipe(file, { parameters: { my_name: 'Ada', unheard_of: 1 } })

    expect([recipe.instructions, recipe.prompt]).toEqual(['I am Ada.', 'Ada, fine!'])
  })

  test('what is undefined and what is unused is told in one message', async () => {
    const file = recipeFile(`${minimal}prompt: "{{ a }} and {{ b.c }}"\n${parameters(['wrong_param_key'])}`)
    const { problem, line } = await refusalOf(loadRecipe(file))

    expect(problem).toBe(
      'Missing definitions for parameters in the recipe file: a, b.c.\nUnnecessary parameter definitions: wrong_param_key.',
    )
    expect(line).toBe(3)
  })

  test('all that is missing is named, and nothing is rendered', async () => {
    const file = recipeFile(
      `${minimal}prompt: "{{ a }} {{ b }} {{ c }}"\n${parameters(['a'], ['b'], ['c', 'optional', 'x'])}`,
    )

    expect(await refusalOf(loadRecipe(file))).toMatchObject({
      problem: 'Missing required parameters: ["a", "b"]',
      hint: 'Give a=..., b=....',
    })
  })

  test('a file parameter is the text of the file, whatever is in it', async () => {
    const content = 'first\n    deep: "x"\n\n- key: value\n# {{ not_a_template }}\n'
    const file = recipeFile(
      `${minimal}prompt: |\n  Read:\n  {{ f }}\n  Done.\n${parameters(['f', 'required', null, 'file'])}`,
      { 'content.txt': content },
    )
    const { recipe } = await loadRecipe(file, { parameters: { f: path.join(path.dirname(file), 'content.txt') } })
    const missing = await refusalOf(loadRecipe(file, { parameters: { f: 'no-such.txt' } }))
    const folder = await refusalOf(loadRecipe(file, { parameters: { f: '/tmp' } }))
    const withDefault = await refusalOf(
      loadRecipe(recipeFile(`${minimal}prompt: "{{ f }}"\n${parameters(['f', 'optional', '/etc/passwd', 'file'])}`)),
    )

    expect(recipe.prompt).toBe(`Read:\n${content}\nDone.\n`)
    expect(missing.problem).toBe('Failed to read parameter file no-such.txt: there is no such file')
    expect(folder.problem).toBe('Failed to read parameter file /tmp: it is a folder, not a file')
    expect(withDefault.problem).toBe(
      'File parameters cannot have default values to avoid importing sensitive user files: f',
    )
  })

  test('whoever loads a recipe can decide which files its parameters read', async () => {
    const file = recipeFile(`${minimal}prompt: "{{ f }}"\n${parameters(['f', 'required', null, 'file'])}`)
    const readFile = async (place: string) => {
      if (place.startsWith('/etc/')) throw new Error('it is not allowed')
      return `<${path.basename(place)}>`
    }

    expect((await loadRecipe(file, { parameters: { f: '/x/y.txt' }, readFile })).recipe.prompt).toBe('<y.txt>')
    expect((await refusalOf(loadRecipe(file, { parameters: { f: '/etc/passwd' }, readFile }))).problem).toBe(
      'Failed to read parameter file /etc/passwd: it is not allowed',
    )
  })

  test('a person is asked for what is to be prompted, with its key and description; a file is then read', async () => {
    const asked: string[] = []
    const file = recipeFile(
      `${minimal}prompt: "{{ a }} {{ f }}"\n${parameters(['a', 'user_prompt'], ['f', 'user_prompt', null, 'file'])}`,
      { 'x.txt': 'content' },
    )
    const { recipe } = await loadRecipe(file, {
      ask: ({ key, description }) => {
        asked.push(`${key}: ${description}`)
        return key === 'a' ? 'A' : path.join(path.dirname(file), 'x.txt')
      },
    })

    expect([recipe.prompt, asked]).toEqual(['A content', ['a: about a', 'f: about f']])
    expect((await refusalOf(loadRecipe(file))).problem).toBe('Missing required parameters: ["a", "f"]')
  })

  test.each([
    ['number', 'abc', 'a number'],
    ['number', '', 'a number'],
    ['boolean', 'maybe', 'true or false'],
    ['date', '2026-02-30', 'a date such as 2026-01-31'],
    ['date', 'soon', 'a date such as 2026-01-31'],
    ['select', 'z', 'one of x, y'],
  ] as const)(
    '%s %j is refused before anything runs, and is a warning to the lenient',
    async (type, value, expected) => {
      const file = recipeFile(
        `${minimal}prompt: "={{ p }}"\nparameters:\n  - {key: p, input_type: ${type}, requirement: required, description: d, options: [x, y]}\n`,
      )
      const problem = `the parameter \`p\` must be ${expected}, not ${JSON.stringify(value)}`

      expect(await refusalOf(loadRecipe(file, { parameters: { p: value } }))).toMatchObject({ problem, line: 5 })
      const { notices } = await loadRecipe(file, { parameters: { p: value }, mode: 'lenient' })
      expect(notices).toContainEqual(expect.objectContaining({ level: 'warning', message: problem }))
    },
  )

  test.each([
    ['number', '-1.5e3'],
    ['number', 42],
    ['boolean', true],
    ['boolean', 'false'],
    ['date', '2026-02-28'],
    ['date', '2026-02-28T10:00:00Z'],
    ['select', 'y'],
  ])('%s %j fits', async (type, value) => {
    const file = recipeFile(
      `${minimal}prompt: "={{ p }}"\nparameters:\n  - {key: p, input_type: ${type}, requirement: required, description: d, options: [x, y]}\n`,
    )

    expect((await loadRecipe(file, { parameters: { p: value } })).recipe.prompt).toBe(`=${value}`)
  })

  test('what a recipe needs can be told without opening the files of its parameters', async () => {
    const file = recipeFile(
      `${minimal}prompt: "{{ a }} {{ f }} {{ n }}"\n${parameters(['a'], ['f', 'required', null, 'file'], ['n', 'optional', '5', 'number'])}`,
    )
    const description = await describeRecipe(file, { parameters: { f: '/no/such/file' } })

    expect(description).toMatchObject({ title: 'T', description: 'D', missing: ['a'] })
    expect(description.inputSchema).toEqual({
      type: 'object',
      properties: { a: { type: 'string', description: 'about a' }, n: { type: 'number', description: 'about n' } },
      required: ['a'],
      additionalProperties: false,
    })
  })

  test.each([
    ['number', 'abc', '', 'a number'],
    ['boolean', 'maybe', '', 'true or false'],
    ['date', 'banana', '', 'a date such as 2026-01-31'],
    ['select', 'zzz', ', options: [x, y]', 'one of x, y'],
  ])('a default of the type %s that is %s is refused when the file is read', async (type, value, more, expected) => {
    const file = recipeFile(
      `${minimal}prompt: "{{ a }}"\nparameters:\n  - {key: a, input_type: ${type}, requirement: optional, description: d, default: ${value}${more}}\n`,
    )
    const problem = `the parameter \`a\` has a default that must be ${expected}, not "${value}"`

    for (const load of [loadRecipe, readRecipeFile]) {
      expect(await refusalOf(load(file))).toMatchObject({ problem, line: 5, hint: 'Correct the default.' })
    }
    const { notices } = await loadRecipe(file, { mode: 'lenient' })
    expect(notices).toMatchObject([{ level: 'warning', message: problem }])
  })

  test('a default on a required parameter is used and told; optional needs one', async () => {
    const { recipe, notices } = await loadRecipe(
      recipeFile(`${minimal}prompt: "{{ a }}"\n${parameters(['a', 'required', 'x'])}`),
    )
    const optional = recipeFile(`${minimal}prompt: "{{ a }}"\n${parameters(['a', 'optional'])}`)

    expect(recipe.prompt).toBe('x')
    expect(notices).toMatchObject([
      { level: 'note', message: 'the parameter `a` is required and has a default, which is used' },
    ])
    expect((await refusalOf(loadRecipe(optional))).problem).toBe(
      'Optional parameters missing default values in the recipe: a. Please provide defaults.',
    )
  })

  test('a key that appears twice is refused', async () => {
    const { problem, line } = await refusalOf(
      loadRecipe(recipeFile(`${minimal}prompt: "{{ a }}"\n${parameters(['a'], ['a'])}`)),
    )

    expect([problem, line]).toEqual(['parameters[1]: the parameter `a` is defined twice', 6])
  })
})

describe('sub-recipes', () => {
  test('a path is taken from the folder of the recipe; an absolute one is kept; a missing one is told', async () => {
    const folder = folderWith({ 'sub/s.yaml': `${minimal}prompt: P\n`, 'far/t.yaml': `${minimal}prompt: P\n` })
    const file = path.join(folder, 'a.yaml')
    const put = (place: string) =>
      writeFileSync(file, `${minimal}prompt: P\nsub_recipes: [{name: s, path: ${place}}]\n`)
    put('./sub/../sub/s.yaml')
    const relative = await loadRecipe(file)
    put(path.join(folder, 'far/t.yaml'))
    const absolute = await loadRecipe(file)
    put('./nowhere.yaml')

    expect(relative.recipe.subRecipes[0]?.path).toBe(path.join(folder, 'sub/s.yaml'))
    expect(absolute.recipe.subRecipes[0]?.path).toBe(path.join(folder, 'far/t.yaml'))
    expect((await refusalOf(loadRecipe(file))).problem).toBe(
      `Sub-recipe file does not exist: ${path.join(folder, 'nowhere.yaml')}`,
    )
  })

  test('a call wins over a value; not where it is locked, and then it is told', () => {
    const values = { a: '1', b: '2' }

    expect(subRecipeValues({ values, locked: false }, { a: 5, c: [1] })).toEqual({
      values: { a: '5', b: '2', c: '[1]' },
      refused: [],
    })
    expect(subRecipeValues({ values, locked: true }, { a: 5, b: 2 })).toEqual({ values, refused: ['a'] })
    expect(subRecipeValues({ values, locked: ['b'] }, { a: 5, b: 6 })).toEqual({
      values: { a: '5', b: '2' },
      refused: ['b'],
    })
  })

  test('values take the values of the recipe above', async () => {
    const file = recipeFile(
      `${minimal}prompt: "{{ dir }}"\n${parameters(['dir'])}sub_recipes:\n  - name: s\n    path: "{{ recipe_dir }}/s.yaml"\n    values: {target: "{{ dir }}/src"}\n`,
      { 's.yaml': `${minimal}prompt: P\n` },
    )
    const { recipe } = await loadRecipe(file, { parameters: { dir: '/x: {y}\n- z' } })

    expect(recipe.subRecipes[0]).toMatchObject({
      path: path.join(path.dirname(file), 's.yaml'),
      values: { target: '/x: {y}\n- z/src' },
    })
  })

  test('secrets of a recipe and of all below it, each once; what cannot be read is passed over', async () => {
    const extension = (name: string, ...keys: string[]) =>
      `extensions: [{type: stdio, name: ${name}, cmd: x, args: [], env_keys: [${keys.join(', ')}]}]\n`
    const folder = folderWith({
      'a.yaml': `${minimal}prompt: P\n${extension('ea', 'K1', 'K2')}sub_recipes: [{name: b, path: b.yaml}, {name: c, path: c.yaml}]\n`,
      'b.yaml': `${minimal}prompt: P\n${extension('eb', 'K2', 'K3')}sub_recipes: [{name: d, path: d.yaml}]\n`,
      'c.yaml': 'env_keys: [broken',
      'd.yaml': `${minimal}prompt: P\n${extension('ed', 'K4')}`,
    })
    const { recipe } = await loadRecipe(path.join(folder, 'a.yaml'))

    expect((await secretsOf(recipe)).map(({ key, extension: name, file }) => [key, name, path.basename(file)])).toEqual(
      [
        ['K1', 'ea', 'a.yaml'],
        ['K2', 'ea', 'a.yaml'],
        ['K3', 'eb', 'b.yaml'],
        ['K4', 'ed', 'd.yaml'],
      ],
    )
  })

  test('a circle is refused, also through links and values; using a sub-recipe twice is not a circle', async () => {
    const sub = (name: string, place = `${name}.yaml`) => `sub_recipes: [{name: ${name}, path: "${place}"}]\n`
    const folder = folderWith({
      'a.yaml': `${minimal}prompt: P\n${sub('b')}`,
      'b.yaml': `${minimal}prompt: P\n${sub('c')}`,
      'c.yaml': `${minimal}prompt: "{{ next }}"\n${parameters(['next', 'optional', 'linked.yaml'])}${sub('a', '{{ next }}')}`,
      'd.yaml': `${minimal}prompt: P\nsub_recipes: [{name: x, path: e.yaml}, {name: y, path: e.yaml}]\n`,
      'e.yaml': `${minimal}prompt: P\n`,
    })
    symlinkSync('a.yaml', path.join(folder, 'linked.yaml'))
    mkdirSync(path.join(folder, 'deep'))

    const { problem, hint } = await refusalOf(loadRecipe(path.join(folder, 'a.yaml')))

    expect(problem).toBe('sub-recipes lead in a circle: a.yaml -> b.yaml -> c.yaml -> a.yaml')
    expect(hint).toBe('A recipe cannot be part of itself: remove one of these sub-recipes.')
    expect((await loadRecipe(path.join(folder, 'd.yaml'))).recipe.subRecipes).toHaveLength(2)
  })
})

type Parameter = readonly [key: string, requirement?: string, fallback?: string | null, type?: string]

function parameters(...list: readonly Parameter[]): string {
  const lines = list.map(([key, requirement = 'required', fallback = null, type = 'string']) => {
    const more = fallback === null ? '' : `, default: ${fallback}`
    return `  - {key: ${key}, input_type: ${type}, requirement: ${requirement}, description: about ${key}${more}}\n`
  })
  return `parameters:\n${lines.join('')}`
}
