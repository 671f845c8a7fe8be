import { matchName } from '../../grant/match.ts'

/** Words for tools, and the tools of ours that each stands for: `Read` is `read_text_file` and two more. */
export interface ToolWords {
  readonly [word: string]: readonly string[]
}

/** Sets of tools that programs have one word for. */
export const READ: readonly string[] = ['read_text_file', 'read_multiple_files', 'get_file_info']
export const FIND: readonly string[] = ['search_files', 'list_directory']
export const SEARCH: readonly string[] = ['search_files', 'search_text']
export const LIST: readonly string[] = ['list_directory', 'list_directory_with_sizes', 'tree']
export const CHECKLIST: readonly string[] = ['todo_write', 'todo_read']
export const SKILLS: readonly string[] = ['skills_list', 'skills_load', 'skills_read']

/** Tools that come with the package, by their names. */
export const OUR_TOOLS: readonly string[] = [
  ...new Set([...READ, ...FIND, ...SEARCH, ...LIST, ...CHECKLIST, ...SKILLS]),
  ...['write_file', 'edit_file', 'delete_file', 'create_directory', 'move_file', 'shell'],
  ...['memory_remember', 'memory_recall', 'memory_forget', 'read_result', 'reset_tools', 'subagent', 'load'],
]

/** Words for tools that there are not here: each stands for a tool of its own name. */
export function elsewhere(...words: readonly string[]): ToolWords {
  return Object.fromEntries(words.map((word) => [word, [word]]))
}

/** What a word stands for; undefined where nobody has this word. A name of ours is itself. */
export function toolsNamed(word: string, tables: readonly ToolWords[]): readonly string[] | undefined {
  const [own = {}, ...others] = tables
  return inTable(word, own) ?? ours(word) ?? others.map((table) => inTable(word, table)).find(isDefined)
}

/** Is it, or what its stars stand for, one of the tools that come with the package? */
export function isOurs(name: string): boolean {
  return OUR_TOOLS.some((tool) => matchName(name, tool))
}

function inTable(word: string, table: ToolWords): readonly string[] | undefined {
  const words = loweredTables.get(table) ?? new Map(lowered(table))
  loweredTables.set(table, words)
  return words.get(word.toLowerCase())
}

/** By words in lower case; of two that differ in case only, the first counts. */
const loweredTables: WeakMap<ToolWords, ReadonlyMap<string, readonly string[]>> = new WeakMap()

function lowered(table: ToolWords): (readonly [string, readonly string[]])[] {
  const entries = Object.entries(table).map(([word, tools]) => [word.toLowerCase(), tools] as const)
  return entries.reverse()
}

function ours(word: string): readonly string[] | undefined {
  return isOurs(word) ? [word] : undefined
}

function isDefined<T>(value: T | undefined): value is T {
  return value !== undefined
}
