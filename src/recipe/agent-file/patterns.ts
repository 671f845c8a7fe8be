const WORKSPACE = '/workspace'

/** What a path that begins with a slash is below, for a program: its project, or all of the machine. */
export type Slash = 'project' | 'machine'

/**
 * A path pattern of another program, whose star also stands for slashes, as patterns of ours, whose star does not. To
 * forbid, it may match more; to allow, it may match less; never the other way round. A place outside of the project has
 * nothing that can be reached here: its pattern is kept to be written again.
 */
export function filePatterns(pattern: string, purpose: 'allow' | 'restrict', slash: Slash = 'project'): string[] {
  const bare = pattern
    .trim()
    .replace(/^\.\/(?=[~/])/, `${WORKSPACE}/`)
    .replace(/^\.\//, '')
  if (bare === '' || bare === '*' || bare === '**') return ['**']
  const places = purpose === 'allow' ? [placeOf(bare, slash)] : placesOf(bare, slash)
  return [...new Set(places.flatMap((place) => inPlace(place, purpose)))]
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
export function commandPatterns(pattern: string): string[] {
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
  if (port !== null && purpose === 'allow') return []
  return [host === '' ? '*' : host]
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
    .replace(/^domain:/, '')
    .replace(/^[a-z]+:\/\//i, '')
  const whole = bare.split('/', 1)[0] ?? ''
  // Colons within a host are those of IPv6, which has brackets where a port follows.
  const [, host = whole, port = null] = /^([^:]*|\[.*\]):([^:\]]*)$/.exec(whole) ?? []
  return { host, port: port === '*' || port === '' ? null : port }
}
