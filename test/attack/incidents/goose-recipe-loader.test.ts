import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { loadRecipe } from 'legate/recipe'
import { expect, test } from 'vitest'
import { folderWith, minimal, refusalOf } from '../../recipe/support/folder.ts'

/** A name in a template was joined to the folder of the recipe, and an absolute one left it. */
const SECRET = 'the-secret-outside'

function world() {
  const folder = folderWith({ 'secret.txt': SECRET, 'secret.yaml': `${minimal}prompt: ${SECRET}\n` })
  const recipes = path.join(folder, 'recipes')
  mkdirSync(path.join(recipes, 'parts'), { recursive: true })
  symlinkSync(path.join(folder, 'secret.txt'), path.join(recipes, 'parts', 'link.txt'))
  symlinkSync(folder, path.join(recipes, 'parts', 'out'))
  return { folder, recipes, file: path.join(recipes, 'recipe.yaml') }
}

const names: readonly [kind: string, name: (folder: string) => string][] = [
  ['absolute', (folder) => path.join(folder, 'secret.txt')],
  ['absolute, with two slashes', (folder) => `/${path.join(folder, 'secret.txt')}`],
  ['upwards', () => '../secret.txt'],
  ['upwards from below', () => 'parts/../../secret.txt'],
  ['upwards with the other slash', () => '..\\\\secret.txt'],
  ['a link', () => 'parts/link.txt'],
  ['through a link', () => 'parts/out/secret.txt'],
  ['of the system', () => '/etc/passwd'],
  ['of this process', () => '/proc/self/environ'],
]

test.each(names)('goose recipe loader: an include that is %s reads nothing', async (_kind, name) => {
  const { folder, file } = world()
  for (const tag of ['include', 'extends', 'import', 'from']) {
    const rest = tag === 'import' ? ' as x' : tag === 'from' ? ' import x' : ''
    writeFileSync(file, `${minimal}prompt: |\n  {% ${tag} "${name(folder)}"${rest} %}\n`)
    const { problem } = await refusalOf(loadRecipe(file))
    expect(problem).toMatch(/outside the folder of the recipe/)
    expect(problem).not.toContain(SECRET)
  }
})

test('goose recipe loader: a name that a parameter makes is not read either', async () => {
  const { folder, file } = world()
  const parameter = 'parameters:\n  - {key: part, input_type: string, requirement: required, description: d}\n'
  writeFileSync(file, `${minimal}prompt: |\n  {% include part %}\n${parameter}`)
  for (const part of [path.join(folder, 'secret.txt'), '../secret.txt', 'parts/link.txt']) {
    const { problem } = await refusalOf(loadRecipe(file, { parameters: { part } }))
    expect(problem).not.toContain(SECRET)
  }
})
