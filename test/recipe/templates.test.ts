import { symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { loadRecipe } from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import { folderWith, minimal, recipeFile, refusalOf } from './support/folder.ts'

const PARAMETER = (key: string) => `  - {key: ${key}, input_type: string, requirement: required, description: d}\n`
const WITH_A = `parameters:\n${PARAMETER('a')}`

describe('templates', () => {
  test('what is no expression stays as it is written', async () => {
    const prompt = async (text: string, parameters = '') => {
      const file = recipeFile(`${minimal}prompt: |-\n  ${text}\n${parameters}`)
      return (await loadRecipe(file, { parameters: { valid_var: 'V' } })).recipe.prompt
    }

    expect(await prompt('{{hf model org}}_{{hf model name}}')).toBe('{{hf model org}}_{{hf model name}}')
    expect(await prompt('{{valid_var}} and {{invalid var}}', `parameters:\n${PARAMETER('valid_var')}`)).toBe(
      'V and {{invalid var}}',
    )
    expect(await prompt("{{'{{param_key}}'}}")).toBe('{{param_key}}')
    expect(await prompt('{% raw %}{{hf model org}} {{ x }}{% endraw %}')).toBe('{{hf model org}} {{ x }}')
    expect(await prompt('see {#123} and {% off %} and {%')).toBe('see {#123} and {% off %} and {%')
    expect(await prompt('{{ valid_var | replace("V", "}}") }}', `parameters:\n${PARAMETER('valid_var')}`)).toBe('}}')
    expect(await prompt('a {# gone #} b')).toBe('a  b')
  })

  test('an expression of another program is refused with how to escape it; the lenient keep it', async () => {
    const file = recipeFile(`${minimal}prompt: |\n  line\n  token: \${{ secrets.TOKEN }}\n`)
    const { problem, line, hint } = await refusalOf(loadRecipe(file))
    const { recipe, notices } = await loadRecipe(file, { mode: 'lenient' })

    expect([problem, line]).toEqual(['Missing definitions for parameters in the recipe file: secrets.TOKEN.', 5])
    expect(hint).toContain('{% raw %}{{ secrets.TOKEN }}{% endraw %}')
    expect(recipe.prompt).toBe(`line\ntoken: ${'$'}{{ secrets.TOKEN }}\n`)
    expect(notices).toContainEqual(expect.objectContaining({ level: 'warning', message: problem }))
  })

  test.each([
    'two\nlines',
    'a: b',
    '# no comment',
    '"quoted\' \\n',
    '{{ recipe_dir }} {% if x %}',
    '\n- key: evil\n  prompt: pwned\ntitle: evil',
    '|\n  block',
    '*alias &anchor !!tag',
    '\u0000\ud800\ue0f01:0\ue0f1',
  ])('the value %j is data: it is there as it is and nothing else changes', async (value) => {
    const text = `${minimal}instructions: "[{{ a }}]"\nprompt: |\n  before\n    {{ a }}\n  after\nactivities: ["{{ a }}", x]\n${WITH_A}`
    const { recipe } = await loadRecipe(recipeFile(text), { parameters: { a: value } })

    const kept = value.toWellFormed()
    expect(recipe).toMatchObject({
      title: 'T',
      instructions: `[${kept}]`,
      prompt: `before\n  ${kept}\nafter\n`,
      activities: [kept, 'x'],
      extensions: null,
    })
  })

  test('a colon and a docstring are left alone', async () => {
    const prompt = 'def f():\n    """doc"""\nkey:\n""\n'
    const file = recipeFile(`${minimal}prompt: |\n${prompt.replace(/^(?=.)/gm, '  ')}`)

    expect((await loadRecipe(file)).recipe.prompt).toBe(prompt)
  })

  test('indent gives what it gives where the whole file is rendered; recipe_dir is known everywhere', async () => {
    const file = recipeFile(
      `${minimal}prompt: |\n  Text:\n  {{ a | indent(2) }}\n    {{ a | indent(4) }}\n  {{ recipe_dir }}\n${WITH_A}extensions:\n  - {type: stdio, name: x, cmd: node, args: ["{{ recipe_dir }}/server.js"]}\n`,
    )
    const { recipe } = await loadRecipe(file, { parameters: { a: 'one\ntwo' } })
    const folder = path.dirname(file)

    expect(recipe.prompt).toBe(`Text:\none\ntwo\n  one\n  two\n${folder}\n`)
    expect(recipe.extensions?.[0]).toMatchObject({ args: [`${folder}/server.js`] })
  })

  test('a recipe can extend another: blocks are replaced, parameters inherited', async () => {
    const parent = `version: 1.0.0\ntitle: Parent\ndescription: D\n{% block prompt %}\nprompt: parent\n{% endblock %}\nparameters:\n${PARAMETER('is_enabled')}`
    const child = `{% extends "parent.yaml" -%}\n{% block prompt %}\nprompt: |\n  what is {{ is_enabled }}\n  {% if is_enabled == "true" %}on{% else %}off{% endif %}\n{% endblock %}\n`
    const folder = folderWith({ 'parent.yaml': parent, 'child.yaml': child })
    const { recipe } = await loadRecipe(path.join(folder, 'child.yaml'), { parameters: { is_enabled: 'true' } })

    expect(recipe).toMatchObject({ title: 'Parent', prompt: 'what is true\non\n', parameters: [{ key: 'is_enabled' }] })
    expect((await refusalOf(loadRecipe(path.join(folder, 'child.yaml')))).problem).toBe(
      'Missing required parameters: ["is_enabled"]',
    )
  })

  test('files beside the recipe and below can be included; nothing else can', async () => {
    const folder = folderWith({
      'project/parts/intro.md': 'Hello {{ a }}, {% include "parts/more.md" %}',
      'project/parts/more.md': 'more: <{{ a }}>',
      'secret.txt': 'SECRET',
    })
    const project = path.join(folder, 'project')
    symlinkSync('../../secret.txt', path.join(project, 'parts/linked.md'))
    symlinkSync('parts/more.md', path.join(project, 'near.md'))
    const file = path.join(project, 'a.yaml')
    const including = async (name: string) => {
      writeFileSync(file, `${minimal}prompt: |-\n  ---\n  {% include "${name}" %}\n${WITH_A}`)
      return (await loadRecipe(file, { parameters: { a: '<x>\ny' } })).recipe.prompt
    }

    expect(await including('parts/intro.md')).toBe('---\nHello <x>\ny, more: <<x>\ny>')
    expect(await including('near.md')).toBe('---\nmore: <<x>\ny>')
    for (const name of [
      '../secret.txt',
      '../../etc/passwd',
      '/etc/passwd',
      'parts/../../secret.txt',
      'C:/x',
      '..\\\\x',
    ]) {
      expect(await refusalOf(including(name)), name).toMatchObject({
        problem: expect.stringMatching(/is outside the folder of the recipe$/),
        line: 5,
        hint: expect.stringContaining('folder of the recipe'),
      })
    }
    expect((await refusalOf(including('parts/linked.md'))).problem).toBe(
      '"parts/linked.md" cannot be included: the file is outside the folder of the recipe',
    )
    expect((await refusalOf(including('parts'))).problem).toContain('"parts" cannot be included: it is a folder')
    expect(await refusalOf(including('no-such.md'))).toMatchObject({
      problem: expect.stringContaining('template not found'),
      line: 5,
    })
  })
})

describe('tags around keys', () => {
  const structural = `${minimal}{% if kind == "long" %}
instructions: Long {{ a }}
extensions:
  {% for name in ["x", "y"] %}
  - type: builtin
    name: "{{ name }}-{{ a }}"
  {% endfor %}
{% else %}
prompt: {{ a }}
{% endif %}
settings:
  temperature: {{ t }}
parameters:
${PARAMETER('a')}${PARAMETER('kind')}${PARAMETER('t')}`

  test('choose parts of the file, and values are still data', async () => {
    const evil = 'x\nprompt: pwned\ntitle: pwned "'
    const long = await loadRecipe(recipeFile(structural), { parameters: { a: evil, kind: 'long', t: '0.5' } })
    const short = await loadRecipe(recipeFile(structural), { parameters: { a: evil, kind: 'short', t: '0.5' } })

    expect(long.recipe).toMatchObject({
      title: 'T',
      instructions: `Long ${evil}`,
      prompt: null,
      settings: { temperature: 0.5 },
    })
    expect(long.recipe.extensions?.map(({ name }) => name)).toEqual([`x-${evil}`, `y-${evil}`])
    expect(short.recipe).toMatchObject({ title: 'T', instructions: null, prompt: evil, extensions: null })
  })

  test('in comments count as tags do there', async () => {
    const text = `${minimal}prompt: "{{ a }}"\n# {% if a == "x" %}\nversion: 2\n# {% endif %}\n${WITH_A}`

    expect((await loadRecipe(recipeFile(text), { parameters: { a: 'x' } })).recipe.version).toBe('2')
    expect((await loadRecipe(recipeFile(text), { parameters: { a: 'y' } })).recipe.version).toBe('1.0.0')
  })

  test('macros, captured text and names shared between fields work', async () => {
    const text = `{% macro greet(who) %}Hello {{ who }}!{% endmacro %}{% set both %}{{ a }}+{{ a }}{% endset %}${minimal}instructions: "{{ greet(a) }}"\nprompt: {{ both }}\nactivities:\n{% filter upper %}\n  - say {{ a }}\n{% endfilter %}\n${WITH_A}`
    const shared = `${minimal}instructions: '{% set word = a ~ "!" %}{{ word }}'\nprompt: '{{ word }}'\n${WITH_A}`
    const { recipe } = await loadRecipe(recipeFile(text), { parameters: { a: 'x: {y' } })
    const other = await loadRecipe(recipeFile(shared), { parameters: { a: 'x\n- "' } })

    expect(recipe).toMatchObject({ instructions: 'Hello x: {y!', prompt: 'x: {y+x: {y', activities: ['SAY x: {y'] })
    expect(other.recipe).toMatchObject({ instructions: 'x\n- "!', prompt: 'x\n- "!' })
  })

  test('a value cannot be the name of a key, nor the argument of a filter around keys', async () => {
    const key = recipeFile(`${minimal}{% if true %}\n{{ a }}: x\n{% endif %}\nprompt: P\n${WITH_A}`)
    const filter = recipeFile(`{% filter replace("D", a) %}\n${minimal}prompt: P\n{% endfilter %}\n${WITH_A}`)

    expect((await refusalOf(loadRecipe(key, { parameters: { a: 'title2' } }))).problem).toBe(
      'a parameter is used as the name of a key',
    )
    expect((await refusalOf(loadRecipe(filter, { parameters: { a: 'x' } }))).problem).toContain(
      '{% filter %} around keys',
    )
  })

  test('an undefined name is refused by the strict, as in a field', async () => {
    const text = `${minimal}{% if true %}\nprompt: "x{{ nobody }}"\n{% endif %}\n`

    expect((await refusalOf(loadRecipe(recipeFile(text)))).problem).toBe(
      'Missing definitions for parameters in the recipe file: nobody.',
    )
    expect((await loadRecipe(recipeFile(text), { mode: 'lenient' })).recipe.prompt).toBe('x')
  })

  test('YAML that is broken after rendering is told as that', async () => {
    const { problem } = await refusalOf(loadRecipe(recipeFile(`${minimal}{% if true %}\nprompt: [a\n{% endif %}\n`)))

    expect(problem).toMatch(/^after rendering, line \d+ of the rendered text: not valid YAML: /)
  })
})

describe('what the engine says', () => {
  test.each([
    ['{% if a %}x', /^Failed to render the recipe: syntax error/, 5],
    ['{{ a.split(",") }}', /^Failed to render the recipe: unknown method: string has no method named split/, 5],
    ['{{ a | nosuch }}', /unknown filter/, 5],
    ['{{ a.b }}', /^Missing definitions for parameters in the recipe file: a\.b\./, 5],
    ['{% for x in a %}{% for y in a %}{{ x }}{% endfor %}', /syntax error/, 5],
  ])('%s is refused with the line of the field', async (template, problem, line) => {
    const file = recipeFile(`${minimal}prompt: |\n  first\n  ${template}\n${WITH_A}`)

    expect(await refusalOf(loadRecipe(file, { parameters: { a: 'x' } }))).toMatchObject({
      problem: expect.stringMatching(problem),
      line,
    })
  })

  test('loops over a value and tests of it work in a field', async () => {
    const text = `${minimal}prompt: '{% for line in a | lines %}{{ loop.index }}={{ line }};{% endfor %}{% if a is defined and "b" in a %}!{% endif %}'\n${WITH_A}`

    expect((await loadRecipe(recipeFile(text), { parameters: { a: 'a\nb' } })).recipe.prompt).toBe('1=a;2=b;!')
  })
})
