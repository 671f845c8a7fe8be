import { matchName } from '../../grant/match.ts'
import { own } from '../text/own.ts'

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

/** Changes of files that other programs make with their words for writing, or not at all. */
const OTHER_CHANGES: readonly string[] = ['delete_file', 'create_directory', 'move_file']

/** Tools that come with the package, by their names. */
export const OUR_TOOLS: readonly string[] = [
  ...new Set([...READ, ...FIND, ...SEARCH, ...LIST, ...CHECKLIST, ...SKILLS]),
  ...['write_file', 'edit_file', ...OTHER_CHANGES, 'shell'],
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

/**
 * The tools that a word of another program forbids: more than it allows. Without a word for writing nothing else may change
 * files either, and without one for finding files nothing else may list them. A name of ours forbids just that tool.
 */
export function toolsForbidden(word: string, tools: readonly string[]): readonly string[] {
  if (isOurs(word)) return tools
  const isWriting = tools.includes('write_file') || tools.includes('edit_file')
  const isFinding = FIND.every((tool) => tools.includes(tool))
  return [...new Set([...tools, ...(isWriting ? OTHER_CHANGES : []), ...(isFinding ? LIST : [])])]
}

export type ToolDomain = 'exec' | 'net' | 'file.list' | 'file.read' | 'file.write' | 'file.delete'

/** What tools do, which rules must allow for them to work. A shell also lists the folder that it runs in. */
export function domainsUsed(tools: readonly string[]): ReadonlySet<ToolDomain> {
  return new Set(tools.flatMap((tool) => own(USED, tool) ?? []))
}

const USED: Readonly<Record<string, readonly ToolDomain[]>> = {
  shell: ['exec'],
  web_fetch: ['net'],
  read_text_file: ['file.read'],
  read_multiple_files: ['file.read'],
  search_text: ['file.list', 'file.read'],
  ...Object.fromEntries([...FIND, ...LIST, 'get_file_info'].map((tool) => [tool, ['file.list']])),
  write_file: ['file.write'],
  edit_file: ['file.read', 'file.write'],
  create_directory: ['file.write'],
  move_file: ['file.write', 'file.delete'],
  delete_file: ['file.delete'],
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
