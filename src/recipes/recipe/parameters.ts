import { homedir } from 'node:os'
import path from 'node:path'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import { INPUT_TYPES, REQUIREMENTS, type RecipeParameter } from '../agent-file/recipe.ts'
import type { Fields } from '../text/fields.ts'
import { type NoticeReport, noticesOf, refuseFile } from '../text/notice.ts'
import { readText } from '../text/read-text.ts'

/** A parameter that is always defined: the folder of the recipe. */
export const RECIPE_DIR = 'recipe_dir'

export function readParameters(recipe: Fields, report: NoticeReport): readonly RecipeParameter[] {
  const seen = new Set<string>()
  return (recipe.list('parameters') ?? []).flatMap((fields) => {
    if (!fields.isMap('a parameter with a `key`')) return []
    const parameter = readParameter(fields)
    if (seen.has(parameter.key) && parameter.key !== '') {
      const message = `${fields.path}: the parameter \`${parameter.key}\` is defined twice`
      report.error({ code: 'parameter', message, line: fields.line, hint: 'Remove one of them.' })
    }
    seen.add(parameter.key)
    return [parameter]
  })
}

function readParameter(fields: Fields): RecipeParameter {
  fields.reportUnknown(['key', 'input_type', 'requirement', 'description', 'default', 'options'])
  return {
    key: fields.requiredText('key'),
    inputType: fields.choice('input_type', INPUT_TYPES, 'string'),
    requirement: fields.choice('requirement', REQUIREMENTS, 'required'),
    description: fields.requiredText('description'),
    default: fields.text('default'),
    options: fields.texts('options') ?? [],
    line: fields.line,
  }
}

/** The names that a recipe's templates use, with their lines, and all names its text mentions, even in comments. */
export interface TemplateNames {
  readonly used: ReadonlyMap<string, number | null>
  readonly mentioned: ReadonlySet<string>
}

/** Checks definitions against the template, in the order in which people see the findings. */
export function checkParameters(
  parameters: readonly RecipeParameter[],
  { used, mentioned }: TemplateNames,
  report: NoticeReport,
): void {
  checkDefaults(parameters, report)
  const keys = new Set(parameters.map(({ key }) => key))
  const missing = [...used.keys()].filter((name) => !keys.has(name) && name !== RECIPE_DIR)
  const unused = parameters.filter(({ key }) => !used.has(key) && !mentioned.has(key) && key !== RECIPE_DIR)
  const sentences = [
    missing.length > 0 ? `Missing definitions for parameters in the recipe file: ${missing.join(', ')}.` : '',
    unused.length > 0 ? `Unnecessary parameter definitions: ${unused.map(({ key }) => key).join(', ')}.` : '',
  ].filter((sentence) => sentence !== '')
  if (sentences.length === 0) return
  const [first = ''] = missing
  const hint = missing.length > 0 ? definitionHint(first) : 'Remove them, or use them as {{ name }}.'
  const line = used.get(first) ?? unused[0]?.line ?? null
  report.fault({ code: 'parameter', message: sentences.join('\n'), line, hint })
}

function definitionHint(name: string): string {
  return `Define it under "parameters"; to keep the braces as text, write {% raw %}{{ ${name} }}{% endraw %}.`
}

function checkDefaults(parameters: readonly RecipeParameter[], report: NoticeReport): void {
  const files = parameters.filter((one) => one.inputType === 'file' && one.default !== null)
  if (files.length > 0) {
    const message = `File parameters cannot have default values to avoid importing sensitive user files: ${keysOf(files)}`
    report.error({ code: 'parameter', message, line: files[0]?.line ?? null, hint: 'Remove the default.' })
  }
  const optional = parameters.filter(
    (one) => one.requirement === 'optional' && one.default === null && one.inputType !== 'file',
  )
  if (optional.length > 0) {
    const message = `Optional parameters missing default values in the recipe: ${keysOf(optional)}. Please provide defaults.`
    report.fault({
      code: 'parameter',
      message,
      line: optional[0]?.line ?? null,
      hint: 'An empty default is one: default: "".',
    })
  }
  for (const one of parameters) {
    const trouble = defaultTrouble(one)
    if (trouble !== undefined) {
      report.fault({ code: 'parameter', message: trouble, line: one.line, hint: 'Correct the default.' })
    }
    if (one.requirement === 'required' && one.default !== null) {
      const message = `the parameter \`${one.key}\` is required and has a default, which is used`
      report.note({ code: 'parameter', message, line: one.line, hint: 'Make it optional.' })
    }
    if (one.inputType === 'select' && one.options.length === 0) {
      const message = `the parameter \`${one.key}\` is a select without options`
      report.warning({ code: 'parameter', message, line: one.line, hint: 'List them under "options".' })
    }
  }
}

