// An agent file while a dialect reads it.
//
// Owns:      `AgentFileDraft`: the readers that dialects share (names, tools, servers, limits), the keys that were read, and
//            `finish`, which joins the restrictions of the file and its own `grant` into one.
// Called by: `dialects/load-agent-file` makes and finishes it; the `read` of each dialect fills it.
// Must stay true:
//   - A key that restricts goes through `narrowing`, which can take away and never add.
//   - A misspelt restriction counts as the strictest one (`strictest`), with a warning.
//   - Every key that nobody read is kept among the properties, and reported unless it is for people only.

import { messageOf } from '../../core/base/error.ts'
import type { Json } from '../../core/base/json.ts'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import { jsonOf } from '../../core/base/text-tree/tree.ts'
import { type Budget, checkBudget, smallerBudget } from '../../core/grant/budget.ts'
import { checkGrant, EVERYTHING, type Grant } from '../../core/grant/grant.ts'
import { covers, mayMeet } from '../../core/grant/lint.ts'
import { rulesOneByOne } from '../../core/grant/rule.ts'
import type { ModelSettings } from '../../core/model/model.ts'
import { sourceName } from '../../core/tool/source.ts'
import { type Fields, ownValue } from '../text/fields.ts'
import type { NoticeReport } from '../text/notice.ts'
import { type AgentFile, EMPTY_AGENT_FILE } from './agent-file.ts'
import { matchServerTools, ownNeeds, readServers, type ServerReading, serverToolsDenied } from './mcp-servers.ts'
import { closestRestriction, nameByPath } from './names.ts'
import { MOST_RULES, Narrowing, readPaths } from './patterns.ts'
import {
  denyTools,
  forbiddenWords,
  knownTools,
  type ListPlace,
  limitTools,
  readToolWords,
  toolWords,
} from './tool-words.ts'

/** Keys that every dialect accepts beside its own. */
const EXTRAS = ['input', 'output', 'grant', 'budget', 'briefing', 'disable']

/** The dialect of a draft and its word tables for tools, its own first. */
export interface DraftDialect extends Pick<ListPlace, 'tables' | 'serverTools'>, Pick<ServerReading, 'spelling'> {
  readonly dialect: string
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** An agent file while it is read: each dialect fills in the parts that it spells differently. */
export class AgentFileDraft {
  readonly fields: Fields
  readonly report: NoticeReport
  readonly narrowing = new Narrowing()
  readonly agent: Mutable<AgentFile>
  readonly settings: Mutable<ModelSettings> = {}
  readonly budget: Mutable<Budget> = {}
  private readonly words: Omit<DraftDialect, 'dialect'>
  private readonly read = new Set<string>(EXTRAS)
  /** Keys kept among the properties without a notice. */
  private readonly quiet = new Set<string>()
  private ownGrant: Grant | null = null

  constructor(fields: Fields, report: NoticeReport, { dialect, ...words }: DraftDialect) {
    this.fields = fields
    this.report = report
    this.words = words
    this.agent = { ...EMPTY_AGENT_FILE, dialect, file: report.file }
  }

  /** Reads the keys that most dialects share, but for those that the dialect reads itself. */
  common(...except: readonly 'model'[]): void {
    this.agent.name = this.text('name')?.trim() ?? ''
    this.agent.description = this.text('description')?.trim() ?? ''
    const model = except.includes('model') ? '' : (this.text('model')?.trim() ?? '')
    // `inherit` means the host's model, in any case.
    if (model !== '' && model.toLowerCase() !== 'inherit') this.agent.model = model
  }

  /** Reports that the file's word names no model: the host's is used, and the word is kept. */
  ownModel(why: string): void {
    const message = `\`model: ${this.agent.model}\` is the model of its host here: ${why}`
    this.report.note({ code: 'model', message, line: this.lineOf('model') })
    this.agent.model = null
    this.read.delete('model')
    this.keep('model')
  }

  /** Names the agent after its file; a name inside the file becomes the title. */
  nameByFile(): void {
    this.agent.title = this.agent.name === '' ? null : this.agent.name
    this.agent.name = nameByPath(this.report.file)
  }

  sampling(): void {
    const temperature = this.number('temperature')
    const topP = this.number('top_p', 'topP')
    if (temperature !== null) this.settings.temperature = temperature
    if (topP !== null) this.settings.topP = topP
    this.effort('reasoningEffort')
  }

