import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { loadRecipe, readRecipeFile } from '../../src/recipes/recipe/load-recipe.ts'
import { corpus, type Expected, expectations, skipWithoutCorpus } from './support/corpus.ts'

beforeEach(skipWithoutCorpus)

const all = expectations()

test('there are recipes to read', () => {
  expect(all.length).toBeGreaterThan(60)
})

// Without the corpus there is nothing to make tests of.
describe.skipIf(all.length === 0)('recipes that are right', () => {
  const right = all.filter(([, { ok }]) => ok)

  test.each(right)('%s is read as expected', async (file, expected) => {
    const { recipe, notices } = await readRecipeFile(path.join(corpus, 'goose', file))

    expect(notices.filter(({ level }) => level === 'error')).toEqual([])
    expect(outlineOf(recipe)).toEqual(wanted(expected))
    expect(topLevelUnknown(notices)).toEqual([...expected.unknown_keys].sort())
  })

  test.each(right)('%s gives the texts expected for its values', async (file, expected) => {
    const place = path.join(corpus, 'goose', file)
    const { input, ...texts } = expected.render ?? { input: {} }
    const sample = path.join(corpus, 'fixtures/sample.txt')
    const files = expected.parameters.filter((one) => one.input_type === 'file').map(({ key }) => [key, sample])
    const { recipe } = await loadRecipe(place, {
      parameters: { ...input, ...Object.fromEntries(files) },
      readFile: async (asked) => readFileSync(asked, 'utf8').trimEnd(),
      mode: 'lenient',
    })

    const folder = path.dirname(place)
    const shown = (text: string | null) => (text ?? '').trimEnd().replaceAll(folder, '/RECIPE_DIR')
    expect({
      instructions_sha: sha(shown(recipe.instructions)),
      prompt_sha: sha(shown(recipe.prompt)),
      instructions_len: [...shown(recipe.instructions)].length,
      prompt_len: [...shown(recipe.prompt)].length,
    }).toEqual(texts)
    expect(
      recipe.subRecipes.map((sub) => ({
        name: sub.name,
        path: path.relative(folder, sub.path),
        values: sub.values,
        sequential_when_repeated: sub.sequentialWhenRepeated,
      })),
    ).toEqual((expected.sub_recipes ?? []).map((sub) => ({ values: {}, ...sub, path: path.normalize(sub.path) })))
  })
})

test.each(all.filter(([, { ok }]) => !ok))(
  '%s is refused by the strict and read by the lenient',
  async (file, expected) => {
    const place = path.join(corpus, 'goose', file)
    const problem = 'Optional parameters missing default values in the recipe: push_pr. Please provide defaults.'
    await expect(readRecipeFile(place)).rejects.toMatchObject({ code: 'recipe', details: { problem, file: place } })

    const { recipe, notices } = await readRecipeFile(place, { mode: 'lenient' })

    expect(recipe.title).toBe(expected.title)
    expect(notices).toContainEqual(expect.objectContaining({ level: 'warning', message: problem }))
  },
)

interface Outlined {
  readonly title: string
  readonly version: string
  readonly parameters: readonly {
    readonly key: string
    readonly inputType: string
    readonly requirement: string
    readonly default: string | null
  }[]
  readonly extensions: readonly { readonly type: string; readonly name: string }[] | null
  readonly settings: { readonly temperature: number | null }
  readonly activities: readonly string[]
  readonly response: unknown
  readonly retry: unknown
}

function outlineOf(recipe: Outlined) {
  return {
    title: recipe.title,
    version: recipe.version,
    parameters: recipe.parameters.map((one) => ({
      key: one.key,
      input_type: one.inputType,
      requirement: one.requirement,
      ...(one.default === null ? {} : { default: one.default }),
    })),
    extensions: (recipe.extensions ?? []).map(({ type, name }) => ({ type, name })),
    temperature: recipe.settings.temperature,
    activities: recipe.activities.length,
    has_response: recipe.response !== null,
    has_retry: recipe.retry !== null,
  }
}

function wanted(expected: Expected) {
  const { title, version, parameters, extensions, settings, activities, has_response, has_retry } = expected
  const temperature = settings['temperature'] ?? null
  return { title, version, parameters, extensions, temperature, activities, has_response, has_retry }
}

function topLevelUnknown(notices: readonly { readonly code: string; readonly message: string }[]): string[] {
  return notices
    .filter(({ code }) => code === 'unknown_key')
    .map(({ message }) => /`(.*)`/.exec(message)?.[1] ?? '')
    .filter((key) => !/[.[]/.test(key))
    .sort()
}

function sha(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
