import { isLegateError } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import { matchName } from '../../core/grant/match.ts'
import { splitRule } from '../../core/grant/rule.ts'
import type { AgentFile } from './agent-file.ts'
import { ownNeeds } from './mcp-servers.ts'
import { modelOf } from './names.ts'
import { type Slash, writtenPattern } from './patterns.ts'
import type { ExtensionConfig } from './recipe.ts'
import { isOurs, OUR_TOOLS, type ToolWords } from './tool-words.ts'

/** How a dialect names models and tools. */
export interface DialectNames {
  readonly name: string
  readonly models: ModelNaming
  readonly toolWords: ToolWords
  readonly serverWord: (server: string, tool: string) => string
  readonly slash?: Slash
}

export type RuleDomain = 'exec' | 'net' | 'agent' | 'file.list' | 'file.read' | 'file.write'

/** An agent while it is written in a dialect. It writes what the dialect can express, and never more. */
export class AgentFileWriter {
  readonly agent: AgentFile
  private readonly naming: DialectNames

  constructor(agent: AgentFile, naming: DialectNames) {
    this.agent = agent
    this.naming = naming
  }

  common(): { readonly [key: string]: Json | undefined } {
    const { name, description } = this.agent
    return { name, description, model: modelWord(this.agent, this.naming.name, this.naming.models) }
  }

  /** The instructions, followed by the prompt of a recipe, which has no other place. */
  body(): string {
    const { instructions, prompt, dialect } = this.agent
    if (prompt === null || dialect !== 'recipe') return instructions.trim()
    return `${instructions.trim()}\n\n${prompt.trim()}`.trim()
  }

  prompt(): string | undefined {
    return this.agent.dialect === 'recipe' ? undefined : (this.agent.prompt ?? undefined)
  }

  sampling(topPKey: string): { readonly [key: string]: Json | undefined } {
    const { temperature, topP, reasoning } = this.agent.settings
    return { temperature, [topPKey]: topP, reasoningEffort: reasoning }
  }

  list(values: readonly string[]): string[] | undefined {
    return values.length === 0 ? undefined : [...values]
  }

  /** The MCP servers by name. */
  servers(words: ServerWords): Json | undefined {
    const known = (this.agent.extensions ?? []).flatMap((extension): [string, Json][] => {
      const fields = serverFields(extension, words)
      return fields === undefined ? [] : [[extension.name, fields]]
    })
    return known.length === 0 ? undefined : Object.fromEntries(known)
  }

  /** The MCP servers, including those that are configured elsewhere and only named here. */
  serversAndNames(words: ServerWords): Json | undefined {
    const { extensions } = this.agent
    if (extensions?.some(({ type }) => type === 'named') !== true) return this.servers(words)
    return extensions.flatMap((extension): Json[] => {
      if (extension.type === 'named') return [extension.name]
      const fields = serverFields(extension, words)
      return fields === undefined ? [] : [{ [extension.name]: fields }]
    })
  }

  /** The words for allowed tools, without denied ones. Undefined if the agent says nothing about tools. */
  toolList(delegationWord: string | null, takes: 'names' | 'none' = 'none'): string[] | undefined {
    const { tools, agents } = this.agent
    if (tools.allow === null) return undefined
    const words = this.wordsFor((tool) => isAllowed(tool, this.agent), tools.allow)
    if (delegationWord === null || agents?.length === 0) return words
    const names = agents === null || takes === 'none' ? '' : `(${agents.join(', ')})`
    return [...words, `${delegationWord}${names}`]
  }

  /** The words for tools that are denied completely, unless a list of allowed ones already implies it. */
  deniedWords(): string[] {
    const { tools, grant } = this.agent
    const rules = (grant?.deny ?? []).filter((rule) => rule.startsWith('tool:')).map((rule) => rule.slice(5))
    // Without programs there is no shell.
    const isImplied = (name: string) => name === 'shell' && this.isClosed('exec')
    const denied = [...new Set([...tools.deny, ...rules.filter((name) => !isImplied(name))])]
    return this.wordsFor((tool) => denied.some((pattern) => matchName(pattern, tool)), denied)
  }

  /** The patterns the agent limits itself to in a domain, without its own needs; null if it does not. */
  only(domain: RuleDomain): readonly string[] | null {
    const use = this.agent.grant?.use
    if (use === undefined) return null
    const patterns = patternsIn(use, domain)
    if (patterns.some((pattern) => pattern === '*' || pattern === '**')) return null
    const needs = ownNeeds(this.agent)
    const own = domain === 'exec' ? needs.exec : domain === 'net' ? needs.net : []
    return this.foreign(
      domain,
      patterns.filter((pattern) => !own.includes(pattern)),
    )
  }

