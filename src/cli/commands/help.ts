import {
  type Call,
  type CliCommand,
  CliError,
  COMMAND_GROUPS,
  type CommandGroup,
  EXIT,
  noCommand,
  type Option,
  optionsOf,
  STORE,
} from '../command/command.ts'
import { outputColumns } from '../terminal/output.ts'
import { wrap } from '../terminal/width.ts'

export async function help({ words, commands }: Call): Promise<number> {
  process.stdout.write(helpText(commands, words[0]))
  return EXIT.completed
}

const WIDEST = 80
const NARROWEST = 30

/**
 * Writes the text of `legate --help` or `legate help COMMAND`. No line is wider than the terminal, or than 80 columns.
 */
export function helpText(commands: readonly CliCommand[], name?: string, columns: number = outputColumns()): string {
  const width = Math.max(NARROWEST, Math.min(WIDEST, columns - 1))
  if (name === undefined) return overview(commands, width)
  const command = commands.find((one) => one.name === name)
  if (command === undefined) throw new CliError(noCommand(name, commands), EXIT.usage)
  return commandHelp(command, width)
}

function overview(commands: readonly CliCommand[], width: number): string {
  const general: readonly Option[] = [
    STORE,
    { name: 'help', short: 'h', text: 'show this text; after a command, its help' },
    { name: 'version', short: 'v', text: 'print the version' },
  ]
  return `Usage: legate <command> [options]

${wrapped('Run agents that delegate. Watch, stop and resume them; everything they do is recorded.', width)}

${commandLists(commands, width)}

Options
${optionLines(general, width)}

Examples
${exampleLines(
  [
    ['legate demo', 'start here: offline, five seconds'],
    ['legate ps', 'see open runs'],
    ['legate log -f 1f0c9a2e', 'follow a run, from any terminal'],
    ['legate help log', 'how to use one command'],
  ],
  width,
)}

${wrapped(IDS, width)}
${wrapped(CODES, width)}
`
}

/** The commands of each group below its name, their summaries in one column. */
function commandLists(commands: readonly CliCommand[], width: number): string {
  const indent = indentOf(commands.map(({ name }) => name))
  const list = (group: CommandGroup) => {
    const rows = commands.filter((one) => one.group === group).map(({ name, summary }) => [name, summary] as const)
    return `${group}\n${table(rows, width, indent)}`
  }
  return COMMAND_GROUPS.map(list).join('\n\n')
}

const IDS = 'An ID is the last 4 or more characters of the id of a run or conversation; ps shows the last 8.'
const CODES =
  'Exit codes: 0 completed, 1 failed or ended otherwise, 2 wrong usage, 3 waits for a person, 130 interrupted.'

function commandHelp(command: CliCommand, width: number): string {
  const about = (command.about ?? []).map((paragraph) => `\n${wrapped(paragraph, width)}\n`).join('')
  return `${wrapped(`Usage: ${`legate ${command.name} ${command.usage}`.trimEnd()}`, width)}

${wrapped(`${capital(command.summary)}.`, width)}
${about}
Options
${optionLines(optionsOf(command), width)}

Examples
${exampleLines(command.examples, width)}
`
}

function optionLines(options: readonly Option[], width: number): string {
  return table(
    options.map(({ name, short, value, text }) => {
      const word = `--${name}${value === undefined ? '' : ` ${value}`}`
      return [short === undefined ? `    ${word}` : `-${short}, ${word}`, text]
    }),
    width,
  )
}

/** Leaves a line that cannot be broken as it is, so that you can copy it. */
function exampleLines(examples: CliCommand['examples'], width: number): string {
  const longest = Math.max(...examples.map(([line]) => line.length)) + 4
  if (longest + Math.max(...examples.map(([, what]) => what.length)) <= width) return table(examples, width)
  return examples.map(([line, what]) => `${wrapped(`# ${what}`, width, '  ')}\n  ${line}`).join('\n')
}

/** Lays out two columns. If there is hardly any room for the second one, it goes below the first. */
function table(
  rows: readonly (readonly [left: string, right: string])[],
  width: number,
  indent = indentOf(rows.map(([left]) => left)),
): string {
  const isNarrow = width - indent < NARROWEST / 2
  return rows
    .map(([left, right]) => {
      if (isNarrow) return `  ${left}\n${wrapped(right, width, '      ')}`
      return `  ${left}`.padEnd(indent) + wrapped(right, width, ' '.repeat(indent)).trimStart()
    })
    .join('\n')
}

function indentOf(names: readonly string[]): number {
  return Math.max(...names.map(({ length }) => length)) + 4
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function wrapped(text: string, width: number, indent = ''): string {
  return wrap(text, width - indent.length)
    .lines.map((line) => indent + line)
    .join('\n')
}
