import { parseArgs } from 'node:util'
import {
  type Call,
  type CliCommand,
  CliError,
  EXIT,
  isRemote,
  noCommand,
  type Option,
  optionsOf,
  SERVER,
  STORE,
  suggestion,
} from './command/command.ts'
import { COMMANDS } from './commands.ts'

export interface ReadArgs {
  readonly command: CliCommand
  readonly call: Call
  readonly wantsHelp: boolean
}

/** Parses the arguments after the program's name. Throws a CliError if they make no sense. */
export function readArgs(args: readonly string[], env: NodeJS.ProcessEnv): ReadArgs | 'help' | 'version' {
  const name = commandWord(args)
  if (name === undefined) return withoutCommand(args)
  const command = COMMANDS.find((one) => one.name === name)
  if (command === undefined) throw new CliError(noCommand(name, COMMANDS), EXIT.usage)
  const options = optionsOf(command)
  const { values, positionals } = strictly(args, isRemote(name) ? options : [...options, SERVER])
  refuseServer(name, values)
  const [, ...words] = positionals
  const wantsHelp = values['help'] === true
  const call: Call = { words, values, env, commands: COMMANDS }
  if (!wantsHelp) checkWords(command, call)
  return { command, wantsHelp, call }
}

/** A command that cannot use a server says so. */
function refuseServer(name: string, values: Values): void {
  if (isRemote(name) || values['server'] === undefined) return
  throw new CliError(`"${name}" works on this machine only: it takes no --server.`, EXIT.usage, { namesHelp: false })
}

/** Thrown if a command needs an id and got none; candidates can then be looked up. */
export class MissingId extends CliError {
  readonly command: string
  readonly call: Call

  constructor(message: string, command: string, call: Call) {
    super(message, EXIT.usage)
    this.command = command
    this.call = call
  }
}

type Values = Call['values']

/** Finds the first word that is neither an option nor the value of one. */
function commandWord(args: readonly string[]): string | undefined {
  const options = parseOptions([...COMMANDS.flatMap(optionsOf), STORE, SERVER])
  return parseArgs({ args: [...args], options, allowPositionals: true, strict: false }).positionals[0]
}

function withoutCommand(args: readonly string[]): 'help' | 'version' {
  const { values } = strictly(args, [
    STORE,
    { name: 'help', short: 'h', text: '' },
    { name: 'version', short: 'v', text: '' },
  ])
  return values['version'] === true && values['help'] !== true ? 'version' : 'help'
}

function strictly(
  args: readonly string[],
  options: readonly Option[],
): { readonly values: Values; readonly positionals: readonly string[] } {
  try {
    const read = parseArgs({ args: [...args], options: parseOptions(options), allowPositionals: true })
    return { values: { ...read.values } as Values, positionals: read.positionals }
  } catch (error) {
    const [sentence = ''] = String(error instanceof Error ? error.message : error).split('. ')
    const [, dashed] = /^Option '(?:-\w, )?--([\w-]+)[^']*' argument is ambiguous/.exec(sentence) ?? []
    if (dashed !== undefined) {
      throw new CliError(
        `--${dashed} needs a value. If the value begins with "-", write --${dashed}=-VALUE.`,
        EXIT.usage,
      )
    }
    const [, unknown] = /^Unknown option '--([^']*)'/.exec(sentence) ?? []
    const names = options.map(({ name }) => name)
    const hint = unknown === undefined ? '' : suggestion(unknown, { names, alike: 3, sign: '--' })
    throw new CliError(`${sentence.replace(/\.$/, '')}.${hint}`, EXIT.usage)
  }
}

type ParseOption = { type: 'boolean' | 'string'; short?: string; multiple?: boolean }

function parseOptions(options: readonly Option[]): Record<string, ParseOption> {
  return Object.fromEntries(
    options.map(({ name, short, value, isList = false }) => [
      name,
      {
        type: value === undefined ? 'boolean' : 'string',
        multiple: isList,
        ...(short === undefined ? {} : { short }),
      },
    ]),
  )
}

function checkWords({ name, usage, completes, takes: [least, most] }: CliCommand, call: Call): void {
  const { words } = call
  if (words.length >= least && words.length <= most) return
  if (most === 0) throw new CliError(`"${name}" takes no arguments.`, EXIT.usage)
  const problem =
    words.length < least ? `missing ${namesIn(usage).slice(words.length, least).join(' and ')}` : 'too many arguments'
  const message = `${problem}: legate ${name} ${usage}.`
  throw completes === 'id' && words.length === 0
    ? new MissingId(message, name, call)
    : new CliError(message, EXIT.usage)
}

/** Lists the required arguments of a usage: those outside brackets. */
function namesIn(usage: string): string[] {
  return usage
    .replaceAll(/\[[^\]]*\]/g, '')
    .split(/[\s.]+/)
    .filter((word) => word !== '')
}
