const WORKSPACE = '/workspace'

/**
 * A path pattern of another program, whose star also stands for slashes, as patterns of ours, whose star does not. To
 * forbid, it may match more; to allow, it may match less; never the other way round.
 */
export function filePatterns(pattern: string, purpose: 'allow' | 'restrict'): string[] {
  const bare = pattern.trim().replace(/^\.\//, '')
  if (bare === '' || bare === '*' || bare === '**') return ['**']
  if (purpose === 'allow') return inPlace(placeOf(bare), purpose)
  return [...new Set(placesOf(bare).flatMap((place) => inPlace(place, purpose)))]
}

/** `/src` is below the project for some programs and a place of its own for others; `//etc` is never below it. */
function placeOf(bare: string): string {
  if (bare.startsWith('~/')) return `/home${bare.slice(1)}`
  if (bare.startsWith('//')) return bare.slice(1)
  return `${WORKSPACE}/${bare.startsWith(`${WORKSPACE}/`) ? bare.slice(WORKSPACE.length + 1) : bare.replace(/^\//, '')}`
}

/** All that may be meant: a name without a slash is meant in every folder. */
function placesOf(bare: string): string[] {
  if (!bare.includes('/') && !bare.includes('*')) return [`${WORKSPACE}/**/${bare}`]
  return bare.startsWith('/') && !bare.startsWith('//') ? [placeOf(bare), bare] : [placeOf(bare)]
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
