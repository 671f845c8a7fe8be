// The permissions of opencode: the map `permission` of version 1 and the list `permissions` of version 2.
//
// Called by: `opencode` (`readPermissions`).
//
// Must stay true:
// - In both the last match wins, and here order does not matter: what rules cannot say becomes stricter, with a warning.
// - A rule that is not understood forbids more than it says, and allows nothing.

import { nearest } from '../../core/base/options.ts'
import type { TextEntry, TextList, TextMap, TextTree } from '../../core/base/text-tree/tree.ts'
import { matchName } from '../../core/grant/match.ts'
import type { AgentFileDraft } from '../agent-file/draft.ts'
import { correctKeys } from '../agent-file/names.ts'
import {
  commandPatterns,
  filePatterns,
  hostPatterns,
  isWidened,
  MOST_RULES,
  namePatterns,
  namesPort,
} from '../agent-file/patterns.ts'
import { domainsUsed, toolsForbidden } from '../agent-file/tool-words.ts'
import { ownValue } from '../text/fields.ts'

type Action = 'allow' | 'ask' | 'deny'

interface PermissionRule {
  readonly pattern: string
  readonly action: Action
}

interface Domain {
  readonly domains: readonly (
    | 'exec'
    | 'net'
    | 'agent'
    | 'tool'
    | 'file.list'
    | 'file.read'
    | 'file.write'
    | 'file.delete'
  )[]
  readonly patterns: (pattern: string, purpose: 'allow' | 'restrict') => string[]
}

const files = (...domains: Domain['domains']): Domain => ({
  domains,
  patterns: (pattern, purpose) => filePatterns(pattern, purpose, 'machine'),
})

const DOMAINS: Readonly<Record<string, Domain>> = {
  edit: files('file.write', 'file.delete'),
  write: files('file.write', 'file.delete'),
  read: files('file.read'),
  list: files('file.list'),
  bash: { domains: ['exec'], patterns: commandPatterns },
  shell: { domains: ['exec'], patterns: commandPatterns },
  webfetch: { domains: ['net'], patterns: hostPatterns },
  task: { domains: ['agent'], patterns: namePatterns },
  subagent: { domains: ['agent'], patterns: namePatterns },
}

/** The key of a file that holds permissions, and the draft that they narrow. */
interface Place {
  readonly field: 'permission' | 'permissions'
  readonly draft: AgentFileDraft
}

/** Reads the permissions of both versions; a file that has both is narrowed by both. */
export function readPermissions(draft: AgentFileDraft): void {
  for (const field of ['permission', 'permissions'] as const) {
    const tree = draft.tree(field)
    if (tree !== undefined) readPermission(tree, { field, draft })
  }
}

/**
 * Translates permissions, where the last match wins, into rules, where order does not matter. What rules cannot express
 * becomes stricter and is reported.
 */
function readPermission(tree: TextTree, place: Place): void {
  if (tree.kind === 'leaf') return applyToAll(actionOf(tree, null, place), new Map(), place)
  if (tree.kind === 'list') return tree.items.some(isRule) ? readRules(tree, place) : readMaps(tree, place)
  const { field, draft } = place
  const isOpen = !tree.entries.has('*')
  const meant = correctKeys(
    tree,
    (key) => (isOpen || !mayAllow(tree.entries.get(key)?.value) ? meantKey(key, draft) : undefined),
    (key, right) => draft.tightened(`\`${field}.${key}\` is read as \`${field}.${right}\``, field),
  )
  readPermissionMap(meant, place)
}

/** Finds the key that a misspelt one probably means: `edits` is `edit`. */
function meantKey(key: string, draft: AgentFileDraft): string | undefined {
  if (key === '*' || ownValue(DOMAINS, key) !== undefined || draft.isToolWord(key)) return undefined
  return nearest(key.toLowerCase(), [...Object.keys(DOMAINS), ...TOOL_KEYS])
}

/** Tells whether a value allows something: a misspelt key must not except it from a star. */
function mayAllow(tree: TextTree | undefined): boolean {
  if (tree?.kind === 'map') return [...tree.entries.values()].some(({ value }) => mayAllow(value))
  return tree?.kind === 'leaf' && tree.text === 'allow'
}

