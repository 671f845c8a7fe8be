import { matchName } from '../../grant/match.ts'
import { own } from '../text/own.ts'
import type { Tree } from '../text/tree.ts'
import type { Draft } from './draft.ts'
import { commandPatterns, filePatterns, hostPatterns } from './patterns.ts'
import { serverTool } from './tool-lists.ts'

type Action = 'allow' | 'ask' | 'deny'

interface Said {
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

const files = (...domains: Domain['domains']): Domain => ({ domains, patterns: filePatterns })
const names: Domain['patterns'] = (pattern) => [pattern]

const DOMAINS: Readonly<Record<string, Domain>> = {
  edit: files('file.write', 'file.delete'),
  write: files('file.write', 'file.delete'),
  read: files('file.read'),
  list: files('file.list'),
  glob: files('file.list'),
  grep: files('file.read'),
  bash: { domains: ['exec'], patterns: commandPatterns },
  webfetch: { domains: ['net'], patterns: hostPatterns },
  websearch: { domains: ['net'], patterns: hostPatterns },
  task: { domains: ['agent'], patterns: names },
}

/**
 * Permissions in which the last match wins, as rules in which order does not matter. What cannot be said that way is made
 * stricter, and told.
 */
export function readPermission(tree: Tree, draft: Draft): void {
  if (tree.kind === 'leaf') {
    const action = actionOf(tree, 'permission', draft)
    if (action !== undefined && action !== 'allow')
      for (const key of Object.keys(DOMAINS)) apply(key, [{ pattern: '*', action }], draft)
    return
  }
  if (tree.kind !== 'map') return
  for (const [key, { value }] of tree.entries) apply(key, rulesOf(value, key, draft), draft)
}

function rulesOf(tree: Tree, key: string, draft: Draft): Said[] {
  if (tree.kind === 'leaf') {
    const action = actionOf(tree, key, draft)
    return action === undefined ? [] : [{ pattern: '*', action }]
  }
  if (tree.kind !== 'map') return []
  return [...tree.entries].flatMap(([pattern, { value }]) => {
    const action = actionOf(value, key, draft)
    return action === undefined ? [] : [{ pattern, action }]
  })
}

/** What is no known word forbids: a misspelt restriction must not pass for none. */
function actionOf(tree: Tree, key: string, draft: Draft): Action | undefined {
  const text = tree.kind === 'leaf' ? tree.text : ''
  if (text === 'allow' || text === 'ask' || text === 'deny') return text
  draft.tightened(`\`permission.${key}\` is neither allow, ask nor deny; it is taken as deny`, 'permission')
  return 'deny'
}

function apply(key: string, said: readonly Said[], draft: Draft): void {
  const domain = own(DOMAINS, key) ?? (key === 'skill' ? SKILL : toolDomain(key))
  const base = said.findLastIndex(({ pattern }) => pattern === '*' || pattern === '**')
  const action = said[base]?.action ?? 'allow'
  const later = said.slice(base + 1)
  const put = (list: 'ask' | 'deny', pattern: string): void => {
    for (const one of domain.domains) {
      draft.narrowing[list](...domain.patterns(pattern, 'restrict').map((rule) => `${one}:${rule}`))
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

interface Applying {
  readonly key: string
  readonly draft: Draft
  readonly put: (list: 'ask' | 'deny', pattern: string) => void
}

/** Everything is forbidden but what comes after. */
function onlySome(later: readonly Said[], domain: Domain, { key, draft, put }: Applying): void {
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

/** Is there a stricter rule before it that it takes something back from? */
function isBound({ pattern }: Said, before: readonly Said[]): boolean {
  return before.some(
    (other) => other.action !== 'allow' && (matchName(other.pattern, pattern) || matchName(pattern, other.pattern)),
  )
}

function tell(lost: readonly Said[], key: string, draft: Draft): void {
  const patterns = lost.map(({ pattern }) => `"${pattern}"`).join(', ')
  draft.tightened(
    `\`permission.${key}\`: ${patterns} cannot be excepted from a stricter rule; the stricter rule holds`,
    'permission',
  )
}

const SKILL: Domain = { domains: ['tool'], patterns: () => ['skills_*'] }

function toolDomain(key: string): Domain {
  return { domains: ['tool'], patterns: () => [serverTool(key)] }
}