  denied(domain: RuleDomain): readonly string[] {
    return this.foreign(domain, patternsIn(this.agent.grant?.deny ?? [], domain))
  }

  asked(domain: RuleDomain): readonly string[] {
    return this.foreign(domain, patternsIn(this.agent.grant?.ask ?? [], domain))
  }

  /** Tells whether a domain is closed except for the agent's own needs. */
  isClosed(domain: RuleDomain): boolean {
    const denied = patternsIn(this.agent.grant?.deny ?? [], domain)
    return denied.some((pattern) => pattern === '*' || pattern === '**') || this.only(domain)?.length === 0
  }

  /** Tells whether it may change no files and start no programs. */
  isReadOnly(): boolean {
    const denied = this.agent.grant?.deny ?? []
    return denied.includes('file.delete:**') && this.isClosed('file.write') && this.isClosed('exec')
  }

  private foreign(domain: RuleDomain, patterns: readonly string[]): readonly string[] {
    return foreignPatterns(domain, patterns, this.naming.slash ?? 'project')
  }

  /** Writes a word only if everything it stands for is meant; one of our tools without such a word is left out. */
  private wordsFor(isMeant: (tool: string) => boolean, patterns: readonly string[]): string[] {
    const meant = new Set(OUR_TOOLS.filter(isMeant))
    const named = new Set(patterns.filter((pattern) => !isOurs(pattern)))
    const words: string[] = []
    for (const [word, tools] of Object.entries(this.naming.toolWords)) {
      const isWhole = tools.every((tool) => meant.has(tool) || named.has(tool))
      if (!isWhole || words.some((other) => isWithin(tools, this.naming.toolWords[other] ?? []))) continue
      words.push(word)
    }
    const written = new Set(words.flatMap((word) => this.naming.toolWords[word] ?? []))
    return [...words, ...[...named].filter((name) => !written.has(name)).map((name) => this.serverWord(name))]
  }

  private serverWord(tool: string): string {
    const [, server, name] = /^(.+?)__(.+)$/.exec(tool) ?? []
    return server === undefined || name === undefined ? tool : this.naming.serverWord(server, name)
  }
}

function isAllowed(tool: string, { tools }: AgentFile): boolean {
  const isIn = (patterns: readonly string[]) => patterns.some((pattern) => matchName(pattern, tool))
  return isIn(tools.allow ?? []) && !isIn(tools.deny)
}

function isWithin(tools: readonly string[], others: readonly string[]): boolean {
  return tools.every((tool) => others.includes(tool))
}

function patternsIn(rules: readonly string[], domain: string): string[] {
  return rules.flatMap((rule) => {
    const { domain: ruled, pattern } = splitRule(rule)
    return ruled === domain || (ruled === 'file.*' && domain.startsWith('file.')) ? [pattern] : []
  })
}

/** The keys of a server; undefined if the extension is not a server of its own. */
function serverFields(extension: ExtensionConfig, words: ServerWords): Json | undefined {
  if (extension.type !== 'stdio' && extension.type !== 'streamable_http') return undefined
  const tools = { ...limitFields(extension, words), ...timeFields(extension.timeoutSeconds, words) }
  if (extension.type === 'stdio') {
    return { command: extension.cmd, args: [...extension.args], ...environmentFields(extension, words), ...tools }
  }
  return { type: 'http', url: extension.uri, ...headerFields(extension.headers, words), ...tools }
}

/** The environment of a server. A variable that the dialect cannot name is left out and reported as lost. */
function environmentFields(
  { envs, envKeys, envFrom }: Extract<ExtensionConfig, { readonly type: 'stdio' }>,
  { envKeys: named }: ServerWords,
) {
  const made = { ...envFrom, ...Object.fromEntries(envKeys.map((key) => [key, `\${${key}}`])) }
  const env = named === undefined ? { ...envs, ...made } : envs
  return {
    ...(Object.keys(env).length === 0 ? {} : { env: { ...env } }),
    ...(named === undefined || envKeys.length === 0 ? {} : { [named]: [...envKeys] }),
  }
}

