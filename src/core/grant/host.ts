import { trimEnd } from '../base/text.ts'

/**
 * The host of an address, or a bare host, in the one form it has in rules and requests: lower case, ASCII, no dot at its end,
 * no port, no user; an IPv4 address as four numbers, however it was written. Undefined where there is none.
 */
export function plainHost(given: string): string | undefined {
  return read(given)?.host
}

/** The address in a form in which every reader finds the same host; a bare host becomes one of `http:`. */
export function wholeAddress(given: string): string {
  return parsed(addressIn(given)).href
}

/** Normalizes a rule's host pattern, in which `*` matches any text; `trouble` tells what is wrong with it. */
export function hostPattern(given: string): { readonly pattern: string; readonly trouble: string | null } {
  const found = read(given)
  const pattern = found?.host ?? given.toLowerCase()
  return { pattern, trouble: found === undefined ? noHost(given) : tooMuch(found) }
}

function noHost(pattern: string): string | null {
  return pattern.includes('*') ? null : 'names no host'
}

function tooMuch({ host, port, isBare }: HostParts): string | null {
  if (!isBare) return `is more than a host: write net:${host}`
  if (port === '' || DEFAULT_PORTS.has(port)) return null
  return `has a port, and a rule is for all ports of a host: write net:${host}`
}

const DEFAULT_PORTS: ReadonlySet<string> = new Set(['80', '443'])

interface HostParts {
  readonly host: string
  readonly port: string
  /** True where it has no scheme, user or path. */
  readonly isBare: boolean
}

function read(given: string): HostParts | undefined {
  try {
    const address = addressIn(given)
    const { hostname, port, username, password, pathname, search, hash } = parsed(address)
    const host = withoutMapping(trimEnd(hostname, '.'))
    if (host === '') return undefined
    const isBare = address !== given && `${username}${password}${search}${hash}` === '' && pathname === '/'
    return { host, port, isBare }
  } catch {
    return undefined
  }
}

/**
 * The URL standard normalizes the hosts of few schemes only, so the host of any other is read as one of `http:`. Some programs
 * accept several hosts with commas between them; that is not a host.
 */
function parsed(address: string): URL {
  const url = new URL(address)
  if (SPECIAL.has(url.protocol) || url.hostname === '') return url
  const { hostname } = new URL(`http://${url.hostname}/`)
  url.hostname = hostname
  if (url.hostname !== hostname || hostname.includes(',')) throw new TypeError('no host')
  return url
}

/** Turns a bare host into an address. A text that `fetch` would take for an address is one, however it is written. */
function addressIn(spelt: string): string {
  // Readers of addresses ignore these characters.
  const given = spelt.replaceAll(/[\t\n\r]/g, '')
  if (given.includes('://') || (URL.canParse(given) && SPECIAL.has(new URL(given).protocol))) return given
  const isShortIp = /^[0-9a-f:.]+$/i.test(given) && given.includes('::')
  return isShortIp ? `http://[${given}]` : `http://${given}`
}

/** Schemes whose addresses need no slashes before the host. */
const SPECIAL: ReadonlySet<string> = new Set(['http:', 'https:', 'ws:', 'wss:', 'ftp:', 'file:'])

/** An IPv4 address inside of an IPv6 one is the same machine. */
function withoutMapping(host: string): string {
  const [, high = '', low = ''] = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(host) ?? []
  if (low === '') return host
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [a >> 8, a & 255, b >> 8, b & 255].join('.')
}