  servers(...keys: readonly string[]): void {
    const tree = this.tree(...keys)
    if (tree === undefined) return
    const count = tree.kind === 'leaf' ? 0 : tree.kind === 'list' ? tree.items.length : tree.entries.size
    if (count > MOST_RULES) return this.tooManyServers(count, tree.line)
    const { spelling } = this.words
    const ask = (rule: string) => this.narrowing.ask([rule])
    this.agent.extensions = readServers(tree, { at: keys[0] ?? '', report: this.report, spelling, ask })
  }

  private tooManyServers(count: number, line: number): void {
    this.report.error({
      code: 'extension',
      message: `there are ${count} servers; a file has at most ${MOST_RULES}`,
      line,
    })
  }

  /** Reads a list, or a text separated by commas. */
  texts(key: string): readonly string[] {
    const tree = this.tree(key)
    if (tree?.kind === 'list') return this.fields.texts(key) ?? []
    const parts = tree?.kind === 'leaf' ? tree.text.split(',') : []
    return parts.map((one) => one.trim()).filter((one) => one !== '')
  }

  /** Reads the first of these keys that is present; all of them count as read. */
  text(...keys: readonly string[]): string | null {
    for (const key of keys) this.read.add(key)
    const key = keys.find((one) => this.fields.has(one))
    return key === undefined ? null : this.fields.text(key)
  }

  number(...keys: readonly string[]): number | null {
    for (const key of keys) this.read.add(key)
    const key = keys.find((one) => this.fields.has(one))
    return key === undefined ? null : this.fields.number(key, 'a number')
  }

  flag(key: string): boolean {
    this.read.add(key)
    return this.fields.flag(key) ?? false
  }

  tree(...keys: readonly string[]) {
    for (const key of keys) this.read.add(key)
    const key = keys.find((one) => this.fields.has(one))
    return key === undefined ? undefined : this.fields.get(key)
  }

  lineOf(key: string): number | null {
    return this.fields.lineOf(key)
  }

  /** Keeps keys that only people read. */
  keep(...keys: readonly string[]): void {
    for (const key of keys) this.quiet.add(key)
  }

  /** Keeps keys that have no meaning here, with a notice that says why. */
  ignore(keys: readonly string[], why: string): void {
    this.keep(...keys)
    for (const key of keys.filter((one) => this.fields.has(one))) {
      this.report.note({ code: 'ignored', message: `\`${key}\` is ignored: ${why}`, line: this.lineOf(key) })
    }
  }

  /** Keeps what the file asks for and nothing here gives: the agent is not started, because it may rely on it. */
  demand(field: string, key: string, what: string): void {
    this.keep(key)
    this.agent.unmet = [...this.agent.unmet, { field, line: this.lineOf(key), what }]
  }

  /** Reads a list of allowed tools in any spelling. */
  allowTools(key: string): void {
    const tree = this.tree(key)
    if (tree === undefined) return this.warnAllTools(key)
    const words = toolWords(tree)
    if (!words.includes('*')) this.allowWords(words, key)
  }

  /** Warns about a key without a value, which allows all tools although an empty list may have been meant. */
  private warnAllTools(key: string): void {
    if (!this.fields.keys().includes(key)) return
    const message = `\`${key}\` has nothing after it: the agent has all tools that there are`
    const hint = `Write \`${key}: []\` for none, or remove the key.`
    this.report.warning({ code: 'tool', message, line: this.lineOf(key), hint })
  }

  denyTools(key: string): void {
    const tree = this.tree(key)
    if (tree === undefined) return
    if (tree.kind === 'map') this.tightened(`\`${key}\` is a map; each tool in it that is not false is forbidden`, key)
    this.denyWords(forbiddenWords(tree), key)
  }

  allowWords(given: readonly string[], key: string): void {
    const words = this.distinct(given, key)
    const place = this.listAt(key)
    const { tools, agents } = readToolWords(words, place)
    limitTools(words, this.narrowing, place)
    this.agent.tools = { ...this.agent.tools, allow: tools }
    this.limitAgents(agents ?? [])
  }

  denyWords(words: readonly string[], key: string): void {
    const denied = denyTools(this.distinct(words, key), this.narrowing, this.listAt(key))
    this.agent.tools = { ...this.agent.tools, deny: [...this.agent.tools.deny, ...denied] }
  }

