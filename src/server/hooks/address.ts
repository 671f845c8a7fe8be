// Where webhooks may go: the check of a URL, and of the addresses that its name stands for.
//
// Stays true:
// - Only https, and http to this machine where private addresses are allowed. No name and password in the URL.
// - A name is resolved once for each request, and the request goes to the address that was checked.
// - The answer to a name tells nothing of the network that the server is in: a name that is unknown, one without an address and
//   one of a private network give the same words.
// - Asking for a name takes no thread of the process: a name server that never answers keeps nobody else waiting.

import { lookup, Resolver } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { InputError } from '../../index.ts'

/** An address that was checked. */
export interface CheckedAddress {
  readonly address: string
  readonly family: 4 | 6
}

const MAX_URL = 2_000

type Family = 'ipv4' | 'ipv6'

/** Networks of IPv4 that no webhook reaches unless it is allowed: this machine, private and local ones, and those of nobody. */
const CLOSED_4 = listOf('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
])

/**
 * IPv6: only global addresses are open. All others are local, or stand for one of IPv4 (mapped, compatible, translated,
 * NAT64), or are nobody's.
 */
const GLOBAL_6 = listOf('ipv6', [['2000::', 3]])

/** Global by their form: tunnels to IPv4, documentation, benchmarks, and networks that answer to everybody. */
const CLOSED_6 = listOf('ipv6', [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3ffe::', 16],
  ['3fff::', 20],
])

function listOf(family: Family, nets: readonly (readonly [net: string, bits: number])[]): BlockList {
  const made = new BlockList()
  for (const [net, bits] of nets) made.addSubnet(net, bits, family)
  return made
}

/** The last 64 bits of an IPv6 address that stands for one of IPv4 in a tunnel within a site (ISATAP). */
const IN_SITE = /:(?:0|200):5efe:[0-9a-f]{1,4}:[0-9a-f]{1,4}$|::5efe:[0-9a-f]{1,4}:[0-9a-f]{1,4}$/

function isClosed(address: string): boolean {
  if (isIP(address) === 4) return CLOSED_4.check(address, 'ipv4')
  if (!GLOBAL_6.check(address, 'ipv6') || CLOSED_6.check(address, 'ipv6')) return true
  return IN_SITE.test(hostOf(new URL(`https://[${address}]/`)))
}

/** Reads the URL of a webhook, or says why it is refused. */
export function readHookUrl(text: string, allowPrivate: boolean): URL {
  const url = text.length > MAX_URL || !URL.canParse(text) ? null : new URL(text)
  if (url === null) throw refused(`It is no URL of at most ${MAX_URL} characters.`)
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
    throw refused('It must begin with https:')
  if (url.username !== '' || url.password !== '') throw refused('It may hold no name and no password.')
  if (url.hash !== '') throw refused('It may have no part after #.')
  const host = hostOf(url)
  if (isIP(host) !== 0) requireOpen(url, host, allowPrivate)
  return url
}

/** Resolves the name of a URL, and gives the address to connect to. Throws where any of its addresses is closed. */
export async function resolveHook(
  url: URL,
  {
    allowPrivate,
    signal,
    addressesOf,
  }: {
    readonly allowPrivate: boolean
    /** Gives the question up. */
    readonly signal: AbortSignal
    /** Default: the resolver of the system. */
    readonly addressesOf?: (name: string, signal: AbortSignal) => Promise<readonly string[]>
  },
): Promise<CheckedAddress> {
  const host = hostOf(url)
  const find = addressesOf ?? (allowPrivate ? systemAddresses : namedAddresses)
  const found = isIP(host) === 0 ? await find(host, signal).catch(() => []) : [host]
  const [first] = found
  const mayGo = found.every((address) => (allowPrivate || !isClosed(address)) && isReached(url, address))
  if (first === undefined || !mayGo) throw refused('Its name has no address that webhooks may go to.')
  return { address: first, family: isIP(first) === 6 ? 6 : 4 }
}

/** Without a thread of the process, a search list, or the names that only this machine knows. */
async function namedAddresses(name: string, signal: AbortSignal): Promise<readonly string[]> {
  const resolver = new Resolver()
  const leave = () => resolver.cancel()
  signal.addEventListener('abort', leave, { once: true })
  try {
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return [four, six].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

/** Where private addresses are allowed, the names of this machine count too. */
async function systemAddresses(name: string): Promise<readonly string[]> {
  return (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address)
}

function requireOpen(url: URL, address: string, allowPrivate: boolean): void {
  if (!allowPrivate && isClosed(address)) throw refused(`${address} is an address of a private network.`)
  if (!isReached(url, address)) throw refused('Only https leaves this machine.')
}

function isReached({ protocol }: URL, address: string): boolean {
  return protocol !== 'http:' || isThisMachine(address)
}

function isThisMachine(address: string): boolean {
  return address === '::1' || /^127(?:\.\d{1,3}){3}$/.test(address)
}

/** Without the brackets of IPv6. */
function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

function refused(why: string): InputError {
  return new InputError('invalid_input', `A webhook does not go there. ${why}`)
}
