import { type Call, CliError, type Command, EXIT, optionsOf } from '../command.ts'
import { write } from '../terminal/output.ts'

/** Ids come from `legate ps -q` when they are asked for. */
const IDS = 'legate ps --all -q 2>/dev/null'

const SCRIPTS: ReadonlyMap<string, (commands: readonly Command[]) => string> = new Map([
  ['bash', bash],
  ['zsh', zsh],
  ['fish', fish],
])

export async function completion({ words: [shell = ''], commands }: Call): Promise<number> {
  const script = SCRIPTS.get(shell)
  if (script === undefined) throw new CliError(`There is no completion for "${shell}".`, EXIT.usage)
  await write(script(commands))
  return EXIT.completed
}

function bash(commands: readonly Command[]): string {
  const names = namesOf(commands).join(' ')
  const cases = commands.map(
    (command) => `    ${command.name}) words="${flagsOf(command)} ${bashWords(command, commands)}" ;;`,
  )
  return `# legate completion bash >> ~/.bashrc
_legate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="" words="" word
  case "$previous" in
    --store|--module|-m) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " ${names} " in *" $word "*) command="$word"; break ;; esac
  done
  case "$command" in
    "") words="${names} --help --version --store" ;;
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _legate legate
`
}

function bashWords(command: Command, commands: readonly Command[]): string {
  const words = wordsOf(command, commands)
  return words === 'ids' ? `$(${IDS})` : words.join(' ')
}

function zsh(commands: readonly Command[]): string {
  const described = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(':', '\\:')}`)}`)
  const cases = commands.map((command) => {
    const words = wordsOf(command, commands)
    const list = words === 'ids' ? `\${(f)"$(${IDS})"}` : words.join(' ')
    return `    ${command.name}) compadd -- ${flagsOf(command)} ${list} ;;`
  })
  return `#compdef legate
# legate completion zsh > "$fpath[1]/_legate"
_legate() {
  local -a commands
  commands=(
${described.join('\n')}
  )
  if [[ \${words[CURRENT-1]} == (--store|--module|-m) ]]; then _files; return; fi
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  case \${words[2]} in
${cases.join('\n')}
  esac
}
if [[ \${funcstack[1]} == _legate ]]; then _legate "$@"; else compdef _legate legate; fi
`
}

function fish(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => {
    const used = `-n "__fish_seen_subcommand_from ${command.name}"`
    const words = wordsOf(command, commands)
    const list = words === 'ids' ? `"(${IDS})"` : quoted(words.join(' '))
    return [
      `complete -c legate -f -n "__fish_use_subcommand" -a ${command.name} -d ${quoted(command.summary)}`,
      ...optionsOf(command).map(({ name, short, value, text }) => {
        const flag = `${short === undefined ? '' : `-s ${short} `}-l ${name}${value === undefined ? '' : ' -r -F'}`
        return `complete -c legate -f ${used} ${flag} -d ${quoted(text)}`
      }),
      ...(words.length === 0 ? [] : [`complete -c legate -f ${used} -a ${list}`]),
    ]
  })
  return `# legate completion fish > ~/.config/fish/completions/legate.fish\n${lines.join('\n')}\n`
}

function namesOf(commands: readonly Command[]): string[] {
  return commands.map(({ name }) => name)
}

function flagsOf(command: Command): string {
  return optionsOf(command)
    .map(({ name }) => `--${name}`)
    .join(' ')
}

function wordsOf({ completes = [] }: Command, commands: readonly Command[]): 'ids' | readonly string[] {
  if (completes === 'id') return 'ids'
  return completes === 'command' ? namesOf(commands) : completes
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
