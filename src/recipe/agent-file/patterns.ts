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
