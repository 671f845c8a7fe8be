// The vocabulary of the command line: a command of the table, one call of it, its errors and exit codes.
//
// Called by: every file of `cli`.
//
// Must stay true:
// - It imports nothing of the package, so that `--help` stays fast.
// - A CliError is one clear line for people that says what to do next; wrong usage exits with 2.

/** Groups of commands by their purpose, in the order of `legate --help`. */
export const COMMAND_GROUPS = ['Run', 'Look', 'Answer', 'Change', 'Serve', 'Help'] as const

export type CommandGroup = (typeof COMMAND_GROUPS)[number]

/**
 * One entry of the command table: everything that `--help`, completion and the argument reader need without loading its
 * code.
 */
export interface CliCommand {
  readonly name: string
  /** Where it stands in `legate --help`. */
  readonly group: CommandGroup
  /** The arguments after the name, as in `ID [-f] [--json]`. */
  readonly usage: string
  readonly summary: string
  /** Paragraphs below the usage, for details that do not fit the summary. */
  readonly about?: readonly string[]
  readonly options: readonly Option[]
  readonly examples: readonly (readonly [line: string, what: string])[]
  /** The least and the most positional arguments. */
  readonly takes: readonly [least: number, most: number]
  /** The kind of the positional arguments, for completion in the shell. */
  readonly completes?: 'id' | 'command' | 'file' | readonly string[]
  load(): Promise<RunCommand>
}

export interface Option {
  readonly name: string
  readonly short?: string
  /** The name of the option's value; an option without one is a switch. */
  readonly value?: string
  /** Whether the option may be repeated. */
  readonly isList?: true
  readonly text: string
}

/** Runs the command and returns the exit code. */
export type RunCommand = (call: Call) => Promise<number>

/** One call of a command, as typed. */
export interface Call {
  readonly words: readonly string[]
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  readonly env: NodeJS.ProcessEnv
  /** All commands of the program. */
  readonly commands: readonly CliCommand[]
}

export const EXIT = { completed: 0, other: 1, usage: 2, parked: 3, interrupted: 130, terminated: 143 } as const

/** Ends the program with one clear line on stderr. A usage error also says which help to read. */
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
  text: 'the store: a file, or postgres://...; else $LEGATE_DB, else legate/legate.db in $XDG_STATE_HOME (~/.local/state)',
}

export const SERVER: Option = {
  name: 'server',
  value: 'URL',
  text: 'a server instead of a store, by the address that legate serve printed, or unix:PATH; else $LEGATE_SERVER',
}
const TOKEN: Option = {
  name: 'token',
  value: 'TOKEN',
  text: 'the token for the server; else $LEGATE_TOKEN, or the one in its address',
}

/** Lists all options of a command, including those every command has. */
export function optionsOf(command: CliCommand): readonly Option[] {
  return [
    ...command.options,
    ...(isStoreless(command.name) ? [] : [STORE]),
    ...(isRemote(command.name) ? [SERVER, TOKEN] : []),
    { name: 'help', short: 'h', text: 'show this text' },
  ]
}

/** Tells whether a command can also use a server. */
export function isRemote(name: string): boolean {
  return !isStoreless(name) && !LOCAL.includes(name)
}

/** Tells whether a command takes no store. */
export function isStoreless(name: string): boolean {
  return STORELESS.includes(name)
}

/** Commands that work on a store of this machine only. */
const LOCAL: readonly string[] = ['chat', 'doctor', 'resume', 'serve', 'worker', 'open', 'mcp', 'acp', 'restored']

const STORELESS: readonly string[] = [
  ...['demo', 'init', 'explain', 'validate', 'convert', 'completion', 'help', 'copy'],
]

export interface SuggestionOptions {
  readonly names: readonly string[]
  /** How many equal letters at the beginning make a name a likely match. */
  readonly alike: number
  readonly sign?: string
}

/** Suggests the name that was probably meant: the same letters in another order, one letter too few or too many, or the same beginning. */
export function suggestion(name: string, { names, alike, sign = '' }: SuggestionOptions): string {
  const found =
    names.find((one) => lettersOf(one) === lettersOf(name)) ??
    names.find((one) => isOneLetterOff(one, name)) ??
    names.find((one) => one.startsWith(name.slice(0, alike)))
  return found === undefined || name.length < 2 ? '' : ` Did you mean "${sign}${found}"?`
}

export function noCommand(name: string, commands: readonly CliCommand[]): string {
  return `There is no command "${name}".${suggestion(name, { names: commands.map((command) => command.name), alike: 2 })}`
}

function isOneLetterOff(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return long.length === short.length + 1 && [...long].some((_, at) => long.slice(0, at) + long.slice(at + 1) === short)
}

function lettersOf(word: string): string {
  return [...word].sort().join('')
}
