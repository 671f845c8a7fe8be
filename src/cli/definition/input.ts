import { parseJson } from '../../core/base/json.ts'
import { findModel } from '../../doors/models.ts'
import { type AgentFile, modelOf, type RecipeParameter } from '../../doors/recipe.ts'
import { missingSecrets } from '../../doors/tools.ts'
import type { AnyAgent, Json } from '../../index.ts'
import { type Call, CliError, EXIT, listOption, textOption } from '../command/command.ts'
import { legate, shellWord } from '../command/next-command.ts'
import { askLine, askSecret, canAsk, standardInput } from '../terminal/ask-line.ts'
import { oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'
import { asUsageError, relativePath } from './notices.ts'

/** The prompt of a recipe whose instructions already say everything. */
const BEGIN = 'Begin.'

/**
 * Finds the input of an agent: the words after the file, stdin for `-`, the file's own prompt, or the person at the
 * terminal.
 */
export async function inputFor(definition: AgentFile, call: Call): Promise<Json> {
  const [file = '', ...words] = call.words
  const isPiped = words.join(' ') === '-'
  const text = isPiped ? await standardInput() : words.join(' ')
  if (isPiped && text.trim() === '') throw usage('stdin is empty: "-" reads the text from it.')
  const said = text.trim() === '' ? definition.prompt : text
  if (definition.input !== null) return typedInput(definition, said)
  if (said !== null && said.trim() !== '') return said
  if (definition.dialect === 'recipe') return BEGIN
  if (canAsk()) return askLine(`What should ${oneLine(definition.name)} do? `)
  const agent = textOption(call, 'agent')
  const named = agent === undefined ? '' : ` --agent ${oneLine(agent)}`
  const message = `${relativePath(definition.file)} has no prompt. Add one to the command: ${legate(`run ${oneLine(shellWord(file))}${named} "TEXT"`)}.`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

function typedInput({ name, file }: AgentFile, said: string | null): Json {
  const parsed = parseJson(said ?? '')
  if (parsed.ok) return parsed.value
  const message = `"${oneLine(name)}" takes JSON that fits the input schema of ${relativePath(file)}: ${oneLine(parsed.error)}`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

/**
 * Chooses the model of a run: `--model`, then the file's, then the user's default. A missing model or key is reported
 * before anything is recorded.
 */
export async function modelOfCommand(definition: AgentFile | undefined, named: string | undefined): Promise<string> {
  try {
    const name = named?.trim() ?? (definition === undefined ? null : modelOf(definition))
    return (await findModel(name ?? undefined)).id
  } catch (error) {
    const known = asUsageError(error)
    const message = known instanceof Error ? known.message : String(known)
    const isOfFile = named === undefined && (definition?.model ?? definition?.provider) != null
    throw new CliError(isOfFile ? `${message} ${INSTEAD}` : message, EXIT.usage, { namesHelp: false })
  }
}

/** A hint: you can try a file with another model without changing it. */
const INSTEAD = 'Or choose another model: --model provider/model.'

/** Reads `--param KEY=VALUE`, each key once. The value is always text. */
export function parametersOf(call: Call): ReadonlyMap<string, string> {
  const given = new Map<string, string>()
  for (const word of listOption(call, 'param')) {
    const at = word.indexOf('=')
    const key = word.slice(0, at).trim()
    if (at < 1 || key === '') throw usage(`--param needs KEY=VALUE, not "${oneLine(word)}".`)
    if (given.has(key)) throw usage(`--param ${oneLine(key)} appears twice.`)
    given.set(key, word.slice(at + 1))
  }
  return given
}

/** Refuses unknown keys: a mistyped key would leave the intended parameter without its value. */
export function checkKeys(given: ReadonlyMap<string, string>, parameters: readonly RecipeParameter[]): void {
  const keys = parameters.map(({ key }) => key)
  const unknown = [...given.keys()].find((key) => !keys.includes(key))
  if (unknown === undefined) return
  const known = keys.length === 0 ? 'It has no parameters.' : `It has ${keys.map(oneLine).join(', ')}.`
  throw usage(`The file has no parameter "${oneLine(unknown)}". ${known}`)
}

/** Lists the parameters that need a value and have none. */
export function missingOf(
  given: ReadonlyMap<string, string>,
  parameters: readonly RecipeParameter[],
): readonly RecipeParameter[] {
  return parameters.filter(({ key, default: fallback }) => fallback === null && !given.has(key))
}

/** Makes the error for a process that cannot ask: it says what to type instead. */
export function missingInputError(file: string, missing: readonly RecipeParameter[]): CliError {
  const [first] = missing
  const place = first?.line == null ? file : `${file}:${first.line}`
  const listed = missing.map(({ key, description }) => `${oneLine(key)} (${oneLine(description)})`).join(', ')
  const words = missing.map(({ key }) => `--param ${oneLine(key)}=VALUE`).join(' ')
  return usage(`${oneLine(place)}: these parameters have no value: ${listed}. Give ${words}.`)
}

/** Writes the question that asks a person for a parameter. */
export function parameterQuestion({ key, description, inputType, options }: RecipeParameter): string {
  const choice = inputType === 'select' ? ` [${options.map(oneLine).join(' | ')}]` : ''
  const kind = inputType === 'string' || inputType === 'select' ? '' : ` (${inputType})`
  const about = oneLine(description)
  return `${oneLine(key)}${kind}${choice}${about === '' ? '' : `, ${about}`}: `
}

function usage(message: string): CliError {
  return new CliError(message, EXIT.usage, { namesHelp: false })
}

/**
 * Gets secrets that extensions need and the environment lacks: asks the person at the terminal, for this process only;
 * without a terminal it throws before the run starts. Secrets are never stored.
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
