import path from 'node:path'
import { code, type OptionRules, oneOf, orJust, readOptions, record, text } from '../../core/base/options.ts'
import { shownWords } from '../../core/base/secrets/command-secrets.ts'
import { matchName } from '../../core/grant/match.ts'
import {
  absentSource,
  limitedSource,
  SOURCE_SCOPES,
  type SourceOrigin,
  type SourceScope,
  sourceName,
  type ToolSource,
} from '../../core/tool/source.ts'
import { serverOf, serverSource } from '../../core/tools/mcp/mcp-server.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import type { ExtensionConfig, HttpExtension, NamedExtension, StdioExtension } from '../agent-file/recipe.ts'
import type { Notice } from '../text/notice.ts'
import {
  BUILTIN_TOOLKITS,
  type BuiltinOptions,
  type BuiltinToolkit,
  builtinToolkit,
  isBuiltinToolkit,
  toolNamesOf,
} from './builtin-toolkit.ts'

export interface ExtensionOptions extends Omit<BuiltinOptions, 'availableTools'> {
  /** Looks up the values of secrets. Default: the environment of this process. */
  readonly secrets?: (name: string) => string | undefined
  /** The working folder of servers. Default: that of this process. */
  readonly cwd?: string
  /** A working folder chosen by a model, which is therefore part of what is decided. */
  readonly folder?: string | null
  /** Who shares a server. Default `run`. */
  readonly scope?: SourceScope
  /** Servers that agent files refer to by name. */
  readonly named?: { readonly [name: string]: ToolSource }
  /** The file of the entries, for notices. Where a run may write it, its entries get no secrets. */
  readonly file?: string
}

const OPTIONS: OptionRules<ExtensionOptions> = {
  memory: record,
  skills: record,
  secrets: code,
  cwd: text,
  folder: orJust(null, text),
  scope: oneOf(...SOURCE_SCOPES),
  named: record,
  file: text,
}

export interface ExtensionSources {
  /** Sources for `agent({ sources })`, one for each entry, by name. */
  readonly sources: { readonly [name: string]: ToolSource }
  /** The source name of each name as written. */
  readonly names: ReadonlyMap<string, string>
  /** The extensions that are not available, and what to use instead. */
  readonly notices: readonly Notice[]
}

/**
 * Turns the `extensions` of a recipe or an agent file into tool sources. One that does not exist here gets a notice. Each secret
 * that one of them names asks `secret:<name>`: a file names it, not your code.
 */
export function extensionSources(
  extensions: readonly ExtensionConfig[],
  options: ExtensionOptions = {},
): ExtensionSources {
  readOptions('extensionSources(extensions, options)', options, OPTIONS)
  const files = options.file === undefined ? [] : [path.resolve(options.file)]
  return sourcesOfFile(extensions, { ...options, origin: { by: 'file', files, withheld: null } })
}

/** The options of sources whose files are known. */
export interface FileSourceOptions extends ExtensionOptions {
  readonly origin: SourceOrigin
}

/** Turns the extensions of files into sources that know where they come from. */
export function sourcesOfFile(extensions: readonly ExtensionConfig[], options: FileSourceOptions): ExtensionSources {
  const sources = new Map<string, ToolSource>()
  const names = new Map<string, string>()
  const notices: Notice[] = []
  for (const extension of extensions.filter(hasTools)) {
    const name = sourceName(extension.name)
    const found = sources.has(name) ? twin(name) : sourceOf(extension, options)
    if ('message' in found) notices.push(noticeOf(extension, found, options))
    const free = sources.has(name) ? twinName(name, sources.size) : name
    sources.set(free, 'message' in found ? absent(extension, found) : found)
    if (!names.has(extension.name)) names.set(extension.name, free)
  }
  return { sources: Object.fromEntries(sources), names, notices }
}

/** Refuses a second extension of a name: a rule about one would apply to the other. */
function twin(name: string): Absence {
  return { message: `another extension has the name ${name} here too, so this one is left out`, hint: 'Rename one.' }
}

/** Names the unused second extension. */
function twinName(name: string, place: number): string {
  return `${name.slice(0, 30).replace(/_+$/, '')}-${place + 1}`
}

/** Tells whether any tool may be used; if not, the server is not started. */
function hasTools({ excludedTools = [] }: ExtensionConfig): boolean {
  return !excludedTools.includes('*')
}

