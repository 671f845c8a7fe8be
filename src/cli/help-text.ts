import { CliError, type Command, EXIT, type Option, optionsOf, STORE } from './command.ts'

const WIDTH = 88

/** What `legate --help` says, or `legate help COMMAND`. */
export function helpText(commands: readonly Command[], name?: string): string {
  if (name === undefined) return overview(commands)
  const command = commands.find((one) => one.name === name)
  if (command === undefined) throw new CliError(`There is no command "${name}".`, EXIT.usage)
  return commandHelp(command)
}

function overview(commands: readonly Command[]): string {
  const names = Math.max(...commands.map(({ name }) => name.length)) + 2
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(names)}${summary}`)
  const general: readonly Option[] = [
    STORE,
    { name: 'help', short: 'h', text: 'this text; after a command, the help of that command' },
    { name: 'version', short: 'v', text: 'the version' },
  ]
  return `Usage: legate <command> [options]

Agents that delegate, and a record of all they did. Watch it, stop it, go on with it.

Commands
${lines.join('\n')}

Options
${optionLines(general).join('\n')}

Examples
${exampleLines([
  ['legate demo', 'start here: offline, five seconds'],
  ['legate ps', 'what is going on'],
  ['legate log -f 1f0c9a2e', 'follow a run, from any terminal'],
  ['legate help log', 'how to use one command'],
]).join('\n')}

An ID is any ending of a run's or conversation's id that is unique in the store; ps shows the last 8 characters.
Exit codes: 0 done, 1 another outcome or a failure, 2 wrong usage, 3 waits for a person, 130 interrupted.
`
}

function commandHelp(command: Command): string {
  const about = (command.about ?? []).map((paragraph) => `\n${wrapped(paragraph)}\n`).join('')
  return `Usage: ${`legate ${command.name} ${command.usage}`.trimEnd()}

${capital(command.summary)}.
${about}
Options
${optionLines(optionsOf(command)).join('\n')}

Examples
${exampleLines(command.examples).join('\n')}
`
}

function optionLines(options: readonly Option[]): string[] {
  const left = options.map(({ name, short, value }) => {
    const word = `--${name}${value === undefined ? '' : ` ${value}`}`
    return short === undefined ? `    ${word}` : `-${short}, ${word}`
  })
  const width = Math.max(...left.map(({ length }) => length)) + 2
  return options.map(({ text }, at) => `  ${left[at]?.padEnd(width)}${text}`)
}

function exampleLines(examples: Command['examples']): string[] {
  const width = Math.max(...examples.map(([line]) => line.length)) + 2
  if (width + Math.max(...examples.map(([, what]) => what.length)) <= WIDTH) {
    return examples.map(([line, what]) => `  ${line.padEnd(width)}${what}`)
  }
  return examples.flatMap(([line, what]) => [`  # ${what}`, `  ${line}`])
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function wrapped(text: string): string {
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last.length + word.length + 1 > WIDTH) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return lines.join('\n')
}
