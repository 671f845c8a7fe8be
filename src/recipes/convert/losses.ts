import { canonicalJson, isRecord, type Json, toJson } from '../../core/base/json.ts'
import { EVERYTHING } from '../../core/grant/grant.ts'
import { covers, mayMeet } from '../../core/grant/lint.ts'
import { RULE_DOMAINS, rulesOneByOne, splitRule } from '../../core/grant/rule.ts'
import type { AgentFile } from '../agent-file/agent-file.ts'
import { wholeModel } from '../agent-file/agent-file-writer.ts'
import { isOurs, OUR_TOOLS } from '../agent-file/tool-words.ts'

/**
 * Compares an agent with its written form, read again. Each loss is the subject of "... cannot be said". The agent must
 * not be able to do more than before: a rule that is not found again is lost unless a stricter one replaces it.
 */
export function findLosses(before: AgentFile, after: AgentFile): readonly string[] {
  return [lostParts, lostBudget, lostTools, lostRules, lostDelegate, lostFlags].flatMap((find) => find(before, after))
}

const PARTS = [
  ...(['settings', 'extensions', 'skills', 'briefing', 'input', 'output', 'retry'] as const),
  ...(['parameters', 'subRecipes', 'isBackground', 'isHidden', 'hooks', 'memory'] as const),
] satisfies readonly (keyof AgentFile)[]

function lostParts(before: AgentFile, after: AgentFile): string[] {
  const parts: string[] = PARTS.filter((part) => isMeant(before, part) && text(before[part]) !== text(after[part]))
  if (!isSameModel(before, after)) parts.unshift('model')
  // A recipe is named after its file.
  if (after.dialect !== 'recipe' && after.name !== before.name) parts.unshift('name')
  const isPromptKept =
    before.prompt === null || `${after.instructions}\n${after.prompt ?? ''}`.includes(before.prompt.trim())
  return [...parts, ...(isPromptKept ? [] : ['prompt'])].map((part) => `\`${part}\``)
}

/** Compares models in any spelling. */
function isSameModel(before: AgentFile, after: AgentFile): boolean {
  if (before.model === null && before.provider === null) return true
  if (before.model === after.model && before.provider === after.provider) return true
  const whole = wholeModel(before)
  return whole !== null && whole === wholeModel(after)
}

function isMeant(agent: AgentFile, part: (typeof PARTS)[number]): boolean {
  // A recipe without extensions has none, not those of its host.
  if (part === 'extensions' && agent.dialect === 'recipe') return agent.extensions !== null
  const value = agent[part]
  if (value === null || value === false) return false
  return typeof value !== 'object' || Object.keys(value).length > 0
}

/** Compares values without line numbers, which differ, and whatever the order of their keys. */
function text(value: unknown): string {
  const plain = toJson(value ?? null)
  return plain.ok ? canonicalJson(withoutLines(plain.value)) : plain.error
}

function withoutLines(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutLines)
  if (!isRecord(value)) return value
  const entries = Object.entries(value).filter(([key]) => key !== 'line')
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutLines(inner)]))
}

function lostBudget(before: AgentFile, after: AgentFile): string[] {
  const written = new Map(Object.entries(after.budget ?? {}))
  return Object.entries(before.budget ?? {})
    .filter(([name, most]) => (written.get(name) ?? Number.POSITIVE_INFINITY) > most)
    .map(([name]) => `\`budget.${name}\``)
}

/** Lists tools and agents that are missing afterwards. */
function lostTools(before: AgentFile, after: AgentFile): string[] {
  const named = (before.tools.allow ?? []).flatMap((name) => {
    return isOurs(name) ? OUR_TOOLS.filter((tool) => covers(`tool:${name}`, `tool:${tool}`)) : [name]
  })
  const tools = named.filter((tool) => isLive(`tool:${tool}`, before) && !isLive(`tool:${tool}`, after))
  const agents = before.agents?.length !== 0 && after.agents?.length === 0 ? ['delegating to other agents'] : []
  return [...tools.map((tool) => `the tool ${tool}`), ...agents]
}

function isLive(rule: string, agent: AgentFile): boolean {
  return layersOf(agent).every(({ allow, deny }) => {
    return allow.some((one) => covers(one, flat(rule))) && !deny.some((one) => covers(one, flat(rule)))
  })
}

interface Rules {
  readonly allow: readonly string[]
  readonly ask: readonly string[]
  readonly deny: readonly string[]
}

