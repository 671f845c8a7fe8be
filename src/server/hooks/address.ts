// Where webhooks may go: the check of a URL, and of the addresses that its name stands for.
//
// Stays true:
// - Only https, and http to this machine where private addresses are allowed. No name and password in the URL.
// - A name is resolved once for each request, and the request goes to the address that was checked.

import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { InputError } from '../../index.ts'

/** An address that was checked. */
export interface CheckedAddress {
  readonly address: string
  readonly family: 4 | 6
}

const MAX_URL = 2_000

type Family = 'ipv4' | 'ipv6'

/** Networks that no webhook reaches unless it is allowed: this machine, private and local ones, and those of nobody. */
const CLOSED: readonly (readonly [net: string, bits: number, family: Family])[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['192.0.2.0', 24, 'ipv4'],
  ['192.88.99.0', 24, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['198.51.100.0', 24, 'ipv4'],
  ['203.0.113.0', 24, 'ipv4'],
  ['224.0.0.0', 4, 'ipv4'],
  ['240.0.0.0', 4, 'ipv4'],
  ['::', 96, 'ipv6'],
  ['::ffff:0:0', 96, 'ipv6'],
  ['64:ff9b::', 96, 'ipv6'],
  ['64:ff9b:1::', 48, 'ipv6'],
  ['100::', 64, 'ipv6'],
  ['2001::', 23, 'ipv6'],
  ['2001:db8::', 32, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['3fff::', 20, 'ipv6'],
  ['5f00::', 16, 'ipv6'],
  ['fc00::', 7, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['fec0::', 10, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
]

/** One list for each family: a list with both takes every IPv4 address for the IPv6 one that stands for it. */
const closed = { ipv4: listOf('ipv4'), ipv6: listOf('ipv6') }

function listOf(family: Family): BlockList {
  const made = new BlockList()
  for (const [net, bits, of] of CLOSED) if (of === family) made.addSubnet(net, bits, of)
  return made
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
export async function resolveHook(url: URL, allowPrivate: boolean): Promise<CheckedAddress> {
  const host = hostOf(url)
  const found = isIP(host) === 0 ? await lookup(host, { all: true, verbatim: true }) : [{ address: host }]
  const [first] = found
  if (first === undefined) throw refused(`${host} has no address.`)
  for (const { address } of found) requireOpen(url, address, allowPrivate)
  return { address: first.address, family: isIP(first.address) === 6 ? 6 : 4 }
}

function requireOpen({ protocol }: URL, address: string, allowPrivate: boolean): void {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  if (!allowPrivate && closed[family].check(address, family)) {
    throw refused(`${address} is an address of a private network.`)
  }
  if (protocol === 'http:' && !isThisMachine(address)) throw refused('Only https leaves this machine.')
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
