import fc from 'fast-check'
import { loadAgentFile, loadRecipe } from 'legate/recipe'
import { describe, expect, test } from 'vitest'
import type { Json } from '../../src/core/base/json.ts'
import { anyUnicode } from '../support/any-unicode.ts'
import { folderWith, recipeFile } from './support/folder.ts'

const IS_FULL = process.env['LEGATE_FULL'] === '1'
const VALUES = IS_FULL ? 20_000 : 100

const PARAMETERS = `parameters:
  - {key: a, input_type: string, requirement: required, description: d}
  - {key: b, input_type: string, requirement: required, description: d}
`
const IN_FIELDS = `title: T
description: "D {{ a }}"
instructions: |
  Say {{ a }} and
    {{ b }}
  {% if b == "x" %}x{% else %}other{% endif %}
prompt: >-
  folded {{ a }}
activities: ["{{ b }}", plain, {{ a }}]
settings: {goose_model: "{{ a }}"}
extensions:
  - {type: stdio, name: "{{ a }}", cmd: c, args: ["{{ b }}", "-x"], envs: {K: "{{ a }}"}}
${PARAMETERS}`
const AROUND_KEYS = `title: T
description: {{ a }}
{% if true %}
instructions: |
  Say {{ a }} and
    {{ b }}
{% endif %}
prompt: "q {{ b | upper }} {{ a }}"
activities:
  - {{ b }}
  - plain
settings: {goose_model: '{{ a }}'}
${PARAMETERS}`

const fragment = fc.constantFrom(
  '\n',
  ': ',
  '- ',
  '#',
  '"',
  "'",
  '{{ a }}',
  '{% if x %}',
  '{% endif %}',
  '|',
  '&x',
  '*x',
  '!!str',
  '---\n',
  '\ue0f0',
  '\ue0f1',
  '0:0',
  '}',
  '{',
  '[',
  ']',
  ',',
  '\t',
  '\\',
  'title: evil\n',
  '\u0000',
  '\u2028',
  '\ud800',
  'null',
  '~',
)
const value = fc.oneof(
  anyUnicode({ maxLength: 40 }),
  fc.array(fc.oneof(fragment, fc.string({ maxLength: 5 })), { maxLength: 12 }).map((parts) => parts.join('')),
)

describe('no value of a parameter changes the shape of a recipe', () => {
  test.each([
    ['templates in fields', IN_FIELDS],
    ['templates around keys', AROUND_KEYS],
  ])('%s', { timeout: 600_000 }, async (_, text) => {
    const file = recipeFile(text)
    const shape = shapeOf(
      (await loadRecipe(file, { parameters: { a: 'plain', b: 'plain' } })).recipe as unknown as Json,
    )

    await fc.assert(
      fc.asyncProperty(value, value, async (a, b) => {
        const { recipe } = await loadRecipe(file, { parameters: { a, b } })
        expect(shapeOf(recipe as unknown as Json)).toEqual(shape)
        expect(recipe.settings.model).toBe(a.toWellFormed())
        expect(recipe.activities[0]).toBe(b.toWellFormed())
        expect(recipe.instructions).toContain(`Say ${a.toWellFormed()} and\n  ${b.toWellFormed()}\n`)
        expect([recipe.title, recipe.activities[1], recipe.parameters.length]).toEqual(['T', 'plain', 2])
      }),
      { numRuns: VALUES },
    )
  })
})

/** Keys, lengths of lists and kinds of values. */
function shapeOf(value: Json): Json {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return typeof value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOf(item)]))
}

test('a file is read the same twice', async () => {
  const folder = folderWith({ 'a.md': '---\nname: a\ndescription: Use when: asked\ntools: Read\n---\nBody\n' })

  expect(await loadAgentFile(`${folder}/a.md`)).toEqual(await loadAgentFile(`${folder}/a.md`))
})