/** Recognizes extensions of other programs whose function every agent here has built in. */
export function isBuiltIn(name: string): boolean {
  return name === 'summon' || name === 'recipe'
}

/** The reason why an extension is missing. */
interface Absence {
  readonly message: string
  readonly hint: string
}

function builtinOptions({ memory, skills }: ExtensionOptions): BuiltinOptions {
  return { ...(memory === undefined ? {} : { memory }), ...(skills === undefined ? {} : { skills }) }
}

function sourceOf(extension: ExtensionConfig, options: FileSourceOptions): ToolSource | Absence {
  switch (extension.type) {
    case 'stdio':
      return stdioServer(extension, options)
    case 'streamable_http':
      return httpServer(extension, options)
    case 'builtin':
    case 'platform':
      return builtin(extension, options)
    case 'frontend':
      return {
        message: 'frontend extensions are drawn by a desktop application',
        hint: 'Give the agent tools of your own for it: tools: { name: tool({ ... }) }.',
      }
    case 'inline_python':
      return {
        message: 'inline_python extensions are not run here',
        hint: 'Put the code into a file that speaks MCP, and use a stdio extension: cmd: uv, args: [run, server.py].',
      }
    case 'named':
      return namedServer(extension, options)
  }
}

function stdioServer(extension: StdioExtension, options: FileSourceOptions): ToolSource | Absence {
  const { cmd, args, required } = extension
  if (cmd.trim() === '') return { message: 'it has no cmd', hint: 'Name the program that is the server.' }
  const server = {
    command: cmd,
    args,
    required,
    ...common(extension, options),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  }
  return serverSource(server, options.origin, options.folder ?? null)
}

function httpServer(extension: HttpExtension, options: FileSourceOptions): ToolSource | Absence {
  const { uri, headers, socket, required } = extension
  if (socket !== null) return { message: 'sockets are not supported', hint: 'Let the server listen on a port.' }
  try {
    return serverOf({ url: uri, headers, required, ...common(extension, options) }, options.origin)
  } catch {
    const [, shown = ''] = shownWords(['', uri])
    return { message: `its uri ${JSON.stringify(shown)} is not an address`, hint: 'Write it as https://host/path.' }
  }
}

/** The longest delay a timer supports. */
const MOST_SECONDS = 2_000_000

function common(extension: StdioExtension | HttpExtension, { secrets, scope }: ExtensionOptions) {
  const { envs, envKeys, envFrom, timeoutSeconds, availableTools, excludedTools } = extension
  return {
    env: envs,
    envKeys,
    ...(availableTools.length === 0 ? {} : { availableTools }),
    ...(envFrom === undefined ? {} : { envFrom }),
    ...(excludedTools === undefined ? {} : { excludedTools }),
    ...(timeoutSeconds === null ? {} : { timeoutMs: Math.min(Math.max(timeoutSeconds, 1), MOST_SECONDS) * 1_000 }),
    ...(secrets === undefined ? {} : { secrets }),
    ...(scope === undefined ? {} : { scope }),
  }
}

function builtin({ name, availableTools }: ExtensionConfig, options: ExtensionOptions): ToolSource | Absence {
  const known = name.trim().toLowerCase()
  if (isBuiltinToolkit(known)) {
    const limit = availableTools.length === 0 ? {} : { availableTools: ours(known, availableTools) }
    return builtinToolkit(known, { ...builtinOptions(options), ...limit })
  }
  return {
    message: `there is no built-in extension "${name}" here`,
    hint: Object.hasOwn(INSTEAD, known)
      ? (INSTEAD[known] ?? '')
      : `There are ${BUILTIN_TOOLKITS.join(', ')}. Or use an MCP server.`,
  }
}

/** Tools of other programs' built-in extensions and their names here. */
const RENAMED: Readonly<Record<string, readonly string[]>> = {
  text_editor: ['read_text_file', 'write_file', 'edit_file', 'list_directory'],
  view: ['read_text_file'],
  read: ['read_text_file'],
  read_file: ['read_text_file'],
  write: ['write_file'],
  edit: ['edit_file'],
  str_replace: ['edit_file'],
  list_files: ['list_directory', 'tree'],
  search: ['search_text', 'search_files'],
  analyze: ['tree', 'search_text'],
  remember_memory: ['memory_remember'],
  retrieve_memories: ['memory_recall'],
  remove_memory_category: ['memory_forget'],
  remove_specific_memory: ['memory_forget'],
  load_skill: ['skills_list', 'skills_load', 'skills_read'],
}

