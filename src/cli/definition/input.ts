import { parseJson } from '../../base/json.ts'
import { findModel } from '../../doors/models.ts'
import { type AgentFile, modelOf, type RecipeParameter } from '../../doors/recipe.ts'
import { missingSecrets } from '../../doors/tools.ts'
import type { AnyAgent, Json } from '../../index.ts'
import { type Call, CliError, EXIT, listOption } from '../command/command.ts'
import { askLine, askSecret, canAsk, standardInput } from '../terminal/ask-line.ts'
import { oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'
import { fromHere, refused } from './notices.ts'

/** A recipe may have said all of it in its instructions. */
const BEGIN = 'Begin.'

/** What the agent is asked: the words after the file, `-` for what comes in, else its prompt, else the person here. */
export async function inputFor(definition: AgentFile, call: Call): Promise<Json> {
  const [file = '', ...words] = call.words
  const text = words.join(' ') === '-' ? await standardInput() : words.join(' ')
  const said = text.trim() === '' ? definition.prompt : text
  if (definition.input !== null) return typedInput(definition, said)
  if (said !== null && said.trim() !== '') return said
  if (definition.dialect === 'recipe') return BEGIN
  if (canAsk()) return askLine(`What shall ${oneLine(definition.name)} do? `)
  const message = `${fromHere(definition.file)} has no prompt of its own: say what it shall do, legate run ${oneLine(file)} "TEXT".`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

function typedInput({ name, file }: AgentFile, said: string | null): Json {
  const parsed = parseJson(said ?? '')
  if (parsed.ok) return parsed.value
  const message = `"${oneLine(name)}" takes JSON that fits the input schema of ${fromHere(file)}: ${oneLine(parsed.error)}`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

/**
 * The name of the model that a run begins with: `named` on the command line, else the file's, else the user's own. Where
 * there is none, or no key for it, it is told before anything is recorded.
 */
export async function modelFor(definition: AgentFile | undefined, named: string | undefined): Promise<string> {
  try {
    const name = named?.trim() ?? (definition === undefined ? null : modelOf(definition))
    return (await findModel(name ?? undefined)).id
  } catch (error) {
    const known = refused(error)
    const message = known instanceof Error ? known.message : String(known)
    const isOfFile = named === undefined && (definition?.model ?? definition?.provider) != null
    throw new CliError(isOfFile ? `${message} ${INSTEAD}` : message, EXIT.usage, { namesHelp: false })
  }
}

/** A file need not be changed to be tried. */
const INSTEAD = 'Or use another model than the file names: --model provider/model.'

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

/**
 * Secrets that extensions need and that are not in the environment: the person at the terminal is asked for them, for this
 * process only; elsewhere it is told before the run. They are never stored.
 */
export async function provideSecrets(agent: AnyAgent, env: NodeJS.ProcessEnv): Promise<void> {
  for (const { key, source } of missingSecrets(agent)) {
    const value = canAsk()
      ? await askSecret(`${oneLine(key)}, for ${oneLine(source)} (not shown; Enter for none): `)
      : ''
    if (value === '') note(`warning: ${oneLine(key)} is not set, and the extension ${oneLine(source)} may need it.`)
    else env[key] = value
  }
}