function readPermissionMap(tree: TextMap, place: Place): void {
  const keys = [...tree.entries.keys()]
  // A star overrules everything before it.
  const base = keys.lastIndexOf('*')
  const later = new Map([...tree.entries].slice(base + 1).map(([key, { value }]) => [key, rulesOf(value, key, place)]))
  const star = base === -1 ? undefined : tree.entries.get('*')?.value
  const action = star === undefined ? 'allow' : actionOf(star, '*', place)
  for (const [key, { value }] of [...tree.entries].slice(0, Math.max(base, 0))) {
    const lost = rulesOf(value, key, place).filter((rule) => rule.action !== action)
    const strict = lost.find((rule) => isStricter(rule.action, action)) ?? lost[0]
    const { field } = place
    if (strict !== undefined) warnOverruled(`${field}.${key}`, { star: `${field}."*"`, rule: strict, action }, place)
  }
  applyFrom(action, later, place)
}

/** Applies the word of a star, and then what later rules say of each key. */
function applyFrom(action: Action, later: ReadonlyMap<string, readonly PermissionRule[]>, place: Place): void {
  const { draft } = place
  applyToAll(action, later, place)
  const agents = AGENT_KEYS.flatMap((key) => later.get(key) ?? []).filter((rule) => rule.action !== 'deny')
  if (agents.length > 0) draft.agent.reaches = agents.map(({ pattern }) => pattern)
  for (const [key, rules] of later) apply([{ pattern: '*', action }, ...rules], { ...place, key })
}

/** Merges a list of maps into one map; later maps come last. */
function readMaps({ items, line, column }: TextList, place: Place): void {
  const { field, draft } = place
  const entries = new Map<string, TextEntry>()
  for (const [key, entry] of items.flatMap((item) => (item.kind === 'map' ? [...item.entries] : []))) {
    entries.delete(key)
    entries.set(key, entry)
  }
  const isWhole = items.every(({ kind }) => kind === 'map')
  const taken = isWhole ? 'its maps are read as one' : 'it is taken as deny'
  if (items.length > 0) draft.tightened(`\`${field}\` is a list; ${taken}`, field)
  if (isWhole) readPermission({ kind: 'map', entries, line, column }, place)
  else applyToAll('deny', new Map(), place)
}

/** A rule of version 2: which actions, of them which resources, and what holds for these. */
interface ActionRule extends PermissionRule {
  readonly of: string
}

const RULE_KEYS = ['action', 'resource', 'effect']

function isRule(tree: TextTree): boolean {
  return tree.kind === 'map' && RULE_KEYS.some((key) => tree.entries.has(key))
}

/** Reads the list of version 2, `{ action, resource, effect }`. Every action that is known gets the rules that match it. */
function readRules({ items, line }: TextList, place: Place): void {
  if (items.length > MOST_RULES) {
    place.draft.tooManyRules(line)
    return applyToAll('deny', new Map(), place)
  }
  const rules = items.flatMap((item, at) => ruleOf(item, at, place))
  // A star over everything overrules all before it.
  const base = rules.findLastIndex(({ of, pattern }) => of === '*' && isStar(pattern))
  const action = rules[base]?.action ?? 'allow'
  for (const rule of rules.slice(0, Math.max(base, 0)).filter((one) => one.action !== action)) {
    warnOverruled(`${place.field}: ${rule.of} "${rule.pattern}"`, { star: 'a rule for "*"', rule, action }, place)
  }
  const later = rules.slice(base + 1)
  const named = later.filter(({ of, action: own }) => !of.includes('*') || own !== 'allow').map(({ of }) => of)
  const isWild = later.some(({ of }) => of.includes('*'))
  const keys = new Set([...(isWild ? [...ACTIONS, ...TOOL_KEYS] : []), ...named])
  keys.delete('*')
  const byKey = [...keys].map((key): [string, PermissionRule[]] => [
    key,
    later.filter(({ of }) => of === key || (of.includes('*') && matchName(of, key))),
  ])
  applyFrom(action, new Map(byKey.filter(([, own]) => own.length > 0)), place)
}

