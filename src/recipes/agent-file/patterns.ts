import type { Json } from '../../core/base/json.ts'
import { checkGrant, EVERYTHING, type Grant } from '../../core/grant/grant.ts'
import { meantPath, readRule, splitRule } from '../../core/grant/rule.ts'

const WORKSPACE = '/workspace'

/** The meaning of a leading slash to a program: the root of its project, or of the machine. */
export type Slash = 'project' | 'machine'

/**
 * Translates a path pattern of another program, whose star also matches slashes, into ours, whose star does not. A
 * denial may match more, a permission less; never the other way round. A pattern outside the project matches nothing
 * here; it is kept so that it can be written again.
 */
export function filePatterns(pattern: string, purpose: 'allow' | 'restrict', slash: Slash = 'project'): string[] {
  const patterns = purpose === 'allow' ? [pattern] : forbiddenPaths(pattern)
  const way = purpose === 'restrict' && isWidened(pattern) ? 'widen' : purpose
  return [...new Set(patterns.flatMap((one) => pathPatterns(one, way, slash)))]
}

/** How to translate a pattern: as a permission, as a denial, or as a denial of the whole folder that its stars are in. */
type Way = 'allow' | 'restrict' | 'widen'

function pathPatterns(pattern: string, purpose: Way, slash: Slash): string[] {
  const bare = pattern
    .trim()
    .replace(/^\.\/(?=[~/])/, `${WORKSPACE}/`)
    .replace(/^\.\//, '')
  if (bare === '' || bare === '*' || bare === '**') return ['**']
  const places = purpose === 'allow' ? [placeOf(bare, slash)] : placesOf(bare, slash)
  return places.flatMap((place) => inPlace(place, purpose))
}

/**
 * Translates a denied path. `sec/` is the folder and everything in it. A pattern with `..` or an exception denies
 * everything.
 */
function forbiddenPaths(pattern: string): string[] {
  return forbidden(pattern).map((one) => {
    if (EXCEPTION.test(one) || /^[./]*$/.test(one)) return '**'
    const plain = one.replaceAll(/(?<=[^/])\/{2,}/g, '/').replaceAll(/(?<=[^/])\/\.(?=\/|$)/g, '')
    return plain.endsWith('/') ? plain.replace(/\/+$/, '') : plain
  })
}

/** Matches exceptions and ways back: `!src`, `a/../b`. */
const EXCEPTION = /^!|(?:^|\/)\.\.(?:\/|$)/

/** Matches signs that our rules lack: `?`, `[a-z]`, `\\*` and unmatched braces. */
const SIGNS = /\\.?|\?|\[[^\]]*\]?|\{[^}]*\}?/gs

