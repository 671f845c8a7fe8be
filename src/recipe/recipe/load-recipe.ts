import path from 'node:path'
import { code, type OptionRules, oneOf, readOptions, record, text } from '../../base/options.ts'
import { schemaProblem } from '../../base/schema/schema.ts'
import type { Keeper } from '../../files/files.ts'
import { Fields } from '../text/fields.ts'
import { type Notice, Report } from '../text/notice.ts'
import { entryOf } from '../text/tree.ts'
import {
  type AskParameter,
  bindValues,
  checkParameters,
  inputSchemaOf,
  missingParameters,
  readParameters,
} from './parameters.ts'
import { readRecipe, recipeTree } from './read-recipe.ts'
import type { Recipe, RecipeDescription } from './recipe.ts'
import { openRecipe, type RecipeSource } from './recipe-source.ts'
import { checkSubRecipes, partOf } from './sub-recipes.ts'

export interface RecipeOptions {
  /** Values for its parameters. */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** `lenient` goes on, with a warning, where `strict` refuses. Default: strict. */
  readonly mode?: 'strict' | 'lenient'
  /** Asks a person for a `user_prompt` parameter. */
  readonly ask?: AskParameter
  /** Reads the file that a `file` parameter names; by default any file of this machine. */
  readonly readFile?: (given: string, key: string) => Promise<string>
  /** The file is a part of a recipe in this folder: it and all files that it names must be in there. */
  readonly folder?: string
  /** What rules keep from whoever loads it, by its path on this machine: neither it nor a file that it includes is there. */
  readonly isKept?: Keeper
}

/** What is read of a file without its values. */
type ReadingOptions = Pick<RecipeOptions, 'mode' | 'folder' | 'isKept'>

export interface LoadedRecipe {
  /** With every value in its place. */
  readonly recipe: Recipe
  readonly notices: readonly Notice[]
}

/** Reads a recipe, checks it, and puts the values of its parameters in. Throws a RecipeError with file, line and hint. */
export async function loadRecipe(file: string, options: RecipeOptions = {}): Promise<LoadedRecipe> {
  const { source, raw, report } = await readChecked(file, options)
  const { parameters: given = {}, ask, readFile, folder } = options
  const values = await bindValues(
    raw.parameters,
    {
      file: source.file,
      given,
      ...(ask === undefined ? {} : { ask }),
      ...(readFile === undefined ? {} : { readFile }),
    },
    report,
  )
  const rendered = new Report(source.file, report.isLenient)
  const whole = readRecipe(await source.render(values), source.file, rendered)
  const recipe = { ...partOf(whole, folder), parameters: raw.parameters }
  await checkResponse(recipe, rendered, lineOf(source, 'response'))
  rendered.check()
  await checkSubRecipes(recipe, rendered)
  return { recipe, notices: together(report, rendered) }
}

/** The recipe with its templates still in it. For looking at it, and for writing it elsewhere. */
export async function readRecipeFile(file: string, options: ReadingOptions = {}): Promise<LoadedRecipe> {
  const { raw, report } = await readChecked(file, options)
  return { recipe: raw, notices: report.notices }
}

/** What a recipe is and what it needs, without running, asking or opening any other file than it includes. */
export async function describeRecipe(
  file: string,
  options: Pick<RecipeOptions, 'parameters' | 'mode' | 'folder'> = {},
): Promise<RecipeDescription> {
  const { parameters: given = {} } = options
  const { raw, source, report } = await readChecked(file, options)
  const { title, description, version, parameters } = raw
  const missing = missingParameters(parameters, given)
  const inputSchema = inputSchemaOf(parameters, new Set(Object.keys(given)))
  return { file: source.file, title, description, version, parameters, missing, inputSchema, notices: report.notices }
}

interface Checked {
  readonly source: RecipeSource
  readonly raw: Recipe
  readonly report: Report
}

export const RECIPE_OPTIONS: OptionRules<RecipeOptions> = {
  parameters: record,
  mode: oneOf('strict', 'lenient'),
  ask: code,
  readFile: code,
  folder: text,
  isKept: code,
}

async function readChecked(given: string, options: ReadingOptions): Promise<Checked> {
  const { mode, folder, isKept } = readOptions('loadRecipe(file, options)', options, RECIPE_OPTIONS)
  const file = path.resolve(given)
  const report = new Report(file, mode === 'lenient')
  const source = await openRecipe(file, report, { inside: folder, isKept })
  const raw = partOf(readUnrendered(source, report), folder)
  checkParameters(raw.parameters, source.uses, report)
  checkHidden(raw, report, lineOf(source, 'prompt') ?? lineOf(source, 'instructions'))
  await checkResponse(raw, report, lineOf(source, 'response'))
  report.check()
  return { source, raw, report }
}

function lineOf({ tree }: RecipeSource, key: string): number | null {
  return entryOf(recipeTree(tree), key)?.line ?? null
}

/** Where the values decide which keys there are, only the parameters can be judged before there are values. */
function readUnrendered({ tree, file, isStructural }: RecipeSource, report: Report): Recipe {
  if (!isStructural) return readRecipe(tree, file, report)
  const raw = readRecipe(tree, file, new Report(file, true))
  return { ...raw, parameters: readParameters(new Fields(recipeTree(tree), report), report) }
}

/** The schema must be one: a model would be asked for the impossible. */
async function checkResponse({ response }: Recipe, report: Report, line: number | null): Promise<void> {
  if (response === null || JSON.stringify(response).includes('{{')) return
  const why = await schemaProblem(response.jsonSchema)
  if (why === undefined) return
  report.error({ code: 'schema', message: `JSON schema validation failed: ${why}`, line, hint: 'Correct the schema.' })
}

/** Characters that no person sees and every model reads; the flags of some countries are written with them. */
function checkHidden({ instructions, prompt }: Recipe, report: Report, line: number | null): void {
  const text = `${instructions ?? ''}\n${prompt ?? ''}`.replace(/\u{1F3F4}[\u{E0020}-\u{E007E}]+\u{E007F}/gu, '')
  if (!/[\u{E0000}-\u{E007F}]/u.test(text)) return
  const hint = 'It has invisible Unicode tag characters. Remove them.'
  report.fault({ code: 'harmful', message: 'Recipe contains potentially harmful content', line, hint })
}

function together(...reports: readonly Report[]): readonly Notice[] {
  const seen = new Set<string>()
  return reports
    .flatMap(({ notices }) => notices)
    .filter(({ code, message }) => {
      const key = `${code} ${message}`
      return seen.has(key) ? false : seen.add(key)
    })
}