function ours(toolkit: string, available: readonly string[]): readonly string[] {
  return available.flatMap((name) => {
    const bare = name.startsWith(`${toolkit}__`) ? name.slice(toolkit.length + 2) : name
    return Object.hasOwn(RENAMED, bare) ? (RENAMED[bare] ?? []) : [bare]
  })
}

const INSTEAD: Readonly<Record<string, string>> = {
  analyze: 'Use developer: its tree and search_text show what is where.',
  summon: 'Delegating needs no extension here: give the agent subagents, or sub_recipes in a recipe.',
  orchestrator: 'Delegating needs no extension here: give the agent subagents.',
  extensionmanager: 'Extensions are chosen in the definition, not by the model.',
  chatrecall: 'Use memory for what is to be kept from one run to the next.',
  computercontroller: 'Use an MCP server for it, such as a stdio extension with npx -y @playwright/mcp.',
  autovisualiser: 'Let the agent write files with developer.',
  tutorial: 'Put the texts into skills.',
  code_execution: 'Use the shell of developer.',
  code_review: 'Use developer, or an agent of your own as a sub_recipe.',
  apps: 'Let the agent write files with developer.',
  tom: 'Put the text into the instructions.',
  fetch: 'Use an MCP server for it, such as a stdio extension with uvx mcp-server-fetch.',
  git: 'Use the shell of developer.',
  github: 'Use an MCP server for it: streamable_http with uri https://api.githubcopilot.com/mcp/.',
}

function namedServer(extension: NamedExtension, { named = {}, ...options }: ExtensionOptions): ToolSource | Absence {
  const { name, availableTools, excludedTools = [] } = extension
  const own = [name, sourceName(name)].find((one) => Object.hasOwn(named, one))
  const found = own === undefined ? undefined : named[own]
  const toolkit = found ?? (isBuiltinToolkit(name) ? builtinToolkit(name, builtinOptions(options)) : undefined)
  if (toolkit !== undefined) {
    return limitedSource(toolkit, {
      availableTools: availableTools.length === 0 ? null : availableTools,
      excludedTools,
    })
  }
  const known = Object.keys(named).join(', ') || 'none'
  return {
    message: `there is no server "${name}"`,
    hint: `Configure it, or write how it is started. There are: ${known}.`,
  }
}

function absent({ name, type, required }: ExtensionConfig, { message, hint }: Absence): ToolSource {
  return absentSource({ extension: name, type }, `${message}. ${hint}`, required)
}

function noticeOf({ name, required }: ExtensionConfig, { message, hint }: Absence, { file }: ExtensionOptions): Notice {
  return {
    level: required ? 'error' : 'warning',
    code: 'extension',
    message: `the extension "${name}" is not available: ${message}`,
    file: file ?? '',
    line: null,
    hint,
  }
}

/**
 * Chooses the tool sources of a file that is run directly. A recipe lists its extensions. An agent file names tools: it
 * gets the toolkits that hold them, beside its servers. Without either it gets the developer toolkit.
 */
export function fileExtensions(file: AgentFile): readonly ExtensionConfig[] {
  const { dialect, extensions, tools } = file
  if (dialect === 'recipe') return extensions ?? [builtinExtension('developer')]
  const listed = withMemory(file)
  const wanted = tools.allow === null ? (['developer'] as const) : BUILTIN_TOOLKITS.filter(holdsOneOf(tools.allow))
  const missing = wanted.filter((name) => !listed.some((extension) => extension.name === name))
  return [...missing.map(builtinExtension), ...listed]
}

/** The extensions that an agent file lists, and the one for its memory where it asks for one. */
export function withMemory({
  extensions,
  memory,
}: Pick<AgentFile, 'extensions' | 'memory'>): readonly ExtensionConfig[] {
  const listed = extensions ?? []
  return memory === null ? listed : [...listed, builtinExtension('memory')]
}

function holdsOneOf(patterns: readonly string[]): (name: BuiltinToolkit) => boolean {
  return (name) => toolNamesOf(name).some((tool) => patterns.some((pattern) => matchName(pattern, tool)))
}

/** A toolkit of this package, as a file names it. */
function builtinExtension(name: BuiltinToolkit): ExtensionConfig {
  return {
    type: 'builtin',
    name,
    description: '',
    availableTools: [],
    required: false,
    displayName: null,
    timeoutSeconds: null,
  }
}
