import { readWords } from '../../grant/words.ts'

/**
 * The words of a command that a shell would do nothing with but run it; undefined for all others: those have variables,
 * pipes, redirections, patterns, lists, or are the shell's own commands.
 */
export function commandWords(command: string): string[] | undefined {
  const words = readWords(command.trim())
  const [program = ''] = words ?? []
  return program === '' || program.startsWith('-') || program.includes('=') || SHELL_OWN.has(program)
    ? undefined
    : words
}

/** What runs a command: the program itself where no shell is needed, so that what is decided is the program. */
export function programOf(command: string): readonly string[] {
  return commandWords(command) ?? ['sh', '-c', command]
}

/** There are no programs of these names, or they do something else. */
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
