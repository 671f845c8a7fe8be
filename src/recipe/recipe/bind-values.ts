import { homedir } from 'node:os'
import path from 'node:path'
import { noticesOf, type Report, refuse } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'
import { RECIPE_DIR, typeTrouble } from './read-parameters.ts'
import type { RecipeParameter } from './recipe.ts'

/** Asks a person for a value; undefined when there is none. */
export type AskParameter = (parameter: RecipeParameter) => Promise<string | undefined> | string | undefined

export interface BindOptions {
  readonly file: string
  /** What the caller gives. What is no text becomes its JSON; names that nobody defined are ignored. */
  readonly given: Readonly<Record<string, unknown>>
  readonly ask?: AskParameter
  /** Reads the file that a parameter names; by default any file of this machine. */
  readonly readFile?: (given: string, key: string) => Promise<string>
}

/**
 * A value for every parameter: the caller's, else the default, else what a person says. Throws a RecipeError that names all
 * that is missing. The value of a file parameter is the text of the file.
 */
export async function bindValues(
  parameters: readonly RecipeParameter[],
  options: BindOptions,
  report: Report,
): Promise<Readonly<Record<string, string>>> {
  const values = new Map<string, string>()
  const missing: RecipeParameter[] = []
  for (const parameter of parameters) {
    const given = await givenValue(parameter, options)
    if (given === undefined) missing.push(parameter)
    else values.set(parameter.key, await checked(parameter, given, { options, report }))
  }
  if (missing.length > 0) throw missingError(missing, options.file)
  report.check()
  values.set(RECIPE_DIR, path.dirname(options.file))
  return Object.fromEntries(values)
}

/** Which parameters nobody has a value for, without asking and without opening a file. */
export function missingParameters(
  parameters: readonly RecipeParameter[],
  given: Readonly<Record<string, unknown>>,
): readonly string[] {
  return parameters
    .filter(({ key, default: fallback }) => fallback === null && !Object.hasOwn(given, key))
    .map(({ key }) => key)
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

async function givenValue(parameter: RecipeParameter, { given, ask }: BindOptions): Promise<string | undefined> {
  const { key, requirement } = parameter
  if (Object.hasOwn(given, key) && given[key] !== undefined) return textOf(given[key])
  if (parameter.default !== null) return parameter.default
  return requirement === 'user_prompt' && ask !== undefined ? await ask(parameter) : undefined
}

interface Binding {
  readonly options: BindOptions
  readonly report: Report
}

async function checked(parameter: RecipeParameter, value: string, { options, report }: Binding): Promise<string> {
  if (parameter.inputType === 'file') return readParameterFile(value, parameter.key, options)
  // Defaults were looked at when the file was read.
  const isDefault = !Object.hasOwn(options.given, parameter.key) && value === parameter.default
  const trouble = isDefault ? undefined : typeTrouble(parameter, value)
  if (trouble === undefined) return value
  report.fault({ code: 'parameter', message: trouble, line: parameter.line, hint: 'Give another value.' })
  return value
}

async function readParameterFile(given: string, key: string, { file, readFile }: BindOptions): Promise<string> {
  try {
    return await (readFile === undefined ? readText(placeOf(given)) : readFile(given, key))
  } catch (error) {
    const why = noticesOf(error)[0]?.message ?? (error instanceof Error ? error.message : String(error))
    const message = `Failed to read parameter file ${given}: ${why.replace(/^cannot be read: /, '')}`
    throw refuse({ code: 'parameter', message, hint: 'Give the path of a text file.' }, file)
  }
}

/** As a person writes it: from their home, or from the current folder. */
function placeOf(given: string): string {
  return given.startsWith('~/') ? path.join(homedir(), given.slice(2)) : path.resolve(given)
}

function missingError(missing: readonly RecipeParameter[], file: string): Error {
  const keys = missing.map(({ key }) => key)
  const message = `Missing required parameters: [${keys.map((key) => JSON.stringify(key)).join(', ')}]`
  const hint = `Give ${keys.map((key) => `${key}=...`).join(', ')}.`
  return refuse({ code: 'missing_parameters', message, line: missing[0]?.line ?? null, hint }, file)
}