/** Checks a default. An empty one fits every type; one with a template cannot be checked yet. */
function defaultTrouble(parameter: RecipeParameter): string | undefined {
  const { default: value } = parameter
  if (value === null || value.trim() === '' || /\{[{%]/.test(value)) return undefined
  return typeTrouble(parameter, value)?.replace(' must be ', ' has a default that must be ')
}

function keysOf(parameters: readonly RecipeParameter[]): string {
  return parameters.map(({ key }) => key).join(', ')
}

/** Describes why a value does not fit its parameter's type; undefined if it fits. */
function typeTrouble({ key, inputType, options }: RecipeParameter, value: string): string | undefined {
  const wrong = (expected: string) =>
    `the parameter \`${key}\` must be ${expected}, not ${JSON.stringify(shortened(value))}`
  if (inputType === 'number' && !isNumber(value)) return wrong('a number')
  if (inputType === 'boolean' && value !== 'true' && value !== 'false') return wrong('true or false')
  if (inputType === 'date' && !isDate(value)) return wrong('a date such as 2026-01-31')
  if (inputType === 'select' && options.length > 0 && !options.includes(value))
    return wrong(`one of ${options.join(', ')}`)
  return undefined
}

/** Builds the input schema of a tool from the parameters. */
export function inputSchemaOf(parameters: readonly RecipeParameter[], given: ReadonlySet<string>): JsonSchema {
  const open = parameters.filter(({ key }) => !given.has(key))
  const properties = open.map((one): [string, JsonSchema] => [
    one.key,
    { ...schemaOf(one), description: one.description },
  ])
  const required = open.filter((one) => one.default === null && one.requirement === 'required').map(({ key }) => key)
  return { type: 'object', properties: Object.fromEntries(properties), required, additionalProperties: false }
}

function schemaOf({ inputType, options }: RecipeParameter): JsonSchema {
  if (inputType === 'number') return { type: 'number' }
  if (inputType === 'boolean') return { type: 'boolean' }
  if (inputType === 'date') return { type: 'string', format: 'date' }
  return inputType === 'select' && options.length > 0 ? { type: 'string', enum: [...options] } : { type: 'string' }
}

function shortened(value: string): string {
  return value.length <= 60 ? value : `${value.slice(0, 59)}…`
}

function isNumber(value: string): boolean {
  return /^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*$/i.test(value) && Number.isFinite(Number(value))
}

function isDate(value: string): boolean {
  const [, day] = /^(\d{4}-\d{2}-\d{2})(?:[T ].*)?$/.exec(value) ?? []
  if (day === undefined || Number.isNaN(Date.parse(value.replace(' ', 'T')))) return false
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

/** Asks a person for a value; undefined if there is none. */
export type AskParameter = (parameter: RecipeParameter) => Promise<string | undefined> | string | undefined

export interface BindOptions {
  readonly file: string
  /** The caller's values. A value that is not text becomes JSON; unknown names are ignored. */
  readonly given: Readonly<Record<string, unknown>>
  readonly ask?: AskParameter
  /** Reads the file that a parameter names. Default: any file of this machine. */
  readonly readFile?: (given: string, key: string) => Promise<string>
}

/**
 * Finds a value for every parameter: the caller's, the default, or a person's. Throws a RecipeError that lists all
 * missing ones. The value of a file parameter is the text of the file.
 */
export async function bindValues(
  parameters: readonly RecipeParameter[],
  options: BindOptions,
  report: NoticeReport,
): Promise<Readonly<Record<string, string>>> {
  const values = new Map<string, string>()
  const missing: RecipeParameter[] = []
  for (const parameter of parameters) {
    const given = await givenValue(parameter, options)
    if (given === undefined) missing.push(parameter)
    else values.set(parameter.key, await checked(parameter, given, options, report))
  }
  if (missing.length > 0) throw missingError(missing, options.file)
  report.check()
  values.set(RECIPE_DIR, path.dirname(options.file))
  return Object.fromEntries(values)
}

/** Lists parameters without a value; asks nobody and opens no file. */
export function missingParameters(
  parameters: readonly RecipeParameter[],
  given: Readonly<Record<string, unknown>>,
): readonly string[] {
  return parameters
    .filter(({ key, default: fallback }) => fallback === null && !Object.hasOwn(given, key))
    .map(({ key }) => key)
}

export function parameterText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

async function givenValue(parameter: RecipeParameter, { given, ask }: BindOptions): Promise<string | undefined> {
  const { key, requirement } = parameter
  if (Object.hasOwn(given, key) && given[key] !== undefined) return parameterText(given[key])
  if (parameter.default !== null) return parameter.default
  return requirement === 'user_prompt' && ask !== undefined ? await ask(parameter) : undefined
}

async function checked(
  parameter: RecipeParameter,
  value: string,
  options: BindOptions,
  report: NoticeReport,
): Promise<string> {
  if (parameter.inputType === 'file') return readParameterFile(value, parameter.key, options)
  // Defaults were checked when the file was read.
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
    throw refuseFile({ code: 'parameter', message, hint: 'Give the path of a text file.' }, file)
  }
}

/** Resolves a path as a person writes it: from home, or from the current folder. */
function placeOf(given: string): string {
  return given.startsWith('~/') ? path.join(homedir(), given.slice(2)) : path.resolve(given)
}

function missingError(missing: readonly RecipeParameter[], file: string): Error {
  const keys = missing.map(({ key }) => key)
  const message = `Missing required parameters: [${keys.map((key) => JSON.stringify(key)).join(', ')}]`
  const hint = `Give ${keys.map((key) => `${key}=...`).join(', ')}.`
  return refuseFile({ code: 'missing_parameters', message, line: missing[0]?.line ?? null, hint }, file)
}
