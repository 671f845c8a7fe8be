import { isRecord, type Json } from '../../base/json.ts'
import { nearest } from '../../base/options.ts'
import { matchName } from '../../grant/match.ts'
import type { AgentFileWriter } from '../agent-file/agent-file-writer.ts'
import type { AgentFileDraft } from '../agent-file/draft.ts'
import { correctKeys, nameBelowAgents, nameByPath } from '../agent-file/names.ts'
import {
  commandPatterns,
  filePatterns,
  hostPatterns,
  isWidened,
  MOST_RULES,
  namePatterns,
  namesPort,
} from '../agent-file/patterns.ts'
import {
  CHECKLIST,
  domainsUsed,
  FIND,
  LIST,
  missingTools,
  READ,
  SEARCH,
  SKILLS,
  serverTools,
  toolsForbidden,
} from '../agent-file/tool-words.ts'
import { ownValue } from '../text/fields.ts'
import type { TextEntry, TextList, TextMap, TextTree } from '../text/tree.ts'
import type { AgentDialect } from './dialect.ts'

export const opencode: AgentDialect = {
  name: 'opencode',
  folders: ['.opencode/agent', '.opencode/agents'],
  homeFolders: ['.config/opencode/agent', '.config/opencode/agents'],
  place: '.opencode/agent',
  ending: '.md',
  signs: ['mode', 'permission', 'steps', 'maxSteps', 'hidden', 'disable', 'top_p'],
  isLike: (fields) => fields.get('tools')?.kind === 'map',
  isDescribed: false,
  models: 'all',
  toolWords: {
    read: READ,
    write: ['write_file'],
    edit: ['edit_file', 'write_file'],
    patch: ['edit_file', 'write_file', 'delete_file'],
    apply_patch: ['edit_file', 'write_file', 'delete_file'],
    grep: SEARCH,
    glob: FIND,
    list: LIST,
    bash: ['shell'],
    todowrite: CHECKLIST,
    todoread: ['todo_read'],
    skill: SKILLS,
    webfetch: ['web_fetch'],
    websearch: ['web_search'],
    ...missingTools('codesearch', 'lsp', 'question'),
  },
  slash: 'machine',
  serverWord: (server, tool) => `${server}_${tool}`,
  serverTools: (word) => serverTools(word) ?? underscored(word),
  read(draft) {
    draft.common()
    const isNested = /\/\.?opencode\/agents?\//.test(draft.report.file)
    if (draft.agent.name === '') draft.agent.name = (isNested ? nameBelowAgents : nameByPath)(draft.report.file)
    readToolMap(draft)
    draft.servers('mcp')
    draft.sampling()
    const permission = draft.tree('permission')
    if (permission !== undefined) readPermission(permission, draft)
    draft.limit('modelCalls', draft.number('steps', 'maxSteps'), 'steps')
    const mode = draft.text('mode')
    draft.agent.isHidden = draft.flag('hidden')
    if (mode === 'primary')
      draft.report.note({ code: 'ignored', message: '`mode: primary`: it may be a subagent here too' })
    draft.keep('color', 'variant')
    draft.agent.instructions ||= draft.text('prompt') ?? ''
  },
  write(writing) {
    const { agent } = writing
    const { name: _, ...common } = writing.common()
    return {
      ...common,
      mode: 'subagent',
      ...writing.sampling('top_p'),
      steps: agent.budget?.modelCalls,
      tools: toolMap(writing),
      permission: permissions(writing),
      mcp: localServers(writing.servers({ timeout: 'timeout' })),
      hidden: agent.isHidden || undefined,
      disable: agent.isDisabled || undefined,
    }
  },
}

/** Writes a program and its arguments as one list, as this dialect does. */
function localServers(servers: Json | undefined): Json | undefined {
  if (!isRecord(servers)) return servers
  const entries = Object.entries(servers).map(([name, server]) => {
    if (!isRecord(server) || typeof server['command'] !== 'string') return [name, server] as const
    const { command, args, env, ...others } = server
    const words = [command, ...(Array.isArray(args) ? args : [])]
    return [name, { type: 'local', command: words, ...(env === undefined ? {} : { environment: env }), ...others }]
  })
  return Object.fromEntries(entries)
}

/** Reads `srv_do` as the tool `do` of the server `srv`, or as a tool of that very name. */
function underscored(word: string): readonly string[] | undefined {
  const [, server, tool] = /^([^_]+)_([^_].*)$/.exec(word) ?? []
  return server === undefined ? undefined : [word, `${server}__${tool}`]
}

