// The words for tools in agent files, on their way from a list to a grant:
//
//   list -> words   `toolWords`, `forbiddenWords`: `Read, Bash(git:*)` are two words, however the file writes the list
//   words -> tools  `readToolWords`, `denyTools`: `Read` is `read_text_file`, by the tables of the dialect
//   tools -> grant  `limitTools`: `(git:*)` becomes rules for `exec`, in the `Narrowing` of the draft
//
// Called by: `draft` (`allowWords`, `denyWords`), the dialects (their tables), `convert/losses`, `agent-file-writer`.
// Must stay true:
//   - An unknown word in a list of allowed tools allows at most a tool of that very name. An unknown word in a list of
//     forbidden ones forbids more, not less.
//   - A limit in brackets holds for all tools with the same effect: beside `Read(src/**)`, `Grep` finds nothing elsewhere.
//   - Every guess is reported with its line.

import { nearest } from '../../core/base/options.ts'
import type { TextTree } from '../../core/base/text-tree/tree.ts'
import { matchName } from '../../core/grant/match.ts'
import { ownValue } from '../text/fields.ts'
import type { NoticeReport } from '../text/notice.ts'
import {
  commandPatterns,
  filePatterns,
  hostPatterns,
  isWidened,
  type Narrowing,
  namePatterns,
  namesPort,
} from './patterns.ts'

/** Words for tools and the tools here that each stands for: `Read` means `read_text_file` and two more. */
export interface ToolWords {
  readonly [word: string]: readonly string[]
}

/** Sets of tools that programs have one word for. */
export const READ: readonly string[] = ['read_text_file', 'read_multiple_files', 'get_file_info']
export const FIND: readonly string[] = ['search_files', 'list_directory']
export const SEARCH: readonly string[] = ['search_files', 'search_text']
export const LIST: readonly string[] = ['list_directory', 'list_directory_with_sizes', 'tree']
export const CHECKLIST: readonly string[] = ['todo_write', 'todo_read']
export const MEMORY: readonly string[] = ['memory_remember', 'memory_recall', 'memory_forget']
export const SKILLS: readonly string[] = ['skills_list', 'skills_load', 'skills_read']

/** Changes to files that other programs make with their words for writing, or not at all. */
const OTHER_CHANGES: readonly string[] = ['delete_file', 'create_directory', 'move_file']

/** Names of the tools in this package. */
export const OUR_TOOLS: readonly string[] = [
  ...new Set([...READ, ...FIND, ...SEARCH, ...LIST, ...CHECKLIST, ...SKILLS]),
  ...['write_file', 'edit_file', ...OTHER_CHANGES, 'shell'],
  ...[...MEMORY, 'read_result', 'reset_tools', 'subagent', 'load'],
]

/** Maps words for tools that do not exist here to tools of the same name. */
export function missingTools(...words: readonly string[]): ToolWords {
  return Object.fromEntries(words.map((word) => [word, [word]]))
}

/** Resolves a word to tools; undefined if no table has it. One of our own names means itself. */
function toolsNamed(word: string, tables: readonly ToolWords[]): readonly string[] | undefined {
  const [own = {}, ...others] = tables
  return inTable(word, own) ?? ours(word) ?? others.map((table) => inTable(word, table)).find(isDefined)
}

/**
 * Lists the tools that a denied word forbids, which are more than it would allow: without the word for writing no other
 * tool may change files either, and without the one for finding files none may list them. One of our own names forbids
 * only that tool.
 */
export function toolsForbidden(word: string, tools: readonly string[]): readonly string[] {
  if (isOurs(word)) return tools
  const isWriting = tools.includes('write_file') || tools.includes('edit_file')
  const isFinding = FIND.every((tool) => tools.includes(tool))
  return [...new Set([...tools, ...(isWriting ? OTHER_CHANGES : []), ...(isFinding ? LIST : [])])]
}

export type ToolDomain = 'exec' | 'net' | 'file.list' | 'file.read' | 'file.write' | 'file.delete'

