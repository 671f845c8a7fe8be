import type { JsonSchema } from '../base/schema/schema.ts'
import { fileNeed } from '../files/access.ts'
import { readFilePath } from '../files/path.ts'
import { type ProgramRequest, programRequest } from '../grant/request.ts'
import { readWords } from '../grant/words.ts'
import { plainEnvironment } from '../tool/environment.ts'
import { type ProcessResult, runProgram } from '../tool/run-process.ts'
import { markFacts, markUse, type Tool, type ToolContext, tool } from '../tool/tool.ts'
import { WORKSPACE, withWorkspacePaths } from './workspace-paths.ts'

const MOST_SECONDS = 600
const SECONDS = 120
const KEPT_BYTES = 1_048_576
/** The longest command, and the longest argv, all its words together. */
const MOST_CHARACTERS = 100_000

interface ShellInput {
  readonly command?: string
  readonly argv?: readonly string[]
  readonly cwd?: string
  readonly timeout_seconds?: number
}

const SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    command: {
      type: 'string',
      maxLength: MOST_CHARACTERS,
      description: 'A command line. What needs a shell is run by sh -c',
    },
    argv: {
      type: 'array',
      items: { type: 'string', maxLength: MOST_CHARACTERS },
      minItems: 1,
      maxItems: 1_000,
      description: 'Instead of command: a program and its arguments, as they are',
    },
    cwd: { type: 'string', description: 'Where to run it. Default: the workspace' },
    timeout_seconds: { type: 'integer', minimum: 1, maximum: MOST_SECONDS, description: `Default ${SECONDS}` },
  },
  additionalProperties: false,
}

/**
 * Runs programs in the workspace. Asks for `exec:` and the whole command line: `exec:git status`, or `exec:sh -c 'git
 * status; ls'` where a shell is needed. The processes of its group end with a command; a daemon leaves the group.
 */
export function shellTool(): Tool {
  const made = tool({
    description:
      'Runs a command in the workspace and gives its output and exit code. A background job (&) ends with it.',
    input: SCHEMA,
    effect: 'effectful',
    timeoutMs: (MOST_SECONDS + 5) * 1_000,
    needs: (input) => [programIn(input as ShellInput), ...fileNeed('list', placeOf(input as ShellInput))],
    execute: (input, context) => run(input as ShellInput, context),
  })
  return withWorkspacePaths(markFacts(markUse(made as Tool, 'exec'), { works: 'programs' }))
}

async function run(input: ShellInput, { files, signal }: ToolContext): Promise<string> {
  const seconds = input.timeout_seconds ?? SECONDS
  const result = await files.inDirectory(placeOf(input), (cwd) =>
    runProgram(programIn(input), {
      signal,
      cwd,
      env: plainEnvironment(),
      timeoutMs: seconds * 1_000,
      maxOutputBytes: KEPT_BYTES,
    }),
  )
  return resultForm(result, seconds)
}

/**
 * The program to decide and run: directly where possible, so that the rules see the program itself, else through a
 * shell.
 */
function programIn(input: ShellInput): ProgramRequest {
  const { command, argv } = input
  const isOne = (command === undefined) !== (argv === undefined)
  if (!isOne || command?.trim() === '') throw new Error('give it either a command or an argv, and not an empty one')
  const length = argv?.reduce((sum, word) => sum + word.length, 0) ?? 0
  if (length > MOST_CHARACTERS) throw new Error(`argv has at most ${MOST_CHARACTERS} characters in all, not ${length}`)
  const { text } = readFilePath(placeOf(input), 'directory')
  return programRequest(argv ?? programOf(command ?? ''), { folder: text === WORKSPACE ? null : text })
}

function placeOf({ cwd = WORKSPACE }: ShellInput): string {
  return cwd
}

function resultForm({ exitCode, stdout, stderr, isCut, timedOut }: ProcessResult, seconds: number): string {
  const parts = [
    stdout.trimEnd(),
    stderr.trim() === '' ? '' : `[stderr]\n${stderr.trimEnd()}`,
    isCut ? `[more than ${KEPT_BYTES / 1024} KB of output: the rest was left off]` : '',
    timedOut ? `[stopped after ${seconds} s]` : '',
    exitCode === 0 ? '' : `[exit code ${exitCode}]`,
  ].filter((part) => part !== '')
  return parts.join('\n') || '[no output]'
}

/**
 * The words of a command that needs no shell; undefined for all others, which have variables, pipes, redirections,
 * patterns, lists, or are the shell's own commands.
 */
export function commandWords(command: string): string[] | undefined {
  const words = readWords(command.trim())
  const [program = ''] = words ?? []
  return program === '' || program.startsWith('-') || program.includes('=') || SHELL_OWN.has(program)
    ? undefined
    : words
}

/** The argv for a command: the program itself where no shell is needed, so that the decision is about the program. */
export function programOf(command: string): readonly string[] {
  return commandWords(command) ?? ['sh', '-c', command]
}

/** No programs have these names, or they do something else. */
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