/** Reads `{ "*": false, "github-search": true }`: with a false star, the rest is the list of allowed tools. */
function readToolMap(draft: AgentFileDraft): void {
  const tree = draft.tree('tools')
  if (tree?.kind !== 'map') return draft.allowTools('tools')
  const flags = [...tree.entries].map(([name, { value }]) => ({
    name,
    isOn: value.kind === 'leaf' && value.value === true,
  }))
  const isList = flags.some(({ name, isOn }) => name === '*' && !isOn)
  const words = (isOn: boolean) => flags.filter((one) => one.isOn === isOn && one.name !== '*').map(({ name }) => name)
  if (isList) draft.allowWords(words(true), 'tools')
  draft.denyWords(words(false), 'tools')
}

function toolMap(writing: AgentFileWriter): Json | undefined {
  const words = writing.toolList('task')
  const on = words === undefined ? [] : [['*', false] as const, ...words.map((word) => [word, true] as const)]
  const off = writing.deniedWords().map((word) => [word, false] as const)
  const all = [...on, ...off]
  return all.length === 0 ? undefined : Object.fromEntries(all)
}

const PERMISSIONS = [
  ['bash', 'exec'],
  ['edit', 'file.write'],
  ['read', 'file.read'],
  ['list', 'file.list'],
  ['webfetch', 'net'],
  ['task', 'agent'],
] as const