/** Lists the domains that tools use and that rules must allow. A shell also lists its working folder. */
export function domainsUsed(tools: readonly string[]): ReadonlySet<ToolDomain> {
  return new Set(tools.flatMap((tool) => ownValue(USED, tool) ?? []))
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

/** Tells whether a name or pattern matches a tool of this package. */
export function isOurs(name: string): boolean {
  return OUR_TOOLS.some((tool) => matchName(name, tool))
}

function inTable(word: string, table: ToolWords): readonly string[] | undefined {
  const words = loweredTables.get(table) ?? new Map(lowered(table))
  loweredTables.set(table, words)
  return words.get(word.toLowerCase())
}

/** Tables by words in lower case; of two words that differ only in case, the first counts. */
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

/** The place of a tool list and the tables to read it with, its own dialect's first. */
export interface ListPlace {
  readonly line: number | null
  readonly report: NoticeReport
  readonly tables: readonly ToolWords[]
  readonly serverTools: ReadServerWord
}

/** Resolves a word that names no tool to tools of servers. */
export type ReadServerWord = (word: string) => readonly string[] | undefined

/** Splits a tool list in any spelling: `Read, Bash(git *)`, a list, or a bracketed list as text. */
export function toolWords(tree: TextTree): string[] {
  if (tree.kind === 'list') return tree.items.flatMap((item) => (item.kind === 'leaf' ? item.text.trim() : []))
  if (tree.kind !== 'leaf') return []
  const text = tree.text.trim().replace(/^\[(.*)\]$/s, '$1')
  return splitOutsideBrackets(text)
    .map((word) => word.trim().replace(/^(["'])(.*)\1$/, '$2'))
    .filter((word) => word !== '')
}

/**
 * Splits a list of denied tools; in a map, each key that is not false, with the text behind it. Every entry denies,
 * however it is written.
 */
export function forbiddenWords(tree: TextTree): string[] {
  if (tree.kind === 'leaf') return toolWords(tree)
  if (tree.kind === 'list') return tree.items.flatMap(forbiddenWords)
  return [...tree.entries].flatMap(([word, { value }]) => {
    if (isFalse(value)) return []
    const isText = value.kind === 'leaf' && typeof value.value === 'string' && !word.includes('(')
    return isText ? [`${word}: ${value.text}`] : [word]
  })
}

function isFalse(tree: TextTree): boolean {
  return tree.kind === 'leaf' && tree.value === false
}

export interface ResolvedTools {
  readonly tools: readonly string[]
  /** Agents it may delegate to; null if the list has no word for delegation. */
  readonly agents: readonly string[] | null
}

/** Resolves words of other programs to tools here. Each tool that does not exist here gets a notice. */
export function readToolWords(words: readonly string[], place: ListPlace): ResolvedTools {
  const tools = new Set<string>()
  let agents: string[] | null = null
  for (const word of words) {
    const { name, limit } = namedIn(word)
    if (isDelegation(name)) {
      agents ??= []
      for (const one of agentsMeant(limit)) agents.push(one)
    } else if (limit !== null && domainsOf(name, place).length === 0) reportUnlimited(word, place)
    else for (const tool of namedTools(name, place)) tools.add(tool)
  }
  return { tools: [...tools], agents }
}

function agentsMeant(limit: string | null): readonly string[] {
  return limit === null ? ['*'] : splitOutsideBrackets(limit).map((one) => one.trim())
}

/**
 * Applies limits: `Bash(git *)` allows the tool but only these programs; the tool without brackets is unlimited. A
 * limit covers everything that does the same: beside `Read(src/**)` no tool reads more, which a notice says.
 */
export function limitTools(words: readonly string[], narrowing: Narrowing, place: ListPlace): void {
  const named = words.map((word) => limitedWord(word, place))
  const open = new Set(named.filter(({ limit }) => limit === null).flatMap(({ tools }) => tools))
  const bound = named.filter(({ limit, tools }) => limit !== null && !tools.every((tool) => open.has(tool)))
  for (const { limit, word, limits } of bound) {
    if (limits.includes('net') && namesPort(limit ?? '')) reportPort(`${word} is left out`, place)
    for (const domain of limits) narrowing.allowOnly(domain, patternsOf(domain, limit ?? '', 'allow'))
  }
  const limited = new Set(bound.flatMap(({ limits }) => limits))
  if (limited.has('file.read')) {
    const edits = bound.filter(({ tools }) => tools.includes('edit_file'))
    // Editing a file implies reading it.
    for (const { limit } of edits) narrowing.allowOnly('file.read', patternsOf('file.read', limit ?? '', 'allow'))
  }
  for (const domain of limited) reportShared(domain, named, place)
}

interface LimitedWord extends NamedTool {
  readonly word: string
  readonly tools: readonly string[]
  /** The domains its brackets limit. */
  readonly limits: readonly ToolDomain[]
}

function limitedWord(word: string, place: ListPlace): LimitedWord {
  const named = namedIn(word)
  return { word, ...named, tools: toolsNamed(named.name, place.tables) ?? [], limits: domainsOf(named.name, place) }
}

/** Reads a list of denied tools: returns whole tools, and turns limited ones into rules. */
export function denyTools(words: readonly string[], narrowing: Narrowing, place: ListPlace): readonly string[] {
  const denied = new Set<string>()
  for (const word of words.flatMap((one) => wordsMeant(one, place))) {
    const { name, limit } = forbiddenIn(word, place)
    const isLimited = limit !== null && domainsOf(name, place).length > 0
    if (isDelegation(name)) {
      narrowing.deny(
        agentsMeant(limit).flatMap((one) => namePatterns(one, 'restrict').map((agent) => `agent:${agent}`)),
      )
    } else if (isLimited) denyLimited(word, narrowing, place)
    else for (const tool of deniedTools(name, place)) denied.add(tool)
  }
  narrowing.deny([...denied].map((name) => `tool:${name}`))
  // Without any tool to write with, no other tool may change files either.
  if (['write_file', 'edit_file', 'delete_file'].every((tool) => denied.has(tool))) narrowing.denyChanges()
  if (EVERY_TOOL.every((tool) => denied.has(tool))) narrowing.denyAll()
  return [...denied]
}

/** Names every tool, also those of servers. */
const EVERY_TOOL = ['*', '*__*']

/**
 * Finds the words in one entry of a list of denied tools, where somebody may have written other signs than commas
 * between them. An entry in which a word is not understood denies every tool.
 */
function wordsMeant(entry: string, place: ListPlace): readonly string[] {
  if (isPlainWord(entry, place)) return [entry]
  const parts = partsOf(entry.replaceAll(LIMIT, ' '), place)
  const isOfServer = /^[\w.-]+\/[\w.*-]+$/.test(entry)
  const odd = isOfServer ? undefined : parts.find((part) => meantWord(part, place) === undefined)
  const line = place.line
  if (odd !== undefined || parts.length === 0) {
    const message = `${odd ?? entry} in \`${entry}\` names no tool that is known here, so every tool is forbidden`
    place.report.warning({ code: 'permission', message, line, hint: SEPARATE })
    return [...EVERY_TOOL, 'Task']
  }
  // An unclear limit behind a tool may hide other tools.
  const hidden = partsOf(entry.replaceAll(/\([^()]*\)/g, ' '), place).filter((part) => !part.includes('*'))
  const known = [...parts, ...hidden.filter((part) => isKnownWord(part, place))]
  const meant = [...new Set(known.map((part) => meantWord(part, place) ?? part))]
  const message = `\`${entry}\` forbids ${meant.join(', ')}: it is not written as one tool`
  place.report.warning({ code: 'permission', message, line, hint: SEPARATE })
  // The tools of a server may have such a name.
  return serverTool(entry) === undefined ? meant : [...meant, entry]
}

const SEPARATE = 'Put a comma between tools, as in "Bash, Write", and remove what names none.'

/** Matches what follows a tool and limits it: text in brackets of any kind, closed or not, or behind a colon. */
const LIMIT = /[([{<][^)\]}>]*(?:[)\]}>]|$)|:.*$/gs

/** Tells whether an entry is one word, with or without a limit in brackets. */
function isPlainWord(entry: string, place: ListPlace): boolean {
  const { name, limit } = namedIn(entry)
  if (limit !== null && !isBalanced(limit)) return false
  if (isKnownWord(name, place)) return true
  if (EVERY_WORD.test(name) || !/^[\w.*/-]+$/.test(name)) return false
  const parts = name.split(INSIDE).filter((part) => part !== '')
  const known = parts.filter((part) => isKnownWord(part, place) || FILLER.test(part))
  return parts.length < 2 || known.length < (name.includes('/') ? 1 : parts.length)
}

function isBalanced(text: string): boolean {
  let depth = 0
  for (const char of text) {
    if (char === '(') depth++
    if (char === ')' && --depth < 0) return false
  }
  return depth === 0
}

const EVERY_WORD = /^(?:all|any|every|everything|tools?)$/i
/** Words between or beside the names of tools. */
const FILLER = /^(?:and|or|the|tools?)$/i
/** Separates words that are written as one: `Bash_Write`, `BashWrite`. */
const INSIDE = /[._/-]+|(?<=[a-z])(?=[A-Z])/

/** Splits a text where no tool has a sign, and a word that is made of several known ones. */
function partsOf(text: string, place: ListPlace): string[] {
  const words = text.split(/[^\w.*-]+/).filter((word) => /[a-z0-9*]/i.test(word))
  const parts = [...new Set(words)].flatMap((word) => (isPlainWord(word, place) ? [word] : word.split(INSIDE)))
  return [...new Set(parts)].filter((part) => part !== '' && !FILLER.test(part))
}

/** Finds the known word that a part of an entry stands for; undefined if nobody knows it. */
function meantWord(part: string, place: ListPlace): string | undefined {
  if (isKnownWord(part, place) || serverTool(part) !== undefined) return part
  if (EVERY_WORD.test(part)) return undefined
  return nearest(lower(part), place.tables.flatMap((table) => Object.keys(table)).map(lower))
}

/** Tells whether a word is in a table, rather than possibly of a server. */
function isKnownWord(name: string, { tables }: ListPlace): boolean {
  return isDelegation(name) || toolsNamed(name, tables) !== undefined
}

function denyLimited(word: string, narrowing: Narrowing, place: ListPlace): void {
  const { limit, limits } = limitedWord(word, place)
  if (limits.includes('net') && namesPort(limit ?? '')) reportPort(`${word} forbids all ports of that host`, place)
  const meant = forbiddenParts(limit ?? '')
  if (meant.length > 1 || isWidened(limit ?? '', limits.includes('net'))) reportWider(word, 'more than it says', place)
  for (const domain of limits) {
    const patterns = meant.flatMap((one) => patternsOf(domain, one, 'restrict'))
    narrowing.deny(patterns.map((one) => `${domain}:${one}`))
  }
}

/** Reads `rm:*, mv:*` as both commands and as one with a comma, because it may mean either. */
function forbiddenParts(limit: string): readonly string[] {
  const parts = limit.replaceAll(/\{[^{}]*\}/g, '').includes(',') ? limit.split(',').map((one) => one.trim()) : []
  return [limit, ...parts.filter((one) => one !== '')]
}

/** Denies the whole tool if the brackets of a word have no matching rule. */
function forbiddenIn(word: string, place: ListPlace): NamedTool {
  const named = namedIn(word)
  if (named.limit === null || isDelegation(named.name) || domainsOf(named.name, place).length > 0) return named
  reportWider(word, `all of ${named.name}`, place)
  return { name: named.name, limit: null }
}

function reportWider(word: string, what: string, { line, report }: ListPlace): void {
  const message = `${word} forbids ${what}: there is no rule here for all that it says`
  report.warning({ code: 'permission', message, line })
}

/** Translates `mcp__srv__tool`, `mcp_srv_tool` and `srv/tool` to our `srv__tool`. Undefined for any other name. */
export function serverTools(name: string): readonly string[] | undefined {
  const tool = serverTool(name)
  return tool === undefined ? undefined : [tool]
}

function serverTool(name: string): string | undefined {
  if (/[\n\r\u2028\u2029]/.test(name)) return undefined
  if (/^mcp_+\*$/.test(name) || name === 'mcp') return '*__*'
  const [, server, tool = '*'] = /^mcp__(.+?)(?:__(.+))?$/.exec(name) ?? /^([\w.-]+)\/([\w.*-]+)$/.exec(name) ?? []
  if (server !== undefined) return `${server}__${tool}`
  const [, gemini, rest] = /^mcp_([^_]+)_(.+)$/.exec(name) ?? []
  if (gemini !== undefined) return `${gemini}__${rest}`
  return /^[^_].*?__./.test(name) ? name : undefined
}

/** Words of the dialects for delegating to another agent. */
const DELEGATION: ReadonlySet<string> = new Set([
  'agent',
  'task',
  'custom-agent',
  'delegate',
  'subagent',
  'agent_spawn',
])

function isDelegation(name: string): boolean {
  return DELEGATION.has(name.toLowerCase())
}

/** Resolves a word; undefined if it is unknown. */
export function knownTools(word: string, { tables, serverTools }: Pick<ListPlace, 'tables' | 'serverTools'>) {
  return toolsNamed(word, tables) ?? serverTools(word)
}

function namedTools(name: string, place: ListPlace): readonly string[] {
  const tools = knownTools(name, place) ?? [name]
  if (tools.every((tool) => isOurs(tool) || /^[^_].*?__/.test(tool))) return tools
  const message = `the tool ${name} is not available here: the agent has it only where its host has a tool named ${tools.join(' or ')}`
  const hint = 'Give the host such a tool, or an MCP server for it.'
  place.report.warning({ code: 'tool', message, line: place.line, hint })
  return tools
}

/**
 * Resolves a denied word. A tool that does not exist here needs no denial, but an unknown word may be a typing mistake.
 */
function deniedTools(name: string, place: ListPlace): readonly string[] {
  const known = knownTools(name, place)
  if (known !== undefined) return toolsForbidden(name, known)
  const words = place.tables.flatMap((table) => Object.keys(table))
  const pattern = name.includes('*') ? lower(name) : nearest(lower(name), words.map(lower))
  const meant = words.filter((word) => pattern !== undefined && matchName(pattern, lower(word)))
  const tools = new Set(meant.flatMap((word) => toolsForbidden(word, toolsNamed(word, place.tables) ?? [])))
  if (name.includes('*')) return [name, ...tools]
  const rest = meant[0] === undefined ? '' : `, and ${meant[0]}, which may be meant`
  const message = `no tool is named ${name}: nothing of that name is forbidden here but what a host may have${rest}`
  place.report.warning({ code: 'tool', message, line: place.line, hint: 'Correct its name, or remove it.' })
  return [name, ...tools]
}

function lower(word: string): string {
  return word.toLowerCase()
}

/** Reports a limit that cannot be kept: the tool must not become unlimited. */
function reportUnlimited(word: string, { line, report }: ListPlace): void {
  const message = `${word} is left out: there is no rule here for what stands in its brackets`
  report.warning({ code: 'permission', message, line, hint: 'Name the tool without brackets to allow all of it.' })
}

function reportPort(what: string, { line, report }: ListPlace): void {
  const message = `${what}: a rule for a host is for all of its ports`
  report.warning({ code: 'permission', message, line, hint: 'Name the host without a port.' })
}

/** Reports that a limit covers other tools: `Grep` beside `Read(src/**)` would read files out of bounds. */
function reportShared(domain: ToolDomain, named: readonly LimitedWord[], { line, report }: ListPlace): void {
  const done = ownValue(DONE, domain)
  const users = named.filter(({ tools }) => domainsUsed(tools).has(domain))
  if (done === undefined || new Set(users.map(({ name }) => name)).size < 2) return
  const message = `${users.map(({ word }) => word).join(', ')}: what may be ${done} is limited for all of these together`
  report.warning({ code: 'permission', message, line })
}

const DONE: Readonly<Record<string, string>> = { 'file.list': 'listed', 'file.read': 'read', 'file.write': 'written' }

/** The domains that the brackets of a word limit. */
function domainsOf(name: string, { tables }: ListPlace): readonly ToolDomain[] {
  const tools = toolsNamed(name, tables) ?? []
  if (tools.includes('shell')) return ['exec']
  if (tools.includes('web_fetch')) return ['net']
  if (tools.includes('write_file') || tools.includes('edit_file')) return ['file.write', 'file.delete']
  if (tools.includes('read_text_file')) return ['file.read']
  const used = domainsUsed(tools)
  return (['file.list', 'file.read'] as const).filter((domain) => used.has(domain))
}

function patternsOf(domain: ToolDomain, limit: string, purpose: 'allow' | 'restrict'): string[] {
  if (domain === 'exec') return commandPatterns(limit, purpose)
  return domain === 'net' ? hostPatterns(limit, purpose) : filePatterns(limit, purpose)
}

/** The meaning of one word of a tool list. */
interface NamedTool {
  /** The word without its brackets. */
  readonly name: string
  /** The text in brackets: `Bash(git *)`, `Agent(reviewer)`. */
  readonly limit: string | null
}

function namedIn(word: string): NamedTool {
  const [, name = word, limit] = /^([^()]+)(?:\((.*)\))?$/s.exec(word.trim()) ?? []
  return { name: name.trim(), limit: limit === undefined ? null : limit.trim() }
}

function splitOutsideBrackets(text: string): string[] {
  const parts = ['']
  let depth = 0
  for (const char of text) {
    if (char === '(') depth++
    if (char === ')') depth--
    if ((char === ',' || char === '\n') && depth <= 0) parts.push('')
    else parts[parts.length - 1] += char
  }
  // If a bracket is not closed, its content is unclear, so the text is split at every comma.
  return depth === 0 ? parts : text.split(/[,\n]/)
}