  /** Lists each word once. A list of too many is refused before anything else is done with its words. */
  private distinct(words: readonly string[], key: string): readonly string[] {
    const found = new Set(words)
    if (found.size <= MOST_RULES) return [...found]
    const message = `\`${key}\` has ${found.size} different words; a list of tools has at most ${MOST_RULES}`
    this.report.error({ code: 'permission', message, line: this.lineOf(key), hint: FEWER })
    return []
  }

  /** Resolves a word to tools, including those of MCP servers. */
  toolsNamed(word: string): readonly string[] {
    return knownTools(word, this.words) ?? [word]
  }

  isToolWord(word: string): boolean {
    return word.includes('*') || knownTools(word, this.words) !== undefined
  }

  private listAt(key: string): ListPlace {
    return { line: this.lineOf(key), report: this.report, ...this.words }
  }

  /** Limits delegation to these agents; `*` means all. */
  limitAgents(agents: readonly string[]): void {
    this.agent.reaches = agents
    if (agents.includes('*')) return
    this.agent.agents = agents
    if (agents.length === 0) this.narrowing.deny(['agent:*'])
    else this.narrowing.allowOnly('agent', agents)
  }

  /** Reads whether the agent is switched off. */
  private readDisable(): void {
    const key = this.agent.isDisabled ? 'disabled' : 'disable'
    this.agent.isDisabled ||= this.flag('disable')
    if (!this.agent.isDisabled) return
    const message = `"${this.agent.name}" is switched off by \`${key}: true\`: it is not run`
    this.report.note({ code: 'disabled', message, line: this.lineOf(key) })
  }

  /** Sets a number of the budget; reports and drops an impossible one. */
  limit(name: 'modelCalls' | 'wallMs', value: number | null, key: string): void {
    if (value === null) return
    if (Number.isSafeInteger(value) && value >= 1) {
      this.budget[name] = value
      return
    }
    const message = `\`${key}\` must be a whole number of at least 1`
    this.report.fault({ code: 'invalid_value', message, line: this.lineOf(key) })
  }

  /** Reads how much the model thinks; a number is a budget of tokens where a dialect has these, and means the level nearest to it. */
  effort(key: string, isBudgetKnown = false): void {
    const said = this.text(key)?.trim().toLowerCase()
    if (said === undefined) return
    const budgeted = isBudgetKnown ? levelOf(said) : undefined
    if (budgeted !== undefined) {
      const message = `\`${key}: ${said}\` is read as \`${budgeted}\`: models are told a level here, not a number of tokens`
      this.report.note({ code: 'model', message, line: this.lineOf(key) })
    }
    const level = ownValue(EFFORTS, said) ?? budgeted
    if (level !== undefined) this.settings.reasoning = level
    else
      this.report.warning({
        code: 'invalid_value',
        message: `\`${key}: ${said}\` is not known; it is ignored`,
        line: this.lineOf(key),
      })
  }

  /** Treats an unknown word as the strictest one: a misspelt restriction must not count as none. */
  strictest(key: string, said: string, taken: string): void {
    this.tightened(`\`${key}: ${said}\` is not known; it is taken as \`${taken}\``, key)
  }

  tightened(message: string, key: string): void {
    this.report.warning({ code: 'permission', message, line: this.lineOf(key) })
  }

  finish(): AgentFile {
    this.readExtras()
    this.alignServers()
    this.reportMissingServers()
    const grant = this.wholeGrant()
    const unread = this.fields.keys().filter((key) => !this.read.has(key))
    const properties = unread.map((key): [string, Json] => {
      const tree = this.fields.get(key)
      return [key, tree === undefined ? null : jsonOf(tree)]
    })
    for (const key of unread.filter((one) => !this.quiet.has(one))) this.warnUnknown(key)
    const budget = Object.keys(this.budget).length === 0 ? null : { ...this.budget }
    return {
      ...this.agent,
      settings: { ...this.settings },
      grant,
      freed: this.narrowing.freedPrograms(),
      budget,
      properties: Object.fromEntries(properties),
      notices: this.report.notices,
    }
  }

  private wholeGrant(): Grant | null {
    const narrowed = this.narrowing.grant(ownNeeds(this.agent))
    const count = [this.ownGrant, narrowed].flatMap((grant) => Object.values(grant ?? {}).flat()).length
    if (count <= MOST_RULES) return combineGrants(this.ownGrant, narrowed)
    this.tooManyRules(null)
    return { use: [] }
  }

  tooManyRules(line: number | null): void {
    const message = `there are more than ${MOST_RULES} rules about what is allowed, asked or forbidden`
    this.report.error({ code: 'permission', message, line, hint: FEWER })
  }