/** Writes permissions. The last match wins, so first come allowed, then asked, then denied patterns. */
function permissions(writing: AgentFileWriter): Json | undefined {
  const entries = PERMISSIONS.flatMap(([key, domain]): [string, Json][] => {
    const only = writing.only(domain)
    const rules: [string, Json][] = [
      ...(only ?? []).map((pattern): [string, Json] => [pattern, 'allow']),
      ...writing.asked(domain).map((pattern): [string, Json] => [pattern, 'ask']),
      ...writing.denied(domain).map((pattern): [string, Json] => [pattern, 'deny']),
    ]
    const [first] = rules
    if (first === undefined) return only === null ? [] : [[key, 'deny']]
    if (only === null && rules.length === 1 && first[0] === '*') return [[key, first[1]]]
    return [[key, Object.fromEntries([['*', only === null ? 'allow' : 'deny'], ...rules])]]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

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
  webfetch: { domains: ['net'], patterns: hostPatterns },
  task: { domains: ['agent'], patterns: namePatterns },
}

/**
 * Translates permissions, where the last match wins, into rules, where order does not matter. What rules cannot express
 * becomes stricter and is reported.
 */
function readPermission(tree: TextTree, draft: AgentFileDraft): void {
  if (tree.kind === 'leaf') return applyToAll(actionOf(tree, 'permission', draft), new Map(), draft)
  if (tree.kind === 'list') return readPermissionList(tree, draft)
  const isOpen = !tree.entries.has('*')
  const meant = correctKeys(
    tree,
    (key) => (isOpen || !mayAllow(tree.entries.get(key)?.value) ? meantKey(key, draft) : undefined),
    (key, right) => draft.tightened(`\`permission.${key}\` is read as \`permission.${right}\``, 'permission'),
  )
  readPermissionMap(meant, draft)
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

function readPermissionMap(tree: TextMap, draft: AgentFileDraft): void {
  const keys = [...tree.entries.keys()]
  // A star overrules everything before it.
  const base = keys.lastIndexOf('*')
  const later = new Map([...tree.entries].slice(base + 1).map(([key, { value }]) => [key, rulesOf(value, key, draft)]))
  const star = base === -1 ? undefined : tree.entries.get('*')?.value
  const action = star === undefined ? 'allow' : actionOf(star, '*', draft)
  for (const [key, { value }] of [...tree.entries].slice(0, Math.max(base, 0))) {
    const lost = rulesOf(value, key, draft).filter((rule) => rule.action !== action)
    const strict = lost.find((rule) => isStricter(rule.action, action)) ?? lost[0]
    if (strict !== undefined) warnOverruled(`permission.${key}`, { place: 'permission', rule: strict, action }, draft)
  }
  if (star !== undefined) applyToAll(action, later, draft)
  const agents = later.get('task')?.filter((rule) => rule.action !== 'deny') ?? []
  if (agents.length > 0) draft.agent.reaches = agents.map(({ pattern }) => pattern)
  for (const [key, rules] of later) apply(key, [{ pattern: '*', action }, ...rules], draft)
}

/** Merges a list of maps into one map; later maps come last. */
function readPermissionList({ items, line }: TextList, draft: AgentFileDraft): void {
  const entries = new Map<string, TextEntry>()
  for (const [key, entry] of items.flatMap((item) => (item.kind === 'map' ? [...item.entries] : []))) {
    entries.delete(key)
    entries.set(key, entry)
  }
  const isWhole = items.every(({ kind }) => kind === 'map')
  const taken = isWhole ? 'its maps are read as one' : 'it is taken as deny'
  draft.tightened(`\`permission\` is a list; ${taken}`, 'permission')
  if (isWhole) readPermission({ kind: 'map', entries, line }, draft)
  else applyToAll('deny', new Map(), draft)
}

/** Applies one word to everything that has no word of its own. */
function applyToAll(
  action: Action,
  others: ReadonlyMap<string, readonly PermissionRule[]>,
  draft: AgentFileDraft,
): void {
  if (action === 'allow') return
  const named = new Set([...others.keys()].flatMap((key) => ownValue(DOMAINS, key)?.domains ?? []))
  const open = [...others].filter(([, rules]) => rules.some((rule) => rule.action !== 'deny')).map(([key]) => key)
  const tools = new Set(open.flatMap((key) => (key === 'task' ? DELEGATION_TOOLS : draft.toolsNamed(key))))
  const used: ReadonlySet<string> = domainsUsed([...tools])
  const toolKeys = [...TOOL_KEYS]
  for (const [key, { domains }] of Object.entries(DOMAINS)) {
    if (domains.some((domain) => named.has(domain))) continue
    // If an open tool works with this domain, the domain stays open and only the tools of the key are restricted.
    if (key === 'list' || domains.some((domain) => used.has(domain))) toolKeys.push(key)
    else apply(key, [{ pattern: '*', action }], draft)
  }
  if (action === 'deny') return draft.narrowing.allowOnly('tool', [...tools])
  const asked = [...toolKeys.flatMap((key) => draft.toolsNamed(key)), '*__*'].filter((tool) => !tools.has(tool))
  draft.narrowing.ask(asked.map((tool) => `tool:${tool}`))
}

/** Keys about a tool rather than a domain. */
const TOOL_KEYS = ['grep', 'glob', 'todowrite', 'todoread', 'skill', 'websearch', 'codesearch', 'lsp']
const DELEGATION_TOOLS = ['subagent', 'delegate', 'Agent', 'load']

function rulesOf(tree: TextTree, key: string, draft: AgentFileDraft): PermissionRule[] {
  if (tree.kind !== 'map') return [{ pattern: '*', action: actionOf(tree, key, draft) }]
  if (tree.entries.size > MOST_RULES) {
    draft.tooManyRules(tree.line)
    return [{ pattern: '*', action: 'deny' }]
  }
  return [...tree.entries].map(([pattern, { value }]) => ({ pattern, action: actionOf(value, key, draft) }))
}

/** Treats an unknown word as a denial: a misspelt restriction must not count as none. */
function actionOf(tree: TextTree, key: string, draft: AgentFileDraft): Action {
  const text = tree.kind === 'leaf' ? tree.text : ''
  if (text === 'allow' || text === 'ask' || text === 'deny') return text
  draft.tightened(`\`permission.${key}\` is neither allow, ask nor deny; it is taken as deny`, 'permission')
  return 'deny'
}

function apply(key: string, rules: readonly PermissionRule[], draft: AgentFileDraft): void {
  const domain = ownValue(DOMAINS, key)
  // Programs and searches list folders too, so this word restricts only its own tools.
  const isOfTools = domain === undefined || (key === 'list' && rules.every(({ pattern }) => pattern === '*'))
  if (isOfTools) return applyToTool(key, rules, draft)
  if (domain.domains.includes('net')) reportPorts(rules, key, draft)
  reportWider(rules, key, draft)
  const base = rules.findLastIndex(({ pattern }) => pattern === '*' || pattern === '**')
  const action = rules[base]?.action ?? 'allow'
  const later = rules.slice(base + 1)
  warnEarlier(rules.slice(1, Math.max(base, 1)), action, { key, draft })
  const put = (list: 'ask' | 'deny', pattern: string): void => {
    for (const one of domain.domains) {
      draft.narrowing[list](domain.patterns(pattern, 'restrict').map((rule) => `${one}:${rule}`))
    }
  }
  if (action === 'deny') return onlySome(later, domain, { key, draft, put })
  if (action === 'ask') put('ask', '*')
  for (const { pattern, action: own } of later) if (own !== 'allow') put(own, pattern)
  const lost = later.filter(
    (rule, at) => rule.action === 'allow' && (action === 'ask' || isBound(rule, later.slice(0, at))),
  )
  if (lost.length > 0) tell(lost, key, draft)
}

/** Applies the strictest word of all patterns to the whole tool, because rules cannot see arguments of tools. */
function applyToTool(key: string, rules: readonly PermissionRule[], draft: AgentFileDraft): void {
  // A star overrules everything before it.
  const base = rules.findLastIndex(({ pattern }) => pattern === '*')
  const live = rules.slice(base)
  warnEarlier(rules.slice(1, Math.max(base, 1)), live[0]?.action ?? 'allow', { key, draft })
  const has = (action: Action) => live.some((rule) => rule.action === action)
  if (!has('deny') && !has('ask')) return
  if (!draft.isToolWord(key)) reportUnknown(key, draft)
  const tools = toolsForbidden(key, draft.toolsNamed(key)).map((tool) => `tool:${tool}`)
  draft.narrowing[has('deny') ? 'deny' : 'ask'](tools)
  const lost = live.slice(1).filter(({ action }) => action === 'allow' || (action === 'ask' && has('deny')))
  if (lost.length > 0) tell(lost, key, draft)
}

interface PermissionPlace {
  readonly key: string
  readonly draft: AgentFileDraft
}

interface PermissionTarget extends PermissionPlace {
  readonly put: (list: 'ask' | 'deny', pattern: string) => void
}

/** Denies everything except the later patterns. */
function onlySome(later: readonly PermissionRule[], domain: Domain, { key, draft, put }: PermissionTarget): void {
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
  if (lost.length > 0) tell(lost, key, draft)
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
function warnEarlier(earlier: readonly PermissionRule[], action: Action, { key, draft }: PermissionPlace): void {
  for (const rule of earlier.filter((one) => one.action !== action)) {
    warnOverruled(`permission.${key}."${rule.pattern}"`, { place: `permission.${key}`, rule, action }, draft)
  }
}

interface StarAfter {
  readonly place: string
  readonly rule: PermissionRule
  /** The word of the star. */
  readonly action: Action
}

function warnOverruled(name: string, { place, rule, action }: StarAfter, draft: AgentFileDraft): void {
  const what = isStricter(rule.action, action) ? 'restricts' : 'allows'
  const message = `\`${name}\` ${what} nothing: \`${place}."*"\` comes after it, and the last match wins`
  const hint = 'Put "*" first.'
  draft.report.warning({ code: 'permission', message, line: draft.lineOf('permission'), hint })
}

/** Reports an unknown key such as `edits: deny`. */
function reportUnknown(key: string, draft: AgentFileDraft): void {
  const meant = nearest(key.toLowerCase(), [...Object.keys(DOMAINS), ...TOOL_KEYS])
  const message = `\`permission.${key}\` restricts nothing here but a tool of that name that a host may have`
  const hint = meant === undefined ? 'Correct its name, or remove it.' : `Did you mean \`${meant}\`?`
  draft.report.warning({ code: 'permission', message, line: draft.lineOf('permission'), hint })
}

function reportPorts(rules: readonly PermissionRule[], key: string, draft: AgentFileDraft): void {
  const patterns = rules.filter(({ pattern }) => namesPort(pattern)).map(({ pattern }) => `"${pattern}"`)
  if (patterns.length === 0) return
  draft.tightened(
    `\`permission.${key}\`: ${patterns.join(', ')} names a port, and a rule is for all ports of a host; it restricts all of them and allows none`,
    'permission',
  )
}

function reportWider(rules: readonly PermissionRule[], key: string, draft: AgentFileDraft): void {
  const wider = rules.filter(({ pattern, action }) => action !== 'allow' && isWidened(pattern, key === 'webfetch'))
  if (wider.length === 0) return
  const patterns = wider.map(({ pattern }) => `"${pattern}"`).join(', ')
  draft.tightened(
    `\`permission.${key}\`: ${patterns} restricts more than it says: there is no rule here for all that it says`,
    'permission',
  )
}

function tell(lost: readonly PermissionRule[], key: string, draft: AgentFileDraft): void {
  const patterns = lost.map(({ pattern }) => `"${pattern}"`).join(', ')
  draft.tightened(
    `\`permission.${key}\`: ${patterns} cannot be excepted from a stricter rule; the stricter rule holds`,
    'permission',
  )
}
