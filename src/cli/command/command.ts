/** One command of the table: all that `--help`, completion and the reader of arguments need without loading its code. */
export interface Command {
  readonly name: string
  /** What stands after the name, as in `ID [-f] [--json]`. */
  readonly usage: string
  readonly summary: string
  /** Paragraphs below the usage, for what a summary cannot say. */
  readonly about?: readonly string[]
  readonly options: readonly Option[]
  readonly examples: readonly (readonly [line: string, what: string])[]
  /** How many positional arguments it takes. */
  readonly takes: readonly [least: number, most: number]
  /** What a positional argument is: completed by the shell. */
  readonly completes?: 'id' | 'command' | 'file' | readonly string[]
  load(): Promise<RunCommand>
}

export interface Option {
  readonly name: string
  readonly short?: string
  /** The name of its value; without one it is a switch. */
  readonly value?: string
  /** May be given more than once. */
  readonly isList?: true
  readonly text: string
}

/** Does it and gives the exit code. */
export type RunCommand = (call: Call) => Promise<number>

/** One use of a command, as it was typed. */
export interface Call {
  readonly words: readonly string[]
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  readonly env: NodeJS.ProcessEnv
  /** Every command there is. */
  readonly commands: readonly Command[]
}

export const EXIT = { completed: 0, other: 1, usage: 2, parked: 3, interrupted: 130, terminated: 143 } as const

/** Ends the program with one clear line on stderr. Usage errors also say where to read more. */
export class CliError extends Error {
  readonly exitCode: number
  readonly namesHelp: boolean

  constructor(message: string, exitCode: number = EXIT.other, { namesHelp = exitCode === EXIT.usage } = {}) {
    super(message)
    this.exitCode = exitCode
    this.namesHelp = namesHelp
  }
}

export function textOption({ values }: Call, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

export function listOption({ values }: Call, name: string): readonly string[] {
  const value = values[name]
  return Array.isArray(value) ? (value as readonly string[]) : []
}

export function isSet({ values }: Call, name: string): boolean {
  return values[name] === true
}

export const STORE: Option = {
  name: 'store',
  value: 'PATH',
  text: 'the store; else $LEGATE_DB, else legate/legate.db in $XDG_STATE_HOME (~/.local/state)',
}

/** All options of a command, those that every command has included. */
export function optionsOf(command: Command): readonly Option[] {
  return [
    ...command.options,
    ...(STORELESS.includes(command.name) ? [] : [STORE]),
    { name: 'help', short: 'h', text: 'this text' },
  ]
}

const STORELESS: readonly string[] = ['demo', 'init', 'explain', 'validate', 'doctor', 'convert', 'completion', 'help']

export interface Meant {
  readonly names: readonly string[]
  /** So many letters at the beginning make a name probable. */
  readonly alike: number
  readonly sign?: string
}

/** A name with the same letters in another order, or that begins alike, is probably what was meant. */
export function meant(name: string, { names, alike, sign = '' }: Meant): string {
  const found =
    names.find((one) => lettersOf(one) === lettersOf(name)) ?? names.find((one) => one.startsWith(name.slice(0, alike)))
  return found === undefined || name.length < 2 ? '' : ` Did you mean "${sign}${found}"?`
}

export function noCommand(name: string, commands: readonly Command[]): string {
  return `There is no command "${name}".${meant(name, { names: commands.map((command) => command.name), alike: 2 })}`
}

function lettersOf(word: string): string {
  return [...word].sort().join('')
}