function lostRules(before: AgentFile, after: AgentFile): string[] {
  const written = layersOf(after)
  const allDeny = written.flatMap(({ deny }) => deny)
  const allStrict = [...allDeny, ...written.flatMap(({ ask }) => ask)]
  /** The rules that each layer still allows. */
  const live = written.map(({ allow }) => allow.filter((rule) => !allDeny.some((denied) => covers(denied, rule))))
  const isUnmet = (rule: string) => live.some((allow) => !allow.some((one) => mayMeet(one, rule)))
  // Without programs there is no shell.
  const isOut = (rule: string) => isUnmet(rule) || (rule === 'tool:shell' && isUnmet('exec:*'))
  const lost = layersOf(before).flatMap(({ allow, ask, deny }) => [
    ...lostLists(allow, live),
    ...deny.filter((rule) => !isSaid(rule, allDeny) && !isOut(rule)).map((rule) => `that ${rule} is forbidden`),
    ...ask.filter((rule) => !isSaid(rule, allStrict) && !isOut(rule)).map((rule) => `that ${rule} is asked for`),
  ])
  return [...new Set(lost)]
}

/** Compares the authority of its children, if the file sets it. */
function lostDelegate({ grant }: AgentFile, after: AgentFile): string[] {
  return grant?.delegate === undefined || text(grant) === text(after.grant) ? [] : ['`grant.delegate`']
}

function lostFlags(before: AgentFile, after: AgentFile): string[] {
  return [
    ...(before.neverAsks && !after.neverAsks ? ['that what would be asked for is denied'] : []),
    ...(before.isDisabled && !after.isDisabled ? ['that it is switched off'] : []),
    ...before.unmet
      .filter(({ field }) => !after.unmet.some((one) => one.field === field))
      .map(({ field }) => `\`${field}\``),
    ...(before.sandbox !== null && after.sandbox === null ? ['that programs are fenced in'] : []),
  ]
}

function isSaid(rule: string, rules: readonly string[]): boolean {
  return rules.some((one) => covers(one, rule))
}

/** Lists domains that were limited and are wider afterwards. */
function lostLists(allow: readonly string[], live: readonly (readonly string[])[]): string[] {
  return RULE_DOMAINS.flatMap((domain) => {
    const known = allow.filter((rule) => isOf(rule, domain))
    if (isSaid(domain.startsWith('file.') ? `${domain}:**` : `${domain}:*`, known)) return []
    const isKept = live.some((rules) => rules.filter((rule) => isOf(rule, domain)).every((rule) => isSaid(rule, known)))
    if (isKept) return []
    if (domain === 'tool') return ['`tools`, the list of what it may use,']
    return [known.length === 0 ? `that there is no ${domain}:` : `that only ${known.join(', ')} may be used`]
  })
}

function isOf(rule: string, domain: string): boolean {
  return splitRule(rule).domain === domain
}

/** The rules of the tool list, and those of the grant. */
function layersOf({ tools, grant }: AgentFile): readonly Rules[] {
  const allow = tools.allow === null ? ['*'] : [...tools.allow, ...ALWAYS]
  const others = EVERYTHING.filter((rule) => !rule.startsWith('tool:'))
  return [
    rules({ allow: [...others, ...allow.map(toolRule)], ask: [], deny: tools.deny.map(toolRule) }),
    rules({ allow: withModels(grant?.use ?? EVERYTHING), ask: grant?.ask ?? [], deny: grant?.deny ?? [] }),
  ]
}

/** Rules about agents, not about tools, decide on delegation. */
const ALWAYS = ['subagent', 'delegate', 'Agent', 'load']

function toolRule(name: string): string {
  return `tool:${name}`
}

/** Adds models to a layer that has no rule about them. */
function withModels(use: readonly string[]): readonly string[] {
  return use.some((rule) => rule.startsWith('model:')) ? use : [...use, 'model:*']
}

function rules({ allow, ask, deny }: Rules): Rules {
  // A person may allow what is asked about.
  return { allow: [...allow, ...ask].flatMap(oneByOne), ask: ask.flatMap(oneByOne), deny: deny.flatMap(oneByOne) }
}

function oneByOne(rule: string): string[] {
  return rulesOneByOne(flat(rule))
}

/**
 * Joins a server and its tool with one underscore, as some programs do: for them `srv__do` and `srv_do` are the same. A rule for
 * all servers stays: `*_*` would also be `write_file`.
 */
function flat(rule: string): string {
  return rule.startsWith('tool:') && !/\*.*__/.test(rule) ? rule.replaceAll('__', '_') : rule
}