/** Reads one rule. One that is not understood forbids what it may mean, and allows nothing. */
function ruleOf(tree: TextTree, at: number, place: Place): ActionRule[] {
  const [of, pattern, effect] = RULE_KEYS.map((key) => textAt(tree, key))
  const keys = tree.kind === 'map' ? [...tree.entries.keys()] : []
  const tell = (why: string) => place.draft.tightened(`\`${place.field}[${at}]\` ${why}`, place.field)
  const isKnown = effect === 'allow' || effect === 'ask' || effect === 'deny'
  const action = isKnown ? effect : 'deny'
  if (isKnown && of !== undefined && pattern !== undefined && keys.length === RULE_KEYS.length) {
    return wholeRule({ of, pattern: atHome(pattern), action }, place.draft, tell)
  }
  tell(`is no rule of action, resource and effect; ${action === 'allow' ? 'it allows nothing' : 'it forbids more'}`)
  if (action === 'allow') return []
  // Whatever stands beside them may limit it, or be what is meant.
  const isPart = keys.every((key) => RULE_KEYS.includes(key))
  return [{ of: isPart ? wide(of ?? '*') : '*', pattern: isPart ? (pattern ?? '*') : '*', action }]
}

function wholeRule(rule: ActionRule, draft: AgentFileDraft, tell: (why: string) => void): ActionRule[] {
  const { of, pattern, action } = rule
  const meant = meantAction(of, draft)
  const read = wide(meant)
  if (action !== 'allow') {
    if (read !== of) tell(`is read as of \`${read}\`: there is no action \`${of}\``)
    return [{ ...rule, of: read }]
  }
  if (meant !== of) tell(`allows nothing: there is no action \`${of}\`, but \`${meant}\``)
  else if (read !== of) tell('allows nothing: only `*` stands for several actions')
  else if (of.includes('*') && !isStar(pattern)) tell('allows nothing: say which action it is for')
  else return [rule]
  return []
}

function textAt(tree: TextTree, key: string): string | undefined {
  const found = tree.kind === 'map' ? tree.entries.get(key)?.value : undefined
  return found?.kind === 'leaf' && found.value !== null ? found.text : undefined
}

function wide(action: string): string {
  return action.replaceAll(/[*?]+/g, '*')
}

function atHome(pattern: string): string {
  return pattern.replace(/^\$HOME(?=$|[/\\])/, '~')
}

function isStar(pattern: string): boolean {
  return pattern === '*' || pattern === '**'
}

/** Finds the action that is meant by the word of version 1, or by a misspelt one. */
function meantAction(of: string, draft: AgentFileDraft): string {
  if (of.includes('*') || of.includes('?') || ACTIONS.includes(of)) return of
  const former = ownValue(FORMER_ACTIONS, of)
  if (former !== undefined || draft.isToolWord(of)) return former ?? of
  return nearest(of.toLowerCase(), [...ACTIONS, ...TOOL_KEYS]) ?? of
}

const ACTIONS: readonly string[] = ['read', 'edit', 'shell', 'subagent', 'webfetch', 'list', 'external_directory']
const FORMER_ACTIONS = { bash: 'shell', task: 'subagent', write: 'edit', patch: 'edit', apply_patch: 'edit' } as const
/** Keys about agents. */
const AGENT_KEYS = ['task', 'subagent']

/** Applies one word to everything that has no word of its own. */
function applyToAll(action: Action, others: ReadonlyMap<string, readonly PermissionRule[]>, place: Place): void {
  const { draft } = place
  if (action === 'allow') return
  const named = new Set([...others.keys()].flatMap((key) => ownValue(DOMAINS, key)?.domains ?? []))
  const here = [...others].filter(([key]) => !NOT_HERE.includes(key))
  const open = here.filter(([, rules]) => rules.some((rule) => rule.action !== 'deny')).map(([key]) => key)
  const tools = new Set(open.flatMap((key) => (AGENT_KEYS.includes(key) ? DELEGATION_TOOLS : draft.toolsNamed(key))))
  const used: ReadonlySet<string> = domainsUsed([...tools])
  const toolKeys = [...TOOL_KEYS]
  for (const [key, { domains }] of Object.entries(DOMAINS)) {
    if (domains.some((domain) => named.has(domain))) continue
    // If an open tool works with this domain, the domain stays open and only the tools of the key are restricted.
    if (key === 'list' || domains.some((domain) => used.has(domain))) toolKeys.push(key)
    else apply([{ pattern: '*', action }], { ...place, key })
  }
  if (action === 'deny') return draft.narrowing.allowOnly('tool', [...tools])
  const asked = [...toolKeys.flatMap((key) => draft.toolsNamed(key)), '*__*'].filter((tool) => !tools.has(tool))
  draft.narrowing.ask(asked.map((tool) => `tool:${tool}`))
}