function headerFields(
  headers: Readonly<Record<string, string>>,
  { headers: key = 'headers', envHeaders }: ServerWords,
) {
  const all = Object.entries(headers)
  const bearer = envHeaders === undefined ? undefined : BEARER.exec(headers['Authorization'] ?? '')?.[1]
  const named = all.flatMap(([name, value]) => (envHeaders === undefined ? [] : [[name, VARIABLE.exec(value)?.[1]]]))
  const given = Object.fromEntries(named.filter(([, variable]) => variable !== undefined))
  const plain = Object.fromEntries(all.filter(([, value]) => envHeaders === undefined || !value.includes('${')))
  return {
    ...(Object.keys(plain).length === 0 ? {} : { [key]: plain }),
    ...(envHeaders === undefined || Object.keys(given).length === 0 ? {} : { [envHeaders]: given }),
    ...(bearer === undefined ? {} : { bearer_token_env_var: bearer }),
  }
}

const VARIABLE = /^\$\{(\w+)\}$/
const BEARER = /^Bearer \$\{(\w+)\}$/

/** How a dialect says which tools of a server may be used. A missing key means that it cannot. */
export interface ServerWords {
  readonly only?: string
  readonly not?: string
  /** The fields that allow none of its tools. */
  readonly none?: { readonly [key: string]: Json }
  readonly headers?: string
  /** The key for the list of variables; if absent, `${NAME}` in `env` does it. */
  readonly envKeys?: string
  /** The key for headers by variable, with `bearer_token_env_var` beside it; if absent, `${NAME}` does it. */
  readonly envHeaders?: string
  /** The key for the time a call may take, in milliseconds or in seconds. */
  readonly timeout?: 'timeout' | 'tool_timeout_sec'
}

function timeFields(seconds: number | null, { timeout }: ServerWords) {
  if (seconds === null || timeout === undefined) return {}
  return { [timeout]: timeout === 'timeout' ? seconds * 1_000 : seconds }
}

function limitFields({ availableTools, excludedTools = [] }: ExtensionConfig, { only, not, none }: ServerWords) {
  if (none !== undefined && excludedTools.includes('*')) return none
  return {
    ...(only === undefined || availableTools.length === 0 ? {} : { [only]: [...availableTools] }),
    ...(not === undefined || excludedTools.length === 0 ? {} : { [not]: [...excludedTools] }),
  }
}

/**
 * Writes our patterns for other programs, where `git *` includes `git` alone and `src` everything below it. The result
 * may mean more; `convert` reads it again and reports that.
 */
function foreignPatterns(domain: string, patterns: readonly string[], slash: Slash): readonly string[] {
  if (domain === 'exec') return withoutTwins(patterns, ' *')
  if (!domain.startsWith('file.')) return patterns
  const meant = patterns.filter((pattern) => pattern !== TOP || patterns.length === 1)
  return [...new Set(withoutBelow(meant).map((pattern) => writtenPattern(pattern, slash)))]
}

/** Part of every list for `file.list`. */
const TOP = '/workspace'

/** Merges `git` and `git *`. */
function withoutTwins(patterns: readonly string[], more: string): readonly string[] {
  return patterns.filter((pattern) => !patterns.includes(`${pattern}${more}`))
}

/** Merges `src` and `src/**`. */
function withoutBelow(patterns: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => !pattern.endsWith('/**') || !patterns.includes(pattern.slice(0, -3)))
}

interface ModelParts {
  readonly provider: string | null
  readonly model: string | null
}

/** Model and provider for a dialect with a key for each: as read if it is the same dialect, else in full. */
export function modelParts(agent: AgentFile, dialect: string): ModelParts {
  const { provider, model } = agent
  if (agent.dialect === dialect || (provider !== null && model !== null)) return { provider, model }
  const whole = wholeModel(agent)
  if (whole === null) return { provider, model: null }
  const slash = whole.indexOf('/')
  return { provider: whole.slice(0, slash), model: whole.slice(slash + 1) }
}

/** The model as `provider/model`; null if there is none or its provider is unknown. */
export function wholeModel(agent: AgentFile): string | null {
  try {
    return modelOf(agent)
  } catch (error) {
    if (isLegateError(error)) return null
    throw error
  }
}

/** Providers whose models a dialect names alone; `all` if it always names the provider too. */
export type ModelNaming = 'all' | 'as read' | readonly string[]

/** The word a dialect writes for the model of an agent; undefined if it has none. */
function modelWord(agent: AgentFile, dialect: string, naming: ModelNaming): string | undefined {
  if (agent.dialect === dialect || naming === 'as read') return agent.model ?? undefined
  const whole = wholeModel(agent)
  if (whole === null || naming === 'all') return whole ?? undefined
  const provider = naming.find((one) => whole.startsWith(`${one}/`))
  return provider === undefined ? undefined : whole.slice(provider.length + 1)
}
