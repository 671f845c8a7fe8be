/**
 * The words of a command that a shell would do nothing with but run it; undefined for all others: those have variables,
 * pipes, redirections, patterns, lists, or are the shell's own commands.
 */
export function commandWords(command: string): string[] | undefined {
  const words: string[] = []
  const text = command.trim()
  PART.lastIndex = 0
  let at = 0
  let word: string | undefined
  while (at < text.length) {
    const blank = /^[ \t]+/.exec(text.slice(at))?.[0]
    if (blank !== undefined) {
      if (word !== undefined) words.push(word)
      word = undefined
      at += blank.length
      continue
    }
    PART.lastIndex = at
    const found = PART.exec(text)
    if (found === null) return undefined
    const [whole, bare, single, double] = found
    word = `${word ?? ''}${bare ?? single ?? double ?? ''}`
    at += whole.length
  }
  if (word !== undefined) words.push(word)
  const [program = ''] = words
  return program === '' || program.includes('=') || SHELL_OWN.has(program) ? undefined : words
}

/** What runs a command: the program itself where no shell is needed, so that what is decided is the program. */
export function programOf(command: string): readonly string[] {
  return commandWords(command) ?? ['sh', '-c', command]
}

/** Plain characters, or a text in quotes that means itself. */
const PART = /([\w@%+=:,./-]+)|'([^']*)'|"([^"$`\\!]*)"/y

const SHELL_OWN: ReadonlySet<string> = new Set([
  ...['.', ':', '[', 'alias', 'bg', 'break', 'case', 'cd', 'command', 'continue', 'do', 'done', 'elif', 'else', 'esac'],
  ...[
    'eval',
    'exec',
    'exit',
    'export',
    'false',
    'fg',
    'fi',
    'for',
    'function',
    'getopts',
    'hash',
    'if',
    'jobs',
    'kill',
  ],
  ...['local', 'popd', 'printf', 'pushd', 'read', 'readonly', 'return', 'select', 'set', 'shift', 'source', 'test'],
  ...['then', 'time', 'times', 'trap', 'true', 'type', 'ulimit', 'umask', 'unalias', 'unset', 'until', 'wait', 'while'],
])
