import { messageOf } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema.ts'
import { type Budget, checkBudget } from '../../grant/budget.ts'
import { checkGrant, type Grant } from '../../grant/grant.ts'
import type { ModelSettings } from '../../model/model.ts'
import type { Fields } from '../text/fields.ts'
import type { Report } from '../text/notice.ts'
import { own } from '../text/own.ts'
import { jsonOf } from '../text/tree.ts'
import type { AgentFile, Dialect } from './agent-file.ts'
import { EMPTY_AGENT_FILE } from './empty-agent-file.ts'
import { covers, Narrowing } from './narrowing.ts'
import { denyTools, limitTools, readToolWords, toolWords } from './tool-lists.ts'

/** What every dialect may say beside its own words. */
const EXTRAS = ['input', 'output', 'grant', 'budget', 'briefing']

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** An agent file while it is read: the parts that dialects spell differently are filled in one by one. */
export class Draft {
  readonly fields: Fields
  readonly report: Report
  readonly narrowing = new Narrowing()
  readonly agent: Mutable<AgentFile>
  readonly settings: Mutable<ModelSettings> = {}
  readonly budget: Mutable<Budget> = {}
  private readonly read = new Set<string>(EXTRAS)
  /** Kept among the properties without a word about it. */
  private readonly quiet = new Set<string>()
  private ownGrant: Grant | null = null

  constructor(fields: Fields, report: Report, dialect: Dialect) {
    this.fields = fields
    this.report = report
    this.agent = { ...EMPTY_AGENT_FILE, dialect, file: report.file }
  }

  /** The first of these keys that is there; all of them count as read. */
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

  /** For people to see only: kept as they are. */
  keep(...keys: readonly string[]): void {
    for (const key of keys) this.quiet.add(key)
  }

  /** Said and without a meaning here: kept, and told why. */
  ignore(keys: readonly string[], why: string): void {
    this.keep(...keys)
    for (const key of keys.filter((one) => this.fields.has(one))) {
      this.report.note({ code: 'ignored', message: `\`${key}\` is ignored: ${why}`, line: this.lineOf(key) })
    }
  }

  /** A list of tools that may be used, in any spelling. */
  allowTools(key: string): void {
    const tree = this.tree(key)
    if (tree === undefined) return
    const words = toolWords(tree)
    if (words.includes('*')) return
    const { tools, agents } = readToolWords(words, this.lineOf(key), this.report)
    limitTools(words, this.narrowing)
    this.agent.tools = { ...this.agent.tools, allow: tools }
    this.limitAgents(agents ?? [])
  }

  denyTools(key: string): void {
    const tree = this.tree(key)
    if (tree === undefined) return
    const denied = denyTools(toolWords(tree), this.narrowing, this.report)
    this.agent.tools = { ...this.agent.tools, deny: [...this.agent.tools.deny, ...denied] }
  }

  /** Only these agents; `*` is all. */
  limitAgents(agents: readonly string[]): void {
    if (agents.includes('*')) return
    this.agent.agents = agents
    if (agents.length === 0) this.narrowing.deny('agent:*')
    else this.narrowing.allowOnly('agent', agents)
  }

  /** A number of the budget; one that cannot be is told and left out. */
  limit(name: 'turns' | 'wallMs', value: number | null, key: string): void {
    if (value === null) return
    if (Number.isSafeInteger(value) && value >= 1) {
      this.budget[name] = value
      return
    }
    const message = `\`${key}\` must be a whole number of at least 1`
    this.report.fault({ code: 'invalid_value', message, line: this.lineOf(key) })
  }

  effort(key: string): void {
    const said = this.text(key)?.trim().toLowerCase()
    if (said === undefined) return
    const level = own(EFFORTS, said)
    if (level !== undefined) this.settings.reasoning = level
    else
      this.report.warning({
        code: 'invalid_value',
        message: `\`${key}: ${said}\` is not known; it is ignored`,
        line: this.lineOf(key),
      })
  }

  tightened(message: string, key: string): void {
    this.report.warning({ code: 'permission', message, line: this.lineOf(key) })
  }

  finish(): AgentFile {
    this.readExtras()
    const grant = together(this.ownGrant, this.narrowing.grant())
    const unread = this.fields.keys().filter((key) => !this.read.has(key))
    const properties = unread.map((key): [string, Json] => {
      const tree = this.fields.get(key)
      return [key, tree === undefined ? null : jsonOf(tree)]
    })
    for (const key of unread.filter((one) => !this.quiet.has(one))) {
      const hint = 'It is kept and has no effect.'
      this.report.note({ code: 'unknown_key', message: `unknown key \`${key}\``, line: this.lineOf(key), hint })
    }
    const budget = Object.keys(this.budget).length === 0 ? null : { ...this.budget }
    return {
      ...this.agent,
      settings: { ...this.settings },
      grant,
      budget,
      properties: Object.fromEntries(properties),
      notices: this.report.notices,
    }
  }

  /** `input`, `output`, `grant`, `budget` and `briefing` mean the same in every dialect: they are ours. */
  private readExtras(): void {
    this.agent.input = this.schema('input')
    this.agent.output = this.schema('output')
    const grant = this.fields.json('grant')
    if (grant !== undefined && this.isRight(() => checkGrant(grant as Grant, 'grant'), 'grant'))
      this.ownGrant = grant as Grant
    const budget = this.fields.json('budget')
    if (budget !== undefined && this.isRight(() => checkBudget(budget as Budget, 'budget'), 'budget')) {
      for (const [key, value] of Object.entries(budget as Budget))
        this.budget[key as keyof Budget] = Math.min(value, this.budget[key as keyof Budget] ?? value)
    }
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

  private isRight(check: () => void, key: string): boolean {
    try {
      check()
      return true
    } catch (error) {
      this.report.error({ code: 'permission', message: messageOf(error), line: this.lineOf(key) })
      return false
    }
  }
}

const BRIEFINGS = ['none', 'snapshot', 'summary', 'fork'] as const

const EFFORTS: Readonly<Record<string, NonNullable<ModelSettings['reasoning']>>> = {
  none: 'none',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'xhigh',
}

/** Both at once, order not mattering: of what each allows, only what the other allows too. */
function together(own: Grant | null, narrowed: Grant | null): Grant | null {
  if (own === null || narrowed === null) return own ?? narrowed
  const use =
    own.use === undefined || narrowed.use === undefined ? (own.use ?? narrowed.use) : common(own.use, narrowed.use)
  const lists = (key: 'ask' | 'deny') => [...new Set([...(own[key] ?? []), ...(narrowed[key] ?? [])])]
  return {
    ...own,
    ...(use === undefined ? {} : { use }),
    ...(lists('ask').length === 0 ? {} : { ask: lists('ask') }),
    ...(lists('deny').length === 0 ? {} : { deny: lists('deny') }),
  }
}

function common(first: readonly string[], second: readonly string[]): string[] {
  const [a, b] = [first.flatMap(oneByOne), second.flatMap(oneByOne)]
  const within = (rules: readonly string[], others: readonly string[]) => {
    return rules.filter((rule) => others.some((other) => covers(other, rule)))
  }
  return [...new Set([...within(a, b), ...within(b, a)])]
}

function oneByOne(rule: string): string[] {
  if (!rule.startsWith('file.*:')) return [rule]
  return ['list', 'read', 'write', 'delete'].map((act) => `file.${act}:${rule.slice('file.*:'.length)}`)
}
