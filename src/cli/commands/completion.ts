import { type Call, type CliCommand, CliError, EXIT, optionsOf } from '../command/command.ts'
import { write } from '../terminal/output.ts'

/** Completes ids from the store named on the line, at the moment of completion: those that `legate ps` lists. */
const IDS = 'legate ps -q'

const SCRIPTS: ReadonlyMap<string, (commands: readonly CliCommand[]) => string> = new Map([
  ['bash', bash],
  ['zsh', zsh],
  ['fish', fish],
])

export async function completion({ words: [shell = ''], commands }: Call): Promise<number> {
  const script = SCRIPTS.get(shell)
  if (script === undefined)
    throw new CliError(`There is no completion for "${shell}". Use bash, zsh or fish.`, EXIT.usage)
  await write(script(commands))
  return EXIT.completed
}

/**
 * Makes the script for bash. No completed word passes through an expansion: words are compared literally, and readline
 * completes and quotes file names itself, so they never reach the script.
 */
function bash(commands: readonly CliCommand[]): string {
  const names = namesOf(commands).join(' ')
  const cases = commands.map((command) => `    ${command.name}) ${bashWords(command, commands)} ;;`)
  return `# legate completion bash >> ~/.bashrc
_legate_ids() {
  local at word store=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ "\${COMP_WORDS[at]}" != --store ]]; then continue; fi
    if [[ "\${COMP_WORDS[at+1]}" == "=" ]]; then at=$((at + 1)); fi
    word="\${COMP_WORDS[at+1]}"
    if ((at + 1 < COMP_CWORD)); then store=(--store "\${word/#\\~\\//$HOME/}"); fi
  done
  ${IDS} "\${store[@]}" 2>/dev/null
}
_legate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="" words=() word
  COMPREPLY=()
  case "$previous" in
    --store|--module|-m) compopt -o default; return ;;
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " ${names} " in *" $word "*) command="$word"; break ;; esac
  done
  case "$command" in
    "") words=(${names} --help --version --store) ;;
${cases.join('\n')}
  esac
  for word in "\${words[@]}"; do
    if [[ "$word" == "$current"* ]]; then COMPREPLY+=("$word"); fi
  done
}
complete -F _legate legate
`
}

function bashWords(command: CliCommand, commands: readonly CliCommand[]): string {
  const words = wordsOf(command, commands)
  const flags = flagsOf(command)
  if (words === 'files') return `words=(${flags}); if [[ "$current" != -* ]]; then compopt -o default; return; fi`
  if (words !== 'ids') return `words=(${[flags, ...words].join(' ')})`
  return `words=(${flags}); while read -r word; do if [[ "$word" =~ ^[0-9a-f]+$ ]]; then words+=("$word"); fi; done < <(_legate_ids)`
}

function zsh(commands: readonly CliCommand[]): string {
  const described = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary.replaceAll(':', '\\:')}`)}`)
  const cases = commands.map((command) => {
    const words = wordsOf(command, commands)
    if (words === 'files') return `    ${command.name}) compadd -- ${flagsOf(command)}; _files ;;`
    const list = words === 'ids' ? `\${(M)\${(f)"$(_legate_ids)"}:#[0-9a-f]##}` : words.join(' ')
    return `    ${command.name}) compadd -- ${flagsOf(command)} ${list} ;;`
  })
  return `#compdef legate
# legate completion zsh > "$fpath[1]/_legate"
_legate_ids() {
  local at word
  local -a store
  for ((at = 2; at < CURRENT; at++)); do
    word=\${(Q)words[at]}
    if [[ $word == --store=* ]]; then store=($word)
    elif [[ $word == --store ]] && ((at + 1 < CURRENT)); then store=(--store \${(Q)words[at+1]/#\\~\\//$HOME/}); fi
  done
  ${IDS} $store 2>/dev/null
}
_legate() {
  setopt localoptions extendedglob
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

function fish(commands: readonly CliCommand[]): string {
  const lines = commands.flatMap((command) => {
    const used = `-n "__fish_seen_subcommand_from ${command.name}"`
    const words = wordsOf(command, commands)
    const list = words === 'ids' ? '"(__legate_ids)"' : quoted(typeof words === 'string' ? '' : words.join(' '))
    return [
      `complete -c legate -f -n "__fish_use_subcommand" -a ${command.name} -d ${quoted(command.summary)}`,
      ...optionsOf(command).map(({ name, short, value, text }) => {
        const flag = `${short === undefined ? '' : `-s ${short} `}-l ${name}`
        return `complete -c legate ${value === undefined ? '-f' : '-r -F'} ${used} ${flag} -d ${quoted(text)}`
      }),
      ...(words.length === 0 || words === 'files' ? [] : [`complete -c legate -f ${used} -a ${list}`]),
      ...(words === 'files' ? [`complete -c legate ${used} -F`] : []),
    ]
  })
  return `# legate completion fish > ~/.config/fish/completions/legate.fish
function __legate_ids
  set -l store
  set -l before
  for word in (commandline -opc)
    if test "$before" = --store
      set store --store (string replace -r '^~/' "$HOME/" -- $word)
    else if string match -q -- '--store=*' $word
      set store $word
    end
    set before $word
  end
  ${IDS} $store 2>/dev/null | string match -r '^[0-9a-f]+$'
end
${lines.join('\n')}
`
}

function namesOf(commands: readonly CliCommand[]): string[] {
  return commands.map(({ name }) => name)
}

function flagsOf(command: CliCommand): string {
  return optionsOf(command)
    .map(({ name }) => `--${name}`)
    .join(' ')
}

function wordsOf({ completes = [] }: CliCommand, commands: readonly CliCommand[]): 'ids' | 'files' | readonly string[] {
  if (completes === 'id') return 'ids'
  if (completes === 'file') return 'files'
  return completes === 'command' ? namesOf(commands) : completes
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