/** Keys about a tool rather than a domain. */
const TOOL_KEYS = ['grep', 'glob', 'todowrite', 'todoread', 'skill', 'websearch', 'codesearch', 'lsp']
/** Tools that do not exist here: other programs use these words for them. */
const NOT_HERE = ['execute', 'external_directory', 'doom_loop']
const DELEGATION_TOOLS = ['subagent', 'delegate', 'Agent', 'load']

function rulesOf(tree: TextTree, key: string, place: Place): PermissionRule[] {
  if (tree.kind !== 'map') return [{ pattern: '*', action: actionOf(tree, key, place) }]
  if (tree.entries.size > MOST_RULES) {
    place.draft.tooManyRules(tree.line)
    return [{ pattern: '*', action: 'deny' }]
  }
  return [...tree.entries].map(([pattern, { value }]) => ({ pattern, action: actionOf(value, key, place) }))
}

/** Treats an unknown word as a denial: a misspelt restriction must not count as none. */
function actionOf(tree: TextTree, key: string | null, { field, draft }: Place): Action {
  const text = tree.kind === 'leaf' ? tree.text : ''
  if (text === 'allow' || text === 'ask' || text === 'deny') return text
  const name = key === null ? field : `${field}.${key}`
  draft.tightened(`\`${name}\` is neither allow, ask nor deny; it is taken as deny`, field)
  return 'deny'
}

function apply(rules: readonly PermissionRule[], place: KeyPlace): void {
  const { key, draft } = place
  const domain = ownValue(DOMAINS, key)
  // Programs and searches list folders too, so this word restricts only its own tools.
  const isOfTools = domain === undefined || (key === 'list' && rules.every(({ pattern }) => pattern === '*'))
  if (isOfTools) return applyToTool(rules, place)
  if (domain.domains.includes('net')) reportPorts(rules, place)
  reportWider(rules, place)
  const base = rules.findLastIndex(({ pattern }) => pattern === '*' || pattern === '**')
  const action = rules[base]?.action ?? 'allow'
  const later = rules.slice(base + 1)
  warnEarlier(rules.slice(1, Math.max(base, 1)), action, place)
  const put = (list: 'ask' | 'deny', pattern: string): void => {
    for (const one of domain.domains) {
      draft.narrowing[list](domain.patterns(pattern, 'restrict').map((rule) => `${one}:${rule}`))
    }
  }
  if (action === 'deny') return onlySome(later, domain, { ...place, put })
  if (action === 'ask') put('ask', '*')
  for (const { pattern, action: own } of later) if (own !== 'allow') put(own, pattern)
  const lost = later.filter(
    (rule, at) => rule.action === 'allow' && (action === 'ask' || isBound(rule, later.slice(0, at))),
  )
  if (lost.length > 0) tell(lost, place)
}

/** Applies the strictest word of all patterns to the whole tool, because rules cannot see arguments of tools. */
function applyToTool(rules: readonly PermissionRule[], place: KeyPlace): void {
  const { key, draft } = place
  // No tool for files reaches anything outside of the project.
  if (key === 'external_directory') return
  // A star overrules everything before it.
  const base = rules.findLastIndex(({ pattern }) => pattern === '*')
  const live = rules.slice(base)
  warnEarlier(rules.slice(1, Math.max(base, 1)), live[0]?.action ?? 'allow', place)
  const has = (action: Action) => live.some((rule) => rule.action === action)
  if (!has('deny') && !has('ask')) return
  if (!draft.isToolWord(key)) reportUnknown(place)
  const tools = toolsForbidden(key, draft.toolsNamed(key)).map((tool) => `tool:${tool}`)
  draft.narrowing[has('deny') ? 'deny' : 'ask'](tools)
  const lost = live.slice(1).filter(({ action }) => action === 'allow' || (action === 'ask' && has('deny')))
  if (lost.length > 0) tell(lost, place)
}

