import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { loadAgentFile, loadDefinition, loadRecipe } from 'legate/recipe'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RecipeError } from '../../src/core/base/error.ts'
import { watchWork } from '../support/pace.ts'
import { folderWith, minimal, recipeFile } from './support/folder.ts'

/** Of work: what a busy machine adds is not ours. */
const BOUND_MS = 1_000

const parameter = '  - {key: a, input_type: string, requirement: required, description: d}\n'
const warm = `${minimal}prompt: "{% for x in [1] %}{{ a }}{% endfor %}"\nparameters:\n${parameter}`
const folder = folderWith({ 'recipe.yaml': warm }, afterAll)

/** The engine and the parser are loaded before anything is timed. */
beforeAll(async () => {
  await loadRecipe(path.join(folder, 'recipe.yaml'), { parameters: { a: '1' } })
})

interface Refused {
  readonly problem: string
  readonly line: number | null
  readonly hint: string | null
  readonly ms: number
}

/** On a busy machine work costs more too, so what is slow is tried again, and the fastest counts. */
async function refused(work: () => Promise<unknown>, tries = 4): Promise<Refused> {
  const workMs = watchWork()
  const error = await work().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const ms = workMs()
  if (!RecipeError.isInstance(error)) throw new Error(`not refused as it should be: ${String(error)}`)
  if (ms >= BOUND_MS && tries > 1) return refused(work, tries - 1)
  const { problem, line, hint } = error.details as unknown as Omit<Refused, 'ms'>
  return { problem, line, hint, ms }
}

describe('I10: a hostile recipe is a typed error in under a second', () => {
  const alias = `a0: &a0 [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 12 }, (_, at) => `a${at + 1}: &a${at + 1} [${`*a${at},`.repeat(9).slice(0, -1)}]\n`).join('')}`

  test.each<[name: string, text: string, problem: RegExp, line: number | null]>([
    ['an alias bomb', `${minimal}prompt: P\n${alias}`, /aliases stand for too many values/, 8],
    ['an alias in itself', `${minimal}prompt: &p [*p]\n`, /inside of what it stands for/, 3],
    ['an unknown alias', `${minimal}prompt: *nobody\n`, /nothing before it is named &nobody/, 3],
    ['400 kB of open brackets', `${minimal}prompt: ${'['.repeat(400_000)}`, /nested more than 100 levels deep/, 3],
    ['400 kB of open braces', `${minimal}prompt: ${'{a: '.repeat(100_000)}`, /nested more than 100 levels deep/, 3],
    ['nested lists', `${minimal}prompt:\n${'- '.repeat(5_000)}x`, /nested more than 100 levels deep/, 4],
    [
      '50,000 keys',
      `${minimal}prompt: P\n${Array.from({ length: 50_000 }, (_, at) => `k${at}:\n`).join('')}`,
      /too many values/,
      null,
    ],
    ['a key twice', `${minimal}prompt: P\nprompt: Q\n`, /the key "prompt" is there twice/, 4],
    ['two documents', `${minimal}prompt: P\n---\n${minimal}prompt: P\n`, /more than one document/, 4],
    ['no YAML', `${minimal}prompt: a: b: c\n`, /not valid YAML/, 3],
    ['a list', '- a\n- b\n', /invalid type: sequence, expected a recipe/, 1],
    ['nothing', '', /invalid type: unit value, expected a recipe/, 1],
    [
      'endless loops',
      `${minimal}prompt: |\n  {% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}\n`,
      /engine ran out of fuel|did not end within|too much text/,
      4,
    ],
    [
      'a text that doubles',
      `${minimal}prompt: |\n  {% set n = namespace(x="ab") %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}\n`,
      /did not end within|engine failed|too much text/,
      4,
    ],
    [
      'a macro that calls itself',
      `${minimal}prompt: |\n  {% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}\n`,
      /recursion limit/,
      4,
    ],
    ['a text repeated', `${minimal}prompt: |\n  {{ "a" * 2000000000 }}\n`, /Failed to render the recipe/, 4],
    [
      'brackets in an expression',
      `${minimal}prompt: |\n  {% if ${'('.repeat(20_000)}1${')'.repeat(20_000)} %}{% endif %}\n`,
      /recursion limit/,
      4,
    ],
    [
      '20,000 unclosed tags',
      `${minimal}prompt: |\n  ${'{% if a %}'.repeat(20_000)}\n`,
      /Failed to render the recipe/,
      null,
    ],
    [
      'a macro that writes twice, nested',
      `{% macro d(x) %}{{ x }}{{ x }}{% endmacro %}${minimal}{% set y = ${'d('.repeat(40)}"ab"${')'.repeat(40)} %}prompt: {{ y }}\n`,
      /too much text|did not end|fuel/,
      null,
    ],
    [
      'a schema that cannot be',
      `${minimal}prompt: P\nresponse: {json_schema: {$ref: "https://example.com/x"}}\n`,
      /JSON schema validation failed/,
      null,
    ],
  ])('%s', async (_, text, problem, line) => {
    const file = recipeFile(text)
    const found = await refused(() => loadRecipe(file))

    expect(found.problem).toMatch(problem)
    if (line !== null) expect(found.line).toBe(line)
    expect(found.ms).toBeLessThan(BOUND_MS)
  })

  test('a missing file, a folder, a binary, 50 MB, a pipe, links in a circle and bad UTF-8 are refused', async () => {
    const folder = folderWith({
      'binary.yaml': new Uint8Array([137, 80, 78, 71, 0, 1]),
      'latin.yaml': new Uint8Array([116, 58, 32, 233, 10]),
      'big.yaml': '',
    })
    truncateSync(path.join(folder, 'big.yaml'), 50_000_000)
    mkdirSync(path.join(folder, 'folder.yaml'))
    symlinkSync('loop.yaml', path.join(folder, 'loop.yaml'))
    execFileSync('mkfifo', [path.join(folder, 'pipe.yaml')])

    for (const [name, problem] of [
      ['missing.yaml', /there is no such file/],
      ['folder.yaml', /it is a folder, not a file/],
      ['binary.yaml', /this is a binary file/],
      ['latin.yaml', /not UTF-8/],
      ['big.yaml', /the file has 50000000 bytes/],
      ['pipe.yaml', /no plain file/],
      ['loop.yaml', /lead in a circle/],
      ['a\0b.yaml', /cannot be read|no path may have/],
    ] as const) {
      for (const load of [loadRecipe, loadAgentFile, loadDefinition]) {
        const found = await refused(() => load(path.join(folder, name)))
        expect(found.problem, name).toMatch(problem)
        expect(found.ms).toBeLessThan(BOUND_MS)
      }
    }
  })

  test('a circle of recipes, a deep chain of them, and many of them', async () => {
    const sub = (name: string) => `sub_recipes: [{name: s, path: ${name}}]\n`
    const chain = Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => [`c${at}.yaml`, `${minimal}prompt: P\n${sub(`c${at + 1}.yaml`)}`]),
    )
    const folder = folderWith({
      'self.yaml': `${minimal}prompt: P\n${sub('self.yaml')}`,
      ...chain,
      'c30.yaml': `${minimal}prompt: P\n`,
    })

    const self = await refused(() => loadRecipe(path.join(folder, 'self.yaml')))
    const deep = await refused(() => loadRecipe(path.join(folder, 'c0.yaml')))

    expect(self).toMatchObject({
      problem: 'sub-recipes lead in a circle: self.yaml -> self.yaml',
      hint: expect.any(String),
    })
    expect(deep.problem).toBe('sub-recipes lie more than 20 deep in one another')
    expect(Math.max(self.ms, deep.ms)).toBeLessThan(BOUND_MS)
  })

  test('a template that includes itself, and one that includes itself twice', async () => {
    const folder = folderWith({
      'a.txt': 'x{% include "a.txt" %}',
      'b.txt': 'x{% include "b.txt" %}{% include "b.txt" %}',
    })
    for (const name of ['a.txt', 'b.txt']) {
      const file = path.join(folder, 'r.yaml')
      writeFileSync(file, `${minimal}prompt: |\n  {% include "${name}" %}\n`)
      const found = await refused(() => loadRecipe(file))
      expect(found.problem).toMatch(/could not render include|did not end|fuel/)
      expect(found.ms).toBeLessThan(BOUND_MS)
    }
  })

  test('after a template broke the engine the next recipe is rendered as ever', async () => {
    await refused(() => loadRecipe(recipeFile(`${minimal}prompt: |\n  {{ "a" * 2000000000 }}\n`)))
    const file = recipeFile(`${minimal}prompt: "{{ a | upper }}"\nparameters:\n${parameter}`)

    expect((await loadRecipe(file, { parameters: { a: 'x' } })).recipe.prompt).toBe('X')
  })

  test('nobody else waits while a template is stopped', async () => {
    const file = recipeFile(
      `${minimal}prompt: |\n  {% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(99) %}{% endfor %}{% endfor %}{% endfor %}\n`,
    )
    const beats: number[] = []
    const beat = setInterval(() => beats.push(performance.now()), 10)
    await refused(() => loadRecipe(file))
    clearInterval(beat)

    expect(beats.length).toBeGreaterThan(5)
  })
})

