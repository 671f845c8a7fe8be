import { checkGrant, EVERYTHING, type Grant } from '../../grant/grant.ts'
import { splitRule } from '../../grant/rule.ts'

const WORKSPACE = '/workspace'

/** What a path that begins with a slash is below, for a program: its project, or all of the machine. */
export type Slash = 'project' | 'machine'

/**
 * A path pattern of another program, whose star also stands for slashes, as patterns of ours, whose star does not. To
 * forbid, it may match more; to allow, it may match less; never the other way round. A place outside of the project has
 * nothing that can be reached here: its pattern is kept to be written again.
 */
export function filePatterns(pattern: string, purpose: 'allow' | 'restrict', slash: Slash = 'project'): string[] {
  const patterns = purpose === 'allow' ? [pattern] : forbiddenPaths(pattern)
  return [...new Set(patterns.flatMap((one) => pathPatterns(one, purpose, slash)))]
}

function pathPatterns(pattern: string, purpose: 'allow' | 'restrict', slash: Slash): string[] {
  const bare = pattern
    .trim()
    .replace(/^\.\/(?=[~/])/, `${WORKSPACE}/`)
    .replace(/^\.\//, '')
  if (bare === '' || bare === '*' || bare === '**') return ['**']
  const places = purpose === 'allow' ? [placeOf(bare, slash)] : placesOf(bare, slash)
  return places.flatMap((place) => inPlace(place, purpose))
}

/** `sec/` is the folder and all that is in it. A way back, or a pattern that takes something back, stands for everything. */
function forbiddenPaths(pattern: string): string[] {
  return forbidden(pattern).map((one) => {
    if (EXCEPTION.test(one) || /^[./]*$/.test(one)) return '**'
    const plain = one.replaceAll(/(?<=[^/])\/{2,}/g, '/').replaceAll(/(?<=[^/])\/\.(?=\/|$)/g, '')
    return plain.endsWith('/') ? plain.replace(/\/+$/, '') : plain
  })
}

/** `!src`, `a/../b`. */
const EXCEPTION = /^!|(?:^|\/)\.\.(?:\/|$)/

/** `?`, `[a-z]`, `\\*` and what is left of braces: signs of other programs that a rule has not. */
const SIGNS = /\\.?|\?|\[[^\]]*\]?|\{[^}]*\}?/gs

