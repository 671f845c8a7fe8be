import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { isOwnPath } from '../../core/base/system/own-files.ts'
import { isInside } from '../../core/files/text-file.ts'
import type { ExtensionConfig, Recipe, SubRecipe } from '../agent-file/recipe.ts'
import { NoticeReport, refuseFile } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'
import { parameterText, RECIPE_DIR } from './parameters.ts'
import { readRecipe } from './read-recipe.ts'
import { readSource } from './recipe-source.ts'

const DEEPEST = 20
const MOST_FILES = 200

/** A secret that an extension needs, and the recipe that needs it. */
export interface NeededSecret {
  readonly key: string
  readonly extension: string
  readonly file: string
}

/** Merges the values of a sub-recipe with those of a call: its own are defaults, unless they are locked. */
export function subRecipeValues(
  { values, locked }: Pick<SubRecipe, 'values' | 'locked'>,
  parameters: Readonly<Record<string, unknown>>,
): { readonly values: Readonly<Record<string, string>>; readonly refused: readonly string[] } {
  const isLocked = (key: string) =>
    Object.hasOwn(values, key) && (locked === true || (locked !== false && locked.includes(key)))
  const given = Object.entries(parameters).filter(([key]) => !isLocked(key))
  const refused = Object.keys(parameters).filter(
    (key) => isLocked(key) && parameterText(parameters[key]) !== values[key],
  )
  return {
    values: { ...values, ...Object.fromEntries(given.map(([key, value]) => [key, parameterText(value)])) },
    refused,
  }
}

/** Throws if a sub-recipe is missing, has a duplicate name, or leads back to a recipe above it. */
export async function checkSubRecipes(recipe: Recipe, report: NoticeReport): Promise<void> {
  const names = new Set<string>()
  for (const { name, path: place, folder, line } of recipe.subRecipes) {
    if (names.has(name))
      report.error({ code: 'sub_recipe', message: `two sub-recipes are named \`${name}\``, line, hint: 'Rename one.' })
    names.add(name)
    const trouble = place === '' ? undefined : await placeTrouble(place, folder)
    if (trouble !== undefined) report.error({ code: 'sub_recipe', ...trouble, line })
  }
  report.check()
  await walk(recipe, () => undefined)
}

async function placeTrouble(place: string, folder: string): Promise<{ message: string; hint: string } | undefined> {
  const real = await realpath(place).catch(() => undefined)
  if (real === undefined || isOwnPath(real)) {
    const hint = 'The path is taken from the folder of the recipe.'
    return { message: `Sub-recipe file does not exist: ${place}`, hint }
  }
  if (isInside(real, await realpath(folder).catch(() => folder))) return undefined
  const hint = `Sub-recipes are in the folder of the recipe that you run, ${folder}, or below it. Move it there.`
  return { message: `Sub-recipe file is outside of the folder of the recipe: ${place}`, hint }
}

/** Makes a recipe part of another: the files it names must be in that one's folder. */
export function partOf(recipe: Recipe, folder: string | undefined): Recipe {
  if (folder === undefined) return recipe
  return { ...recipe, subRecipes: recipe.subRecipes.map((sub) => ({ ...sub, folder })) }
}

/** Lists the secrets of a recipe and all below it, each key once. Skips unreadable sub-recipes. */
export async function secretsOf(recipe: Recipe): Promise<readonly NeededSecret[]> {
  const found = new Map<string, NeededSecret>()
  const collect = (extensions: readonly ExtensionConfig[], file: string): void => {
    for (const extension of extensions) {
      const keys = 'envKeys' in extension ? extension.envKeys : []
      for (const key of keys) if (!found.has(key)) found.set(key, { key, extension: extension.name, file })
    }
  }
  await walk(recipe, ({ extensions, file }) => collect(extensions ?? [], file ?? ''))
  return [...found.values()]
}

type Visit = (recipe: Recipe) => void

/** Visits every recipe below, each file once. Throws for a cycle. */
async function walk(recipe: Recipe, visit: Visit): Promise<void> {
  const done = new Set<string>()
  await step(recipe, [], { visit, done })
}

async function step(
  recipe: Recipe,
  trail: readonly string[],
  seen: { visit: Visit; done: Set<string> },
): Promise<void> {
  seen.visit(recipe)
  const own = await realpath(recipe.file ?? '').catch(() => '')
  const route = [...trail, own]
  for (const sub of recipe.subRecipes) {
    const real = await realpath(sub.path).catch(() => undefined)
    if (real === undefined) continue
    if (route.includes(real)) throw circle([...route.slice(route.indexOf(real)), real], recipe.file ?? real, sub.line)
    if (seen.done.has(real) || seen.done.size >= MOST_FILES) continue
    if (route.length >= DEEPEST) throw tooDeep(recipe.file ?? real, sub.line)
    seen.done.add(real)
    const inner = await outline(real, sub)
    if (inner !== undefined) await step(inner, route, seen)
  }
}

/** Reads the sub-recipes and secrets of a sub-recipe; undefined if it has none or is unreadable. */
async function outline(file: string, { values, folder }: SubRecipe): Promise<Recipe | undefined> {
  try {
    const text = await readText(file, { inside: folder })
    if (!/sub_recipes|env_keys/.test(text)) return undefined
    const report = new NoticeReport(file, true)
    const source = await readSource(text, { file }, report)
    const known = readRecipe(source.tree, file, new NoticeReport(file, true)).parameters
    const defaults = known.map(({ key, default: fallback }) => [key, fallback ?? ''] as const)
    const tree = await source.render({ ...Object.fromEntries(defaults), ...values, [RECIPE_DIR]: path.dirname(file) })
    return partOf(readRecipe(tree, file, report), folder)
  } catch {
    return undefined
  }
}

function circle(files: readonly string[], file: string, line: number | null): Error {
  const names = files.map((one) => path.basename(one)).join(' -> ')
  const hint = 'A recipe cannot be part of itself: remove one of these sub-recipes.'
  return refuseFile({ code: 'sub_recipe', message: `sub-recipes lead in a circle: ${names}`, line, hint }, file)
}

function tooDeep(file: string, line: number | null): Error {
  const hint = 'Put them beside one another.'
  return refuseFile(
    { code: 'sub_recipe', message: `sub-recipes lie more than ${DEEPEST} deep in one another`, line, hint },
    file,
  )
}