/** Tells whether a pattern denies more here than it says. In a host, brackets belong to the address. */
export function isWidened(pattern: string, isHost = false): boolean {
  const signs = isHost ? /[?\\{]/ : /[?\\{[]/
  const isStarry = (pattern.match(/(?<=[^/*])\*+(?=[^/*])/g)?.length ?? 0) > MOST_STARS
  return isStarry || EXCEPTION.test(pattern.trim()) || alternatives(pattern).some((one) => signs.test(one))
}

/** The most stars inside of words: each doubles the rules that a denied path needs. */
const MOST_STARS = 3

/** Translates a denied pattern; each sign that rules lack becomes a star. */
function forbidden(pattern: string): string[] {
  const bare = pattern.trim().replace(/^(["'])(.*)\1$/s, '$2')
  const meant = alternatives(bare).map((one) => one.replaceAll(SIGNS, '*'))
  // Some programs know no braces and treat them as part of the name.
  return meant.length === 1 ? meant : [...meant, bare.replaceAll(/\\.?|\?|\[[^\]]*\]?/gs, '*')]
}

/** Expands braces: `{a,b}/x` becomes `a/x` and `b/x`. */
function alternatives(pattern: string): string[] {
  const [, before, options, after] = /^([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)$/.exec(pattern) ?? []
  return options === undefined ? [pattern] : options.split(',').map((one) => `${before}${one.trim()}${after}`)
}

/**
 * Locates a path. `//etc` is never in the project, and the user's home has no place among a run's files: it stays `~`.
 */
function placeOf(bare: string, slash: Slash): string {
  if (/^~(?:\/|$)/.test(bare)) return bare
  if (bare.startsWith('//')) return bare.slice(1)
  if (bare.startsWith(`${WORKSPACE}/`) || (slash === 'machine' && bare.startsWith('/'))) return bare
  return `${WORKSPACE}/${bare.replace(/^\//, '')}`
}

/** Lists every possible meaning: a name without a slash in any folder, a path of the machine in the project too. */
function placesOf(bare: string, slash: Slash): string[] {
  if (!bare.includes('/') && bare !== '~') return [`${WORKSPACE}/**/${bare}`]
  const isUnclear = slash === 'machine' && /^\/[^/]/.test(bare)
  return isUnclear ? [placeOf(bare, 'project'), placeOf(bare, 'machine')] : [placeOf(bare, slash)]
}

/** Writes one of our patterns for another program, so that `filePatterns` reads it back. */
export function writtenPattern(pattern: string, slash: Slash): string {
  if (pattern === '**') return '*'
  if (pattern.startsWith('~')) return pattern
  if (!pattern.startsWith(`${WORKSPACE}/`)) return slash === 'project' ? `/${pattern}` : pattern
  const below = pattern.slice(WORKSPACE.length + 1)
  const [, name] = /^\*\*\/([^/]+)$/.exec(below) ?? []
  if (name !== undefined) return name
  // Without `./` it would mean the home folder or a folder of the machine.
  return /^[~/]/.test(below) ? `./${below}` : below
}

function inPlace(place: string, purpose: Way): string[] {
  const below = place.slice(WORKSPACE.length + 1).replace(/^\*\*\//, '')
  if (!place.replace('/**/', '/').includes('*')) return [place, `${place}/**`]
  if (place.startsWith(`${WORKSPACE}/`) && /^\*\.[\w.-]+$/.test(below)) return [`${WORKSPACE}/**/${below}`]
  const ending = /^([^*]*)\/\*{1,2}$/.exec(place)
  if (ending !== null) return [`${ending[1]}/**`]
  if (purpose === 'allow') return [place]
  if (purpose === 'restrict') return overSlashes(place).flatMap((one) => [one, `${one}/**`])
  return [`${place.slice(0, place.slice(0, place.indexOf('*')).lastIndexOf('/'))}/**`]
}

/** Writes the patterns that match what a pattern does whose stars match slashes too: `a*b` is `a*b` and `a*\/**\/*b`. */
function overSlashes(place: string): string[] {
  let made = ['']
  for (const segment of place.split('/').slice(1)) {
    made = made.flatMap((before) => segmentsOver(segment).map((one) => `${before}/${one}`))
  }
  return made.map((one) => one.replaceAll(/(?:\/\*\*)+(?=\/|$)/g, '/**').replace(/\/\*\*$/, ''))
}

function segmentsOver(segment: string): string[] {
  if (!segment.includes('*')) return [segment]
  const [first = '', ...rest] = segment.split(/\*+/)
  const last = rest.pop() ?? ''
  if (first === '' && last === '' && rest.length === 0) return ['**']
  let made = [first]
  for (const part of [...rest, last]) {
    // A star at either end of a segment reaches the next one in any case.
    const stars = part === '' ? ['*/**'] : made[0] === '' ? ['**/*'] : ['*', '*/**/*']
    made = made.flatMap((before) => stars.map((star) => `${before}${star}${part}`))
  }
  return made
}

/** Translates a command pattern. `git:*` and `git *` both mean the command with or without arguments. */
export function commandPatterns(pattern: string, purpose: 'allow' | 'restrict'): string[] {
  return purpose === 'allow' ? wholeCommand(pattern) : forbiddenCommands(pattern).flatMap(wholeCommand)
}

/**
 * Translates a denied command. Program names contain no colon, so the part after it selects command lines. A quoted
 * star is literal.
 */
function forbiddenCommands(pattern: string): string[] {
  if (isWidened(pattern) && /["'\\]/.test(pattern)) return ['*']
  return forbidden(pattern).map((one) => one.replace(/:\s*\*?$/, ':*').replace(/^([^\s:*=]+):(?!\*$).*$/s, '$1:*'))
}

/** Translates a pattern for names, where a star matches anything. */
export function namePatterns(pattern: string, purpose: 'allow' | 'restrict'): string[] {
  return purpose === 'allow' ? [pattern] : forbidden(pattern)
}

function wholeCommand(pattern: string): string[] {
  const bare = pattern.trim()
  if (bare === '' || bare === '*') return ['*']
  const [, command] = /^(.*?)(?::\*| \*)$/.exec(bare) ?? []
  return command === undefined || command === '' ? [bare] : [command, `${command} *`]
}

/**
 * Translates `domain:example.com`, a host or an address to the host, which is what rules decide on. A rule covers all
 * ports of a host: one port can be denied only with the others, and cannot be allowed without them.
 */
export function hostPatterns(pattern: string, purpose: 'allow' | 'restrict'): string[] {
  const { host, port } = addressIn(pattern)
  if (purpose === 'allow') return port === null ? [host === '' ? '*' : host] : []
  // A part that is not a port may be the host.
  if (host === '' || (port !== null && !/^\d+$/.test(port))) return ['*']
  return [host.replaceAll(/\\.?|\?|\{[^}]*\}?/g, '*')]
}

/** Tells whether a pattern names one port of a host. */
export function namesPort(pattern: string): boolean {
  return addressIn(pattern).port !== null
}

interface Address {
  readonly host: string
  /** Null for no port and for a star, which means every port. */
  readonly port: string | null
}

function addressIn(pattern: string): Address {
  const bare = pattern
    .trim()
    .replace(/^(["'])(.*)\1$/s, '$2')
    .replace(/^domain:\s*/i, '')
    .replace(/^[a-z]+:\/\//i, '')
  const whole = bare.split('/', 1)[0] ?? ''
  // Colons inside a host belong to IPv6, which is in brackets if a port follows.
  const [, host = whole, port = null] = /^([^:]*|\[.*\]):([^:\]]*)$/.exec(whole) ?? []
  return { host, port: port === '*' || port === '' ? null : port }
}

type Domain = 'tool' | 'agent' | 'exec' | 'net' | 'file.list' | 'file.read' | 'file.write' | 'file.delete'

/** The access a file always needs: that of its own MCP servers. */
export interface OwnNeeds {
  readonly exec: readonly string[]
  readonly net: readonly string[]
}

/** The most rules of one file: they are compared with each other. */
export const MOST_RULES = 500

/**
 * Collects what a file denies, asks about, or limits itself to. Everything in it can only narrow: what it leaves free matters
 * only where whoever runs the file takes it over. A list that is longer
 * than a file may have grows no further: the file is refused.
 */
export class Narrowing {
  private readonly denied = new Set<string>()
  private readonly asked = new Set<string>()
  private readonly only = new Map<Domain, Set<string>>()
  private freed: readonly string[] = []

  deny(rules: readonly string[]): void {
    for (const rule of rules) if (this.denied.size <= MOST_RULES) this.denied.add(strict(rule))
  }

  ask(rules: readonly string[]): void {
    for (const rule of rules) if (this.asked.size <= MOST_RULES) this.asked.add(strict(rule))
  }

  /** Limits a domain to these patterns. Two lists narrow each other. */
  allowOnly(domain: Domain, patterns: readonly string[]): void {
    const known = this.only.get(domain) ?? new Set()
    for (const rule of patterns.map((pattern) => `${domain}:${pattern}`)) {
      if (known.size <= MOST_RULES && isReadable(rule)) known.add(rule)
    }
    this.only.set(domain, known)
  }

  /** Leaves the programs that the file names one by one free: whoever runs the file is not asked about them. */
  freePrograms(): void {
    // A pattern in place of the program names none.
    this.freed = [...(this.only.get('exec') ?? [])].filter(
      (rule) => isOfOneProgram(rule) && !/^exec:\s*[*?]/.test(rule),
    )
  }

  /** The programs that `freePrograms` found, as rules. */
  freedPrograms(): readonly string[] {
    return [...this.freed].sort()
  }

  /** Denies changes to files and all programs. */
  readOnly(): void {
    this.denyChanges()
    this.deny(['exec:*'])
  }

  denyChanges(): void {
    this.deny(['file.write:**', 'file.delete:**'])
  }

  /** Denies everything but calls of the model. */
  denyAll(): void {
    this.readOnly()
    this.deny(['tool:*', 'agent:*', 'net:*', 'file.list:**', 'file.read:**'])
  }

  /** Builds the grant; null if the file said nothing. */
  grant(needs: OwnNeeds): Grant | null {
    this.keep('exec', needs.exec)
    this.keep('net', needs.net)
    // A search starts at the top folder; it shows only the listed parts.
    if (this.only.has('file.list')) this.allowOnly('file.list', ['/workspace'])
    // If single programs are restricted, command lines for a shell are asked about: rules cannot see the programs in
    // them.
    if (!this.only.has('exec') && [...this.denied, ...this.asked].some(isOfOneProgram)) this.asked.add(SHELL_LINES)
    const isSilent = this.denied.size === 0 && this.asked.size === 0 && this.only.size === 0
    if (isSilent) return null
    return {
      ...(this.only.size === 0 ? {} : { use: this.use() }),
      ...(this.asked.size === 0 ? {} : { ask: [...this.asked].sort() }),
      ...(this.freed.length === 0 ? {} : { free: [...this.freed].sort() }),
      ...(this.denied.size === 0 ? {} : { deny: [...this.denied].sort() }),
    }
  }

  /** Denies a whole domain except what the file itself needs, and adds that to its own list if it has one. */
  private keep(domain: 'exec' | 'net', needed: readonly string[]): void {
    if (needed.length === 0) return
    if (this.denied.delete(`${domain}:*`)) {
      this.only.set(domain, new Set())
      if (domain === 'exec') this.denied.add('tool:shell')
    }
    if (this.only.has(domain)) this.allowOnly(domain, needed)
  }

  /** Allows everything except domains that have a list of their own. */
  private use(): string[] {
    const rest = EVERYTHING.flatMap((rule) => (rule.startsWith('file.*:') ? FILES : [rule])).filter((rule) => {
      return ![...this.only.keys()].some((domain) => rule.startsWith(`${domain}:`))
    })
    return [...rest, ...[...this.only.values()].flatMap((rules) => [...rules].sort())]
  }
}

/** Command lines with pipes, lists or variables. A rule about a program cannot see the programs in them. */
const SHELL_LINES = 'exec:sh -c *'

function isOfOneProgram(rule: string): boolean {
  return rule.startsWith('exec:') && rule !== 'exec:*'
}

/** Widens a denial that cannot be parsed to its whole domain. */
function strict(rule: string): string {
  return isReadable(rule) ? rule : `${splitRule(rule).domain}:**`
}

function isReadable(rule: string): boolean {
  try {
    checkGrant({ use: [rule] }, '')
    return true
  } catch {
    return false
  }
}

const FILES = ['file.list:**', 'file.read:**', 'file.write:**', 'file.delete:**']

/**
 * Reads the file rules of a grant that can never match. One that restricts is read as what it means where that is clear,
 * and else restricts its whole domain; one that allows is left out.
 */
export function readPaths(grant: Json | undefined, tell: (message: string) => void): Json | undefined {
  if (typeof grant !== 'object' || grant === null || Array.isArray(grant)) return grant
  const lists = Object.entries(grant).map(([list, rules]): [string, Json] => {
    if (!Array.isArray(rules)) return [list, rules]
    const read = list === 'deny' || list === 'ask' ? restrictedPaths : allowedPaths
    const different = new Set(rules)
    // The file is refused for so many.
    if (different.size > MOST_RULES) return [list, rules]
    const made = [...different].flatMap((rule): Json[] => (isPathInTrouble(rule) ? read(rule, tell) : [rule]))
    return [list, [...new Set(made)]]
  })
  return Object.fromEntries(lists)
}

function isPathInTrouble(rule: Json): rule is string {
  if (typeof rule !== 'string' || !/^file\.(?:list|read|write|delete|\*):./.test(rule)) return false
  return readRule(rule).trouble !== null || alternatives(rule).length > 1
}

function restrictedPaths(rule: string, tell: (message: string) => void): string[] {
  const options = alternatives(rule)
  if (options.length === 1) return [restrictedPath(rule, tell)]
  tell(`the rule "${rule}" is read as "${options.join('", "')}" and as the name itself: rules know no {a,b}`)
  return [rule, ...options].map((one) => restrictedPath(one, tell))
}

function restrictedPath(rule: string, tell: (message: string) => void): string {
  const { trouble } = readRule(rule)
  if (trouble === null) return rule
  const { domain, pattern } = splitRule(rule)
  const meant = pattern.includes('/') || pattern === '*' ? meantPath(pattern.trim()) : undefined
  // A path without stars may be a folder, which is meant with all below it.
  const whole = meant === undefined || meant.includes('*') ? meant : `${meant}/**`
  const taken = `${domain}:${whole ?? '**'}`
  tell(`the rule "${rule}" ${trouble}; it is taken as "${taken}"`)
  return taken
}

function allowedPaths(rule: string, tell: (message: string) => void): string[] {
  if (readRule(rule).trouble === null) return [rule]
  tell(`the rule "${rule}" ${readRule(rule).trouble}; it allows nothing`)
  return []
}