  /** Finds the restricting key that an unknown key probably meant. */
  closestRestriction(key: string): string | undefined {
    return this.read.has(key) || this.quiet.has(key) ? undefined : closestRestriction(key, this.read)
  }

  /** Warns about an unknown key: a misspelt restriction restricts nothing. */
  private warnUnknown(key: string): void {
    const message = `unknown key \`${key}\``
    const meant = closestRestriction(key, this.read)
    if (meant === undefined) {
      const hint = 'It is kept and has no effect.'
      return this.report.note({ code: 'unknown_key', message, line: this.lineOf(key), hint })
    }
    const hint = `It restricts nothing. Did you mean \`${meant}\`?`
    this.report.warning({ code: 'unknown_key', message, line: this.lineOf(key), hint })
  }

  /**
   * Applies tool lists to servers, which they may name differently. A denied tool is also excluded at its server, under
   * the server's own name, and an excluded one is denied.
   */
  private alignServers(): void {
    const { extensions, tools } = this.agent
    if (extensions === null) return
    const servers = extensions.map(({ name }) => name)
    const ours = (find: typeof matchServerTools) => (pattern: string) => {
      const found = find(pattern, servers).map(({ server, tool }) => `${sourceName(server)}__${tool}`)
      return found.length === 0 ? [pattern] : found
    }
    const denied = tools.deny.flatMap((pattern) => serverToolsDenied(pattern, servers))
    const deny = [...new Set(tools.deny.flatMap(ours(serverToolsDenied)))]
    this.agent.tools = { allow: tools.allow?.flatMap(ours(matchServerTools)) ?? null, deny }
    this.agent.extensions = extensions.map((extension) => {
      const named = denied.filter(({ server }) => server === extension.name).map(({ tool }) => tool)
      const excludedTools = [...new Set([...(extension.excludedTools ?? []), ...named])]
      this.narrowing.deny(excludedTools.map((tool) => `tool:${sourceName(extension.name)}__${tool}`))
      return excludedTools.length === 0 ? extension : { ...extension, excludedTools }
    })
  }

  /** Reports tools of servers that the file does not start: they exist only if the host has the server. */
  private reportMissingServers(): void {
    const known = new Set((this.agent.extensions ?? []).map(({ name }) => sourceName(name)))
    const missing = new Set<string>()
    const allowed = this.agent.tools.allow ?? []
    const names = new Set(allowed)
    for (const tool of allowed.filter((one) => !names.has(one.replace('__', '_')))) {
      const [, server = '*'] = /^(.+?)__/.exec(tool) ?? []
      if (server !== '*' && !known.has(sourceName(server))) missing.add(server)
    }
    for (const server of missing) {
      const message = `its tools of the MCP server "${server}" are not available here: the file does not say how it is started`
      const hint = 'Add it to the servers of the file, or give the host a source of this name.'
      this.report.warning({ code: 'tool', message, line: this.lineOf('tools'), hint })
    }
  }

  /**
   * Reads `input`, `output`, `grant`, `budget`, `briefing` and `disable`, which are ours and mean the same in every
   * dialect.
   */
  private readExtras(): void {
    this.readDisable()
    this.agent.input = this.schema('input')
    this.agent.output = this.schema('output')
    this.ownGrant = readGrant(this.fields, this.report)
    Object.assign(this.budget, smallerBudget(readBudget(this.fields, this.report) ?? undefined, this.budget))
    if (this.fields.has('briefing')) this.agent.briefing = this.fields.choice('briefing', BRIEFINGS, 'none')
  }