describe('I10: a hostile agent file', () => {
  test.each([
    ['deep YAML', `---\nname: a\ntools: ${'['.repeat(100_000)}\n---\nx`],
    ['400,000 dashes', `---\n${'-'.repeat(400_000)}\n---\n`],
    ['many lines', `---\n${'a: b: c\n'.repeat(50_000)}---\n`],
    ['a name that is a map', '---\nname: {a: b}\ndescription: d\n---\n'],
    ['tags', '---\nname: !!js/function "x"\ndescription: [1]\n---\n'],
  ])('%s is a typed error in under a second', async (_, text) => {
    const file = path.join(folderWith({ 'a.md': text }), 'a.md')

    expect((await refused(() => loadAgentFile(file))).ms).toBeLessThan(BOUND_MS)
  })

  test.each([
    ['deep arrays', `name = ${'['.repeat(50_000)}`],
    [
      'deep tables',
      `${Array.from({ length: 500 }, (_, at) => `[${Array.from({ length: at + 1 }, () => 'a').join('.')}]`).join('\n')}`,
    ],
    ['a prototype', '[__proto__]\nname = "a"\n'],
  ])('TOML with %s is a typed error in under a second', async (_, text) => {
    const file = path.join(folderWith({ 'a.toml': text }), 'a.toml')

    expect((await refused(() => loadAgentFile(file))).ms).toBeLessThan(BOUND_MS)
  })

  test('a bracket that never ends in a list of tools costs no time', async () => {
    const file = path.join(
      folderWith({ 'a.md': `---\nname: a\ndescription: d\ntools: ${'Bash('.repeat(50_000)}\n---\nx` }),
      'a.md',
    )
    const workMs = watchWork()
    const agent = await loadAgentFile(file)

    expect(workMs()).toBeLessThan(BOUND_MS)
    expect(agent.tools.allow).not.toBeNull()
  })
})
