import type { Definition } from './definition.ts'
import { type Call, DEVELOPER_TOOLS, REFUSED } from './tools.ts'

/** What an agent file names, as its program documents the words. */
export interface NamedTools {
  readonly works: ReadonlySet<string>
  /** Whether a word includes these is a matter of taste. */
  readonly either: ReadonlySet<string>
  /** Named, and not here. */
  readonly missing: readonly string[]
  /** `Bash(ls:*)`: command lines within the brackets work, others do not. */
  readonly commands: readonly Call[]
}

interface Word {
  readonly works: readonly string[]
  readonly either?: readonly string[]
}

const CLAUDE: Readonly<Record<string, Word>> = {
  Read: { works: ['read_text_file'] },
  Write: { works: ['write_file'] },
  Edit: { works: ['edit_file'], either: ['write_file'] },
  Bash: { works: ['shell'] },
  Glob: { works: ['search_files'], either: ['list_directory'] },
  Grep: { works: ['search_text'], either: ['search_files'] },
}

const COPILOT: Readonly<Record<string, Word>> = {
  read: { works: ['read_text_file'], either: ['list_directory'] },
  search: { works: ['search_files', 'search_text'], either: ['list_directory', 'tree'] },
  edit: { works: ['edit_file', 'write_file'] },
  execute: { works: ['shell'] },
}

const READING = ['read_text_file', 'list_directory', 'search_files', 'search_text', 'tree']

/** An agent file that names no tools has all of its host. */
export function agentTools({ dialect, said }: Definition): NamedTools {
  const isReadOnly = said.readonly === true || said.sandbox_mode === 'read-only'
  if (said.tools === undefined)
    return { works: new Set(isReadOnly ? READING : DEVELOPER_TOOLS), either: new Set(), missing: [], commands: [] }
  const table = dialect === 'copilot' ? COPILOT : CLAUDE
  const words = wordsOf(said.tools)
  const plain = words.filter((word) => !word.includes('('))
  const known = plain.flatMap((word) => table[word] ?? [])
  const works = new Set(known.flatMap((word) => word.works))
  return {
    works,
    either: new Set(known.flatMap(({ either = [] }) => either).filter((tool) => !works.has(tool))),
    missing: plain.filter((word) => table[word] === undefined).map(absentName),
    commands: commandCalls(words.flatMap((word) => /^Bash\((.*)\)$/.exec(word)?.[1] ?? [])),
  }
}

/** Tools of a server are missing together: `mcp__meigen__search_gallery`, `github/list_pull_requests`. */
function absentName(word: string): string {
  const [, server] = /^mcp__(\w+?)__/.exec(word) ?? /^(\w+)\//.exec(word) ?? []
  return server === undefined ? word : `the MCP server "${server}"`
}

/** `Read, Write`, a list, or `{ "*": false, "github-triage": true }`. */
function wordsOf(tools: unknown): readonly string[] {
  if (typeof tools === 'string') return tools.split(/,\s*/)
  if (Array.isArray(tools)) return tools as readonly string[]
  return Object.entries(tools as object).flatMap(([name, isOn]) => (isOn === true ? [name] : []))
}

function commandCalls(limits: readonly string[]): readonly Call[] {
  const shell = (command: string, gives: RegExp): Call => ({ name: 'shell', input: { command }, gives })
  return limits.flatMap((limit) => {
    const [, open] = /^(.*):\*$/.exec(limit) ?? []
    const allowed = open === undefined ? limit : `${open} notes.txt`
    return [
      shell(allowed, /notes\.txt|three blind mice/),
      shell(`${allowed}; rm leftover.txt`, REFUSED),
      ...(open === undefined ? [shell(`${limit} draft.txt`, REFUSED)] : [shell(`${open}x notes.txt`, REFUSED)]),
    ]
  })
}