/** Does a pattern forbid more here than it says? Where it names a host, brackets are those of an address. */
export function isWidened(pattern: string, isHost = false): boolean {
  const signs = isHost ? /[?\\{]/ : /[?\\{[]/
  return EXCEPTION.test(pattern.trim()) || alternatives(pattern).some((one) => signs.test(one))
}

/** What a pattern forbids, with a star for each sign that there is not here. */
function forbidden(pattern: string): string[] {
  const bare = pattern.trim().replace(/^(["'])(.*)\1$/s, '$2')
  const meant = alternatives(bare).map((one) => one.replaceAll(SIGNS, '*'))
  // Not every program has braces: there they are part of a name.
  return meant.length === 1 ? meant : [...meant, bare.replaceAll(/\\.?|\?|\[[^\]]*\]?/gs, '*')]
}

/** `{a,b}/x` is `a/x` and `b/x`. */
function alternatives(pattern: string): string[] {
  const [, before, options, after] = /^([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)$/.exec(pattern) ?? []
  return options === undefined ? [pattern] : options.split(',').map((one) => `${before}${one.trim()}${after}`)
}

/** `//etc` is never below the project. The home folder of the user has no place among the files of a run: it stays `~`. */
function placeOf(bare: string, slash: Slash): string {
  if (/^~(?:\/|$)/.test(bare)) return bare
  if (bare.startsWith('//')) return bare.slice(1)
  if (bare.startsWith(`${WORKSPACE}/`) || (slash === 'machine' && bare.startsWith('/'))) return bare
  return `${WORKSPACE}/${bare.replace(/^\//, '')}`
}

/** All that may be meant: a name without a slash is meant in every folder, and a place of the machine in the project too. */
function placesOf(bare: string, slash: Slash): string[] {
  if (!/[/*]/.test(bare) && bare !== '~') return [`${WORKSPACE}/**/${bare}`]
  const isUnclear = slash === 'machine' && /^\/[^/]/.test(bare)
  return isUnclear ? [placeOf(bare, 'project'), placeOf(bare, 'machine')] : [placeOf(bare, slash)]
}

/** A pattern of ours as another program writes it: what `filePatterns` makes one of. */
export function writtenPattern(pattern: string, slash: Slash): string {
  if (pattern === '**') return '*'
  if (pattern.startsWith('~')) return pattern
  if (!pattern.startsWith(`${WORKSPACE}/`)) return slash === 'project' ? `/${pattern}` : pattern
  const below = pattern.slice(WORKSPACE.length + 1)
  const [, name] = /^\*\*\/([^/]+)$/.exec(below) ?? []
  if (name !== undefined) return name
  // Else it would be taken for the home folder, or for one of the machine.
  return /^[~/]/.test(below) ? `./${below}` : below
}

function inPlace(place: string, purpose: 'allow' | 'restrict'): string[] {
  const below = place.slice(WORKSPACE.length + 1)
  if (!place.replace('/**/', '/').includes('*')) return [place, `${place}/**`]
  if (place.startsWith(`${WORKSPACE}/`) && /^\*\.[\w.-]+$/.test(below)) return [`${WORKSPACE}/**/${below}`]
  const ending = /^([^*]*)\/\*{1,2}$/.exec(place)
  if (ending !== null) return [`${ending[1]}/**`]
  if (purpose === 'allow') return [place]
  return [`${place.slice(0, place.slice(0, place.indexOf('*')).lastIndexOf('/'))}/**`]
}

/** `git:*` and `git *` are the same: the command, with or without more behind it. */
export function commandPatterns(pattern: string, purpose: 'allow' | 'restrict'): string[] {
  return purpose === 'allow' ? wholeCommand(pattern) : forbiddenCommands(pattern).flatMap(wholeCommand)
}

/** No program has a colon in its name: what stands behind it says which of its command lines. In quotes a star is no sign. */
function forbiddenCommands(pattern: string): string[] {
  if (isWidened(pattern) && /["'\\]/.test(pattern)) return ['*']
  return forbidden(pattern).map((one) => one.replace(/:\s*\*?$/, ':*').replace(/^([^\s:*=]+):(?!\*$).*$/s, '$1:*'))
}

/** One for names, in which a star may stand for anything. */
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
 * `domain:example.com`, a host or an address: the host, for that is what is asked for. A rule is for all ports of a host: one port
 * of it can be forbidden only with the others, and not be allowed without them.
 */
export function hostPatterns(pattern: string, purpose: 'allow' | 'restrict'): string[] {
  const { host, port } = addressIn(pattern)
  if (purpose === 'allow') return port === null ? [host === '' ? '*' : host] : []
  // What is no port may be the host.
  if (host === '' || (port !== null && !/^\d+$/.test(port))) return ['*']
  return [host.replaceAll(/\\.?|\?|\{[^}]*\}?/g, '*')]
}

/** Does it mean one port of a host? */
export function namesPort(pattern: string): boolean {
  return addressIn(pattern).port !== null
}

interface Address {
  readonly host: string
  /** Null for none and for a star, which is every port. */
  readonly port: string | null
}

function addressIn(pattern: string): Address {
  const bare = pattern
    .trim()
    .replace(/^(["'])(.*)\1$/s, '$2')
    .replace(/^domain:\s*/i, '')
    .replace(/^[a-z]+:\/\//i, '')
  const whole = bare.split('/', 1)[0] ?? ''
  // Colons within a host are those of IPv6, which has brackets where a port follows.
  const [, host = whole, port = null] = /^([^:]*|\[.*\]):([^:\]]*)$/.exec(whole) ?? []
  return { host, port: port === '*' || port === '' ? null : port }
}

type Domain = 'tool' | 'agent' | 'exec' | 'net' | 'file.list' | 'file.read' | 'file.write' | 'file.delete'

/** What a file needs for itself, however strict it is: its own MCP servers. */
export interface OwnNeeds {
  readonly exec: readonly string[]
  readonly net: readonly string[]
}

/** Of one file, in all: they are compared with one another. */
export const MOST_RULES = 500

/** Collects what a file forbids, asks about or limits itself to. What it says can only narrow. */
export class Narrowing {
  private readonly denied = new Set<string>()
  private readonly asked = new Set<string>()
  private readonly only = new Map<Domain, Set<string>>()

  deny(rules: readonly string[]): void {
    for (const rule of rules) this.denied.add(strict(rule))
  }

  ask(rules: readonly string[]): void {
    for (const rule of rules) this.asked.add(strict(rule))
  }

  /** Nothing else of this domain. Said twice, both lists count. */
  allowOnly(domain: Domain, patterns: readonly string[]): void {
    const known = this.only.get(domain) ?? new Set()
    for (const pattern of patterns) if (isReadable(`${domain}:${pattern}`)) known.add(`${domain}:${pattern}`)
    this.only.set(domain, known)
  }

  /** No changes to files, no programs. */
  readOnly(): void {
    this.denyChanges()
    this.deny(['exec:*'])
  }

  denyChanges(): void {
    this.deny(['file.write:**', 'file.delete:**'])
  }

  /** Null when nothing was said. */
  grant(needs: OwnNeeds): Grant | null {
    this.keep('exec', needs.exec)
    this.keep('net', needs.net)
    // What is searched is searched from the top; of it only what is listed is shown.
    if (this.only.has('file.list')) this.allowOnly('file.list', ['/workspace'])
    // Where programs are listed, lines for a shell are not on the list.
    if (!this.only.has('exec') && [...this.denied, ...this.asked].some(isOfOneProgram)) this.asked.add(SHELL_LINES)
    const isSilent = this.denied.size === 0 && this.asked.size === 0 && this.only.size === 0
    if (isSilent) return null
    return {
      ...(this.only.size === 0 ? {} : { use: this.use() }),
      ...(this.asked.size === 0 ? {} : { ask: [...this.asked].sort() }),
      ...(this.denied.size === 0 ? {} : { deny: [...this.denied].sort() }),
    }
  }

  /** Forbids all of a domain but what the file needs for itself; what it limits itself to has that beside it. */
  private keep(domain: 'exec' | 'net', needed: readonly string[]): void {
    if (needed.length === 0) return
    if (this.denied.delete(`${domain}:*`)) {
      this.only.set(domain, new Set())
      if (domain === 'exec') this.denied.add('tool:shell')
    }
    if (this.only.has(domain)) this.allowOnly(domain, needed)
  }

  /** Everything, but for the domains that have a list of their own. */
  private use(): string[] {
    const rest = EVERYTHING.flatMap((rule) => (rule.startsWith('file.*:') ? FILES : [rule])).filter((rule) => {
      return ![...this.only.keys()].some((domain) => rule.startsWith(`${domain}:`))
    })
    return [...rest, ...[...this.only.values()].flatMap((rules) => [...rules].sort())]
  }
}

/** A command line with pipes, lists or variables. A rule about a program does not see the programs in it. */
const SHELL_LINES = 'exec:sh -c *'

function isOfOneProgram(rule: string): boolean {
  return rule.startsWith('exec:') && rule !== 'exec:*'
}

/** A rule that cannot be read stands for its whole domain. */
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
