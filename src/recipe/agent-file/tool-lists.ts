import type { Report } from '../text/notice.ts'
import { own } from '../text/own.ts'
import type { Tree } from '../text/tree.ts'
import type { Narrowing } from './narrowing.ts'
import { commandPatterns, filePatterns, hostPatterns } from './patterns.ts'

/** What one word of a tool list asks for. */
interface Named {
  /** As it is written, without what is in brackets. */
  readonly name: string
  /** In brackets: `Bash(git *)`, `Agent(reviewer)`. */
  readonly limit: string | null
}

/** Words that dialects have for the tools there are here; upper and lower case are one. */
const OURS: Readonly<Record<string, readonly string[]>> = {
  read: ['read_text_file', 'read_multiple_files', 'get_file_info'],
  read_file: ['read_text_file', 'get_file_info'],
  read_many_files: ['read_multiple_files'],
  notebookread: ['read_text_file'],
  view: ['read_text_file', 'get_file_info'],
  write: ['write_file'],
  write_file: ['write_file'],
  create: ['write_file'],
  edit: ['edit_file', 'write_file'],
  multiedit: ['edit_file'],
  notebookedit: ['edit_file'],
  replace: ['edit_file'],
  patch: ['edit_file', 'write_file', 'delete_file'],
  apply_patch: ['edit_file', 'write_file', 'delete_file'],
  str_replace_editor: ['edit_file', 'write_file'],
  glob: ['search_files', 'list_directory'],
  grep: ['search_files', 'search_text'],
  search: ['search_files', 'search_text', 'list_directory'],
  search_file_content: ['search_files', 'search_text'],
  grep_search: ['search_files', 'search_text'],
  ls: ['list_directory', 'list_directory_with_sizes', 'tree'],
  list: ['list_directory', 'list_directory_with_sizes', 'tree'],
  list_directory: ['list_directory', 'list_directory_with_sizes'],
  bash: ['shell'],
  execute: ['shell'],
  shell: ['shell'],
  terminal: ['shell'],
  run_shell_command: ['shell'],
  powershell: ['shell'],
  todo: ['todo_*'],
  todowrite: ['todo_*'],
  todoread: ['todo_*'],
  write_todos: ['todo_*'],
  skill: ['skills_*'],
  activate_skill: ['skills_*'],
  save_memory: ['memory_*'],
}
/** Words that dialects have for handing work to another agent. */
const DELEGATION: ReadonlySet<string> = new Set(['agent', 'task', 'custom-agent', 'delegate', 'subagent'])
/** What other programs have and there is nothing of here. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  ...['webfetch', 'websearch', 'web_fetch', 'google_web_search', 'web', 'fetch', 'browser', 'bashoutput', 'killbash'],
  ...['killshell', 'tasklist', 'taskget', 'taskupdate', 'taskcreate', 'taskoutput', 'taskstop', 'sendmessage', 'lsp'],
  ...['exitplanmode', 'enterplanmode', 'askuserquestion', 'slashcommand', 'notebook', 'teamcreate', 'teamdelete'],
  ...['listmcpresources', 'readmcpresource', 'toolsearch', 'codesearch', 'question', 'vscode', 'githubrepo'],
])

/** The words of a tool list in any spelling: `Read, Bash(git *)`, a list, or a list in brackets as text. */
export function toolWords(tree: Tree): string[] {
  if (tree.kind === 'list') return tree.items.flatMap((item) => (item.kind === 'leaf' ? item.text.trim() : []))
  if (tree.kind !== 'leaf') return []
  const text = tree.text.trim().replace(/^\[(.*)\]$/s, '$1')
  return splitOutsideBrackets(text)
    .map((word) => word.trim().replace(/^(["'])(.*)\1$/, '$2'))
    .filter((word) => word !== '')
}

export interface ReadTools {
  readonly tools: readonly string[]
  /** Agents that may be delegated to: null when delegation is not in the list. */
  readonly agents: readonly string[] | null
}

/** The tools that words of other programs ask for, by the names they have here. What is not here is told. */
export function readToolWords(words: readonly string[], line: number | null, report: Report): ReadTools {
  const tools = new Set<string>()
  let agents: readonly string[] | null = null
  for (const word of words) {
    const { name, limit } = namedIn(word)
    const key = name.toLowerCase()
    if (DELEGATION.has(key)) {
      agents = [...(agents ?? []), ...(limit === null ? ['*'] : splitOutsideBrackets(limit).map((one) => one.trim()))]
    } else if (ELSEWHERE.has(key)) {
      const message = `the tool ${name} is not available here; it is left out`
      report.warning({ code: 'tool', message, line, hint: 'Give the host a tool for it, or an MCP server.' })
    } else for (const tool of own(OURS, key) ?? [otherTool(name, line, report)]) tools.add(tool)
  }
  return { tools: [...tools], agents }
}

/** A tool of a server, one by the name it has here, or one that only a host in code can have. */
function otherTool(name: string, line: number | null, report: Report): string {
  const tool = serverTool(name)
  if (/__|\*/.test(tool) || KNOWN.has(tool) || /^(?:todo|memory|skills)_/.test(tool)) return tool
  const message = `no tool is named ${name} here: it is there only where the host has a tool of this name`
  report.warning({ code: 'tool', message, line, hint: 'Correct its name, or remove it.' })
  return tool
}

const KNOWN: ReadonlySet<string> = new Set([
  ...Object.values(OURS).flat(),
  ...['create_directory', 'move_file', 'tree', 'read_result', 'reset_tools', 'subagent', 'load'],
])

/** `Bash(git *)` allows the tool, and of programs only these. Words without brackets open their domain again. */
export function limitTools(words: readonly string[], narrowing: Narrowing): void {
  const named = words.map(namedIn)
  const open = new Set(named.filter(({ limit }) => limit === null).map(({ name }) => domainOf(name)))
  for (const { name, limit } of named) {
    const domain = domainOf(name)
    if (limit === null || domain === undefined || open.has(domain)) continue
    if (domain === 'exec') narrowing.allowOnly('exec', commandPatterns(limit))
    if (domain === 'net') narrowing.allowOnly('net', hostPatterns(limit))
    if (domain === 'file.read') narrowing.allowOnly('file.read', filePatterns(limit, 'allow'))
    if (domain === 'file.write') narrowing.allowOnly('file.write', filePatterns(limit, 'allow'))
  }
}

/** Words of a list of what is forbidden: whole tools are given back, limited ones become rules. */
export function denyTools(words: readonly string[], narrowing: Narrowing, report: Report): readonly string[] {
  const denied: string[] = []
  for (const word of words) {
    const { name, limit } = namedIn(word)
    const domain = domainOf(name)
    if (DELEGATION.has(name.toLowerCase())) narrowing.deny(`agent:${limit ?? '*'}`)
    else if (limit === null) denied.push(...readToolWords([name], null, report).tools)
    else if (domain === 'exec') narrowing.deny(...commandPatterns(limit).map((one) => `exec:${one}`))
    else if (domain === 'net') narrowing.deny(...hostPatterns(limit).map((one) => `net:${one}`))
    else if (domain !== undefined) {
      narrowing.deny(...filePatterns(limit, 'restrict').map((one) => `${domain}:${one}`))
    } else denied.push(serverTool(name))
  }
  narrowing.deny(...denied.map((name) => `tool:${name}`))
  return denied
}

/** `mcp__srv__tool`, `mcp_srv_tool`, `srv/tool`: here a tool of a server is `srv__tool`. */
export function serverTool(name: string): string {
  if (/^mcp_+\*$/.test(name) || name === 'mcp') return '*__*'
  const [, server, tool = '*'] = /^mcp__(.+?)(?:__(.+))?$/.exec(name) ?? /^([\w.-]+)\/([\w.*-]+)$/.exec(name) ?? []
  if (server !== undefined) return `${server}__${tool}`
  const [, gemini, rest] = /^mcp_([^_]+)_(.+)$/.exec(name) ?? []
  return gemini === undefined ? name : `${gemini}__${rest}`
}

function domainOf(name: string): 'exec' | 'net' | 'file.read' | 'file.write' | undefined {
  const key = name.toLowerCase()
  if (own(OURS, key)?.includes('shell') === true) return 'exec'
  if (key === 'webfetch' || key === 'web_fetch' || key === 'fetch') return 'net'
  if (key === 'read' || key === 'read_file' || key === 'glob' || key === 'grep') return 'file.read'
  return ['write', 'edit', 'multiedit', 'write_file', 'replace'].includes(key) ? 'file.write' : undefined
}

function namedIn(word: string): Named {
  const [, name = word, limit] = /^([^()]+?)\s*(?:\((.*)\))?$/s.exec(word.trim()) ?? []
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
  return parts
}