interface KeyPlace extends Place {
  readonly key: string
}

/** Denies everything except the later patterns. */
function onlySome(
  later: readonly PermissionRule[],
  domain: Domain,
  place: KeyPlace & { readonly put: (list: 'ask' | 'deny', pattern: string) => void },
): void {
  const { draft, put } = place
  const open = later.filter(({ action }) => action !== 'deny')
  if (open.length === 0) return put('deny', '*')
  for (const one of domain.domains) {
    draft.narrowing.allowOnly(
      one,
      open.flatMap(({ pattern }) => domain.patterns(pattern, 'allow')),
    )
  }
  for (const { pattern, action } of later) if (action !== 'allow') put(action, pattern)
  const lost = open.filter((rule) => rule.action === 'allow' && isBound(rule, later.slice(0, later.indexOf(rule))))
  if (lost.length > 0) tell(lost, place)
}

/** Tells whether a pattern takes something back from a stricter one before it. */
function isBound({ pattern }: PermissionRule, before: readonly PermissionRule[]): boolean {
  return before.some(
    (other) => other.action !== 'allow' && (matchName(other.pattern, pattern) || matchName(pattern, other.pattern)),
  )
}

const STRICTNESS: readonly Action[] = ['allow', 'ask', 'deny']

function isStricter(one: Action, other: Action): boolean {
  return STRICTNESS.indexOf(one) > STRICTNESS.indexOf(other)
}

/** Warns about patterns before a star that says otherwise: the last match wins, so they have no effect. */
function warnEarlier(earlier: readonly PermissionRule[], action: Action, place: KeyPlace): void {
  const name = `${place.field}.${place.key}`
  for (const rule of earlier.filter((one) => one.action !== action)) {
    warnOverruled(`${name}."${rule.pattern}"`, { star: `${name}."*"`, rule, action }, place)
  }
}

function warnOverruled(
  name: string,
  {
    star,
    rule,
    action,
  }: {
    /** The name of the star. */
    readonly star: string
    readonly rule: PermissionRule
    /** The word of the star. */
    readonly action: Action
  },
  { field, draft }: Place,
): void {
  const what = isStricter(rule.action, action) ? 'restricts' : 'allows'
  const message = `\`${name}\` ${what} nothing: \`${star}\` comes after it, and the last match wins`
  const hint = 'Put "*" first.'
  draft.report.warning({ code: 'permission', message, line: draft.lineOf(field), hint })
}

/** Reports an unknown key such as `edits: deny`. */
function reportUnknown({ key, field, draft }: KeyPlace): void {
  const meant = nearest(key.toLowerCase(), [...Object.keys(DOMAINS), ...TOOL_KEYS])
  const message = `\`${field}.${key}\` restricts nothing here but a tool of that name that a host may have`
  const hint = meant === undefined ? 'Correct its name, or remove it.' : `Did you mean \`${meant}\`?`
  draft.report.warning({ code: 'permission', message, line: draft.lineOf(field), hint })
}

function reportPorts(rules: readonly PermissionRule[], { key, field, draft }: KeyPlace): void {
  const patterns = rules.filter(({ pattern }) => namesPort(pattern)).map(({ pattern }) => `"${pattern}"`)
  if (patterns.length === 0) return
  draft.tightened(
    `\`${field}.${key}\`: ${patterns.join(', ')} names a port, and a rule is for all ports of a host; it restricts all of them and allows none`,
    field,
  )
}

function reportWider(rules: readonly PermissionRule[], { key, field, draft }: KeyPlace): void {
  const wider = rules.filter(({ pattern, action }) => action !== 'allow' && isWidened(pattern, key === 'webfetch'))
  if (wider.length === 0) return
  const patterns = wider.map(({ pattern }) => `"${pattern}"`).join(', ')
  draft.tightened(
    `\`${field}.${key}\`: ${patterns} restricts more than it says: there is no rule here for all that it says`,
    field,
  )
}

function tell(lost: readonly PermissionRule[], { key, field, draft }: KeyPlace): void {
  const patterns = lost.map(({ pattern }) => `"${pattern}"`).join(', ')
  draft.tightened(
    `\`${field}.${key}\`: ${patterns} cannot be excepted from a stricter rule; the stricter rule holds`,
    field,
  )
}
