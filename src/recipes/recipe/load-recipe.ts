import path from 'node:path'
import { code, type OptionRules, oneOf, readOptions, record, text } from '../../core/base/options.ts'
import { valueAt } from '../../core/base/text-tree/tree.ts'
import type { Keeper } from '../../core/files/files.ts'
import type { Recipe, RecipeDescription } from '../agent-file/recipe.ts'
import { Fields } from '../text/fields.ts'
import { type Notice, NoticeReport } from '../text/notice.ts'
import {
  type AskParameter,
  bindValues,
  checkParameters,
  inputSchemaOf,
  missingParameters,
  readParameters,
} from './parameters.ts'
import { readRecipe, recipeTree } from './read-recipe.ts'
import { openRecipe, type RecipeSource } from './recipe-source.ts'
import { checkSubRecipes, partOf } from './sub-recipes.ts'

export interface RecipeOptions {
  /** Values for its parameters. */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** `lenient` continues with a warning where `strict` refuses. Default: strict. */
  readonly mode?: 'strict' | 'lenient'
  /** Asks a person for a `user_prompt` parameter. */
  readonly ask?: AskParameter
  /** Reads the file that a `file` parameter names. Default: any file of this machine. */
  readonly readFile?: (given: string, key: string) => Promise<string>
  /** The folder of a parent recipe: this file and all files it names must be inside. */
  readonly folder?: string
  /** Tells which files rules withhold from the reader, by path: a withheld recipe or include counts as missing. */
  readonly isKept?: Keeper
}

/** The options for reading a file without its values. */
type ReadingOptions = Pick<RecipeOptions, 'mode' | 'folder' | 'isKept'>

export interface LoadedRecipe {
  /** The recipe with all values filled in. */
  readonly recipe: Recipe
  /** Absolute paths of the files that its templates include. */
  readonly includes: readonly string[]
  readonly notices: readonly Notice[]
}

/** Reads a recipe, checks it, and fills in its parameters. Throws a RecipeError with file, line and hint. */
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
  const rendered = new NoticeReport(source.file, report.isLenient)
  const whole = readRecipe(await source.render(values), source.file, rendered)
  const recipe = { ...partOf(whole, folder), parameters: raw.parameters }
  await checkResponse(recipe, rendered, lineOf(source, 'response'))
  rendered.check()
  await checkSubRecipes(recipe, rendered)
  return { recipe, includes: source.includes, notices: mergeNotices(report, rendered) }
}

/** Reads a recipe and leaves its templates in place, to show or convert it. */
export async function readRecipeFile(file: string, options: ReadingOptions = {}): Promise<LoadedRecipe> {
  const { raw, source, report } = await readChecked(file, options)
  return { recipe: raw, includes: source.includes, notices: report.notices }
}

/**
 * Describes a recipe and its parameters without running it, asking anybody, or opening files other than its includes.
 */
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

interface CheckedRecipe {
  readonly source: RecipeSource
  readonly raw: Recipe
  readonly report: NoticeReport
}

export const RECIPE_OPTIONS: OptionRules<RecipeOptions> = {
  parameters: record,
  mode: oneOf('strict', 'lenient'),
  ask: code,
  readFile: code,
  folder: text,
  isKept: code,
}

async function readChecked(given: string, options: ReadingOptions): Promise<CheckedRecipe> {
  const { mode, folder, isKept } = readOptions('loadRecipe(file, options)', options, RECIPE_OPTIONS)
  const file = path.resolve(given)
  const report = new NoticeReport(file, mode === 'lenient')
  const source = await openRecipe(file, report, { inside: folder, isKept })
  const raw = partOf(readUnrendered(source, report), folder)
  checkParameters(raw.parameters, source.uses, report)
  checkHidden(raw, report, lineOf(source, 'prompt') ?? lineOf(source, 'instructions'))
  await checkResponse(raw, report, lineOf(source, 'response'))
  report.check()
  return { source, raw, report }
}

function lineOf({ tree }: RecipeSource, key: string): number | null {
  return valueAt(recipeTree(tree), key)?.line ?? null
}

/** Reads a recipe without values. If values decide which keys exist, only its parameters can be checked. */
function readUnrendered({ tree, file, isStructural }: RecipeSource, report: NoticeReport): Recipe {
  if (!isStructural) return readRecipe(tree, file, report)
  const raw = readRecipe(tree, file, new NoticeReport(file, true))
  return { ...raw, parameters: readParameters(new Fields(recipeTree(tree), report), report) }
}

/** Checks that the response is a valid schema, so that a model is not asked for the impossible. */
async function checkResponse({ response }: Recipe, report: NoticeReport, line: number | null): Promise<void> {
  if (response === null || JSON.stringify(response).includes('{{')) return
  const { schemaProblem } = await import('../../core/base/schema/schema-problem.ts')
  const why = await schemaProblem(response.jsonSchema)
  if (why === undefined) return
  report.error({ code: 'schema', message: `JSON schema validation failed: ${why}`, line, hint: 'Correct the schema.' })
}

/** Reports characters that models read and people cannot see; the flags of some regions use them legitimately. */
function checkHidden({ instructions, prompt }: Recipe, report: NoticeReport, line: number | null): void {
  const text = `${instructions ?? ''}\n${prompt ?? ''}`.replace(/\u{1F3F4}[\u{E0020}-\u{E007E}]+\u{E007F}/gu, '')
  if (!/[\u{E0000}-\u{E007F}]/u.test(text)) return
  const hint = 'It has invisible Unicode tag characters. Remove them.'
  report.fault({ code: 'harmful', message: 'Recipe contains potentially harmful content', line, hint })
}

function mergeNotices(...reports: readonly NoticeReport[]): readonly Notice[] {
  const seen = new Set<string>()
  return reports
    .flatMap(({ notices }) => notices)
    .filter(({ code, message }) => {
      const key = `${code} ${message}`
      return seen.has(key) ? false : seen.add(key)
    })
}
