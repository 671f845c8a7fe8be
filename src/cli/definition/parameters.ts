import type { RecipeParameter } from '../../recipe/index.ts'
import { type Call, CliError, EXIT, listOption } from '../command.ts'
import { oneLine } from '../terminal/clean.ts'

/** What `--param KEY=VALUE` gives, each key once. The value is text, whatever stands in it. */
export function parametersOf(call: Call): ReadonlyMap<string, string> {
  const given = new Map<string, string>()
  for (const word of listOption(call, 'param')) {
    const at = word.indexOf('=')
    const key = word.slice(0, at).trim()
    if (at < 1 || key === '') throw usage(`--param needs KEY=VALUE, not "${oneLine(word)}".`)
    if (given.has(key)) throw usage(`--param ${oneLine(key)} is given twice.`)
    given.set(key, word.slice(at + 1))
  }
  return given
}

/** A name that nobody defined is a slip of the finger: what was meant would be missing. */
export function checkKeys(given: ReadonlyMap<string, string>, parameters: readonly RecipeParameter[]): void {
  const keys = parameters.map(({ key }) => key)
  const unknown = [...given.keys()].find((key) => !keys.includes(key))
  if (unknown === undefined) return
  const known = keys.length === 0 ? 'It has no parameters.' : `It has ${keys.map(oneLine).join(', ')}.`
  throw usage(`The file has no parameter "${oneLine(unknown)}". ${known}`)
}

/** Those that have no value yet and need one. */
export function missingOf(
  given: ReadonlyMap<string, string>,
  parameters: readonly RecipeParameter[],
): readonly RecipeParameter[] {
  return parameters.filter(({ key, default: fallback }) => fallback === null && !given.has(key))
}

/** Nobody is there to be asked: says what to type instead. */
export function missingError(file: string, missing: readonly RecipeParameter[]): CliError {
  const [first] = missing
  const place = first?.line == null ? file : `${file}:${first.line}`
  const listed = missing.map(({ key, description }) => `${oneLine(key)} (${oneLine(description)})`).join(', ')
  const words = missing.map(({ key }) => `--param ${oneLine(key)}=VALUE`).join(' ')
  return usage(`${oneLine(place)}: these parameters have no value: ${listed}. Give ${words}.`)
}

/** How a person is asked for one. */
export function questionOf({ key, description, inputType, options }: RecipeParameter): string {
  const choice = inputType === 'select' ? ` [${options.map(oneLine).join(' | ')}]` : ''
  const kind = inputType === 'string' || inputType === 'select' ? '' : ` (${inputType})`
  const about = oneLine(description)
  return `${oneLine(key)}${kind}${choice}${about === '' ? '' : `, ${about}`}: `
}

function usage(message: string): CliError {
  return new CliError(message, EXIT.usage, { namesHelp: false })
}