  private schema(key: string): JsonSchema | null {
    const value = this.fields.json(key)
    if (value === undefined) return null
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (isObject && Object.keys(value).length > 0) return value as JsonSchema
    this.report.error({ code: 'schema', message: `\`${key}\` must be a JSON Schema`, line: this.lineOf(key) })
    return null
  }
}

/** Reads the key `grant`, which means the same in every file. A wrong one refuses the file. */
export function readGrant(fields: Fields, report: NoticeReport): Grant | null {
  const tell = (message: string) => report.warning({ code: 'permission', message, line: fields.lineOf('grant') })
  const grant = readPaths(fields.json('grant'), tell)
  return readExtra('grant', grant, { fields, report, check: (read: Grant) => checkGrant(read, 'grant') })
}

/** Reads the key `budget`, which means the same in every file. A wrong one refuses the file. */
export function readBudget(fields: Fields, report: NoticeReport): Budget | null {
  return readExtra('budget', fields.json('budget'), {
    fields,
    report,
    check: (budget: Budget) => checkBudget(budget, 'budget'),
  })
}

function readExtra<T>(
  key: string,
  value: Json | undefined,
  {
    fields,
    report,
    check,
  }: { readonly fields: Fields; readonly report: NoticeReport; readonly check: (value: T) => void },
): T | null {
  if (value === undefined) return null
  try {
    check(value as T)
    return value as T
  } catch (error) {
    report.error({ code: 'permission', message: messageOf(error), line: fields.lineOf(key) })
    return null
  }
}

const FEWER = 'Write fewer, wider ones: a * stands for any text.'

const BRIEFINGS = ['none', 'snapshot', 'summary', 'fork'] as const

type Effort = NonNullable<ModelSettings['reasoning']>

const EFFORTS: Readonly<Record<string, Effort>> = {
  none: 'none',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'xhigh',
}

/** The most tokens of each level. They are the steps that Claude Code had for `think`, `megathink` and `ultrathink`. */
const BUDGETS: readonly (readonly [most: number, level: Effort])[] = [
  [0, 'none'],
  [4_000, 'low'],
  [10_000, 'medium'],
  [31_999, 'high'],
]

function levelOf(said: string): Effort | undefined {
  if (!/^\d{1,9}$/.test(said)) return undefined
  return BUDGETS.find(([most]) => Number(said) <= most)?.[1] ?? 'xhigh'
}

/**
 * Combines two grants into one that narrows as both do, in any order: only what both leave open stays open. An unclear
 * overlap is denied.
 */
export function combineGrants(first: Grant | null, second: Grant | null): Grant | null {
  if (first === null || second === null) return first ?? second
  const asked = [within(first.ask ?? [], openTo(second)), within(second.ask ?? [], openTo(first))]
  const use = first.use === undefined && second.use === undefined ? undefined : common(openTo(first), openTo(second))
  const ask = unique(asked.flatMap((one) => one.inside))
  const free = freeOf(first, second)
  const delegate = first.delegate ?? second.delegate
  const deny = unique([...(first.deny ?? []), ...(second.deny ?? []), ...asked.flatMap((one) => one.unclear)])
  return {
    ...(delegate === undefined ? {} : { delegate }),
    // A free request must be allowed by name: a rule that asks does not stand for the request.
    ...(use === undefined
      ? {}
      : { use: use.filter((rule) => free.length > 0 || !ask.some((one) => covers(one, rule))) }),
    ...(ask.length === 0 ? {} : { ask }),
    ...(free.length === 0 ? {} : { free }),
    ...(deny.length === 0 ? {} : { deny }),
  }
}

/** Lists what neither grant asks for: a grant that asks for nothing leaves the exceptions of the other as they are. */
function freeOf(first: Grant, second: Grant): readonly string[] {
  const [one, other] = [freeIn(first), freeIn(second)]
  if ((second.ask ?? []).length === 0) return one
  return (first.ask ?? []).length === 0 ? other : common(one, other)
}

/** Lists the exceptions that matter: those which the grant allows by name. */
function freeIn({ use = EVERYTHING, free = [] }: Grant): readonly string[] {
  return within(free, use.flatMap(rulesOneByOne)).inside
}

/** Lists what a grant allows or asks for. */
function openTo({ use = EVERYTHING, ask = [] }: Grant): string[] {
  return [...use, ...ask].flatMap(rulesOneByOne)
}

function common(first: readonly string[], second: readonly string[]): string[] {
  return unique([...within(first, second).inside, ...within(second, first).inside])
}

interface RuleOverlap {
  readonly inside: readonly string[]
  /** Rules that may be partly inside. */
  readonly unclear: readonly string[]
}

/** Splits rules into the parts that other rules leave open and those they do not. */
function within(rules: readonly string[], open: readonly string[]): RuleOverlap {
  const all = rules.flatMap(rulesOneByOne)
  const inside = all.flatMap((rule) => {
    return open.some((one) => covers(one, rule)) ? [rule] : open.filter((one) => covers(rule, one))
  })
  const unclear = all.filter((rule) =>
    open.some((one) => mayMeet(one, rule) && !covers(one, rule) && !covers(rule, one)),
  )
  return { inside: unique(inside), unclear: unclear.filter((rule) => !inside.includes(rule)) }
}

function unique(rules: readonly string[]): string[] {
  return [...new Set(rules)]
}
