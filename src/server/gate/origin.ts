// Who may talk to the server at all: the names it goes by, and the web pages that may use it.
//
// Stays true:
// - Nothing is ever authorised by an address or a cookie; these checks only keep out what cannot be meant.
// - No wildcard: an origin is allowed by its exact text, or not at all.

import { Problem } from '../http/problem/problem.ts'

export interface OriginRules {
  /** Host names, with or without a port, that the server goes by beside those of this machine. */
  readonly allowHosts: readonly string[]
  /** Origins of web pages that may use the server: `https://app.example`. */
  readonly allowOrigins: readonly string[]
  /** True where callers come over a Unix socket: they have no host name. */
  readonly isSocket: boolean
  /** The port that the server listens on; undefined where another program listens. */
  readonly port: number | undefined
}

const LOCAL_NAMES = ['127.0.0.1', 'localhost', '[::1]']

/** Refuses a name that the server does not go by: another page may have bound its name to this address. */
export function checkHost(host: string | null, rules: OriginRules): void {
  if (rules.isSocket) return
  if (host !== null && isOurName(host.toLowerCase(), rules)) return
  throw new Problem('wrong_host', 'The server does not go by the name in the header Host.')
}

function isOurName(host: string, { allowHosts, port }: OriginRules): boolean {
  const [, name = '', given] = HOST.exec(host) ?? []
  if (name === '') return false
  const isListed = (listed: string) => listed.toLowerCase() === host || listed.toLowerCase() === name
  if (allowHosts.some(isListed)) return true
  return LOCAL_NAMES.includes(name) && (port === undefined || isPort(given, port))
}

/** A name without a port means that of http or https. */
function isPort(given: string | undefined, port: number): boolean {
  return given === undefined ? port === 80 || port === 443 : Number(given) === port
}

const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/

/** Refuses other web pages. `isPublic`: an answer that tells nothing. */
export function checkOrigin(headers: Headers, rules: OriginRules, isPublic: boolean): void {
  const origin = headers.get('origin')
  if (origin !== null && !isOurOrigin(origin, headers.get('host'), rules)) {
    throw new Problem('forbidden_origin', 'Web pages of this origin may not use the server.')
  }
  const site = headers.get('sec-fetch-site')
  const isForeign = site === 'cross-site' || site === 'same-site'
  if (isForeign && origin === null && !isPublic) {
    throw new Problem('forbidden_origin', 'Other web pages may not use the server.')
  }
}

/** Our own page has the name and the port that it was loaded from. */
function isOurOrigin(origin: string, host: string | null, { allowOrigins }: OriginRules): boolean {
  if (allowOrigins.includes(origin)) return true
  return host !== null && (origin === `http://${host}` || origin === `https://${host}`)
}

/** The headers for a page of an allowed origin; none for others. */
export function corsHeaders(
  headers: Headers,
  { allowOrigins }: Pick<OriginRules, 'allowOrigins'>,
): Readonly<Record<string, string>> {
  const origin = headers.get('origin')
  if (allowOrigins.length === 0) return {}
  if (origin === null || !allowOrigins.includes(origin)) return { vary: 'Origin' }
  return { vary: 'Origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED }
}

/** The answer to a browser that asks beforehand. */
export function preflightHeaders(): Readonly<Record<string, string>> {
  return {
    'access-control-allow-methods': 'GET, POST, PUT, DELETE',
    'access-control-allow-headers': 'authorization, content-type, idempotency-key, last-event-id, accept, range',
    'access-control-max-age': '600',
  }
}

const EXPOSED = 'retry-after, content-range, location'

/** The content policy of our pages. Its one policy of Trusted Types, `legate`, names the script of its worker. */
function contentPolicy(origins: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    ["connect-src 'self'", ...origins].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types legate',
  ].join('; ')
}

/** Headers of every answer. Our pages may talk to us, and to these origins: those of the provider that people log in at. */
export function securityHeaders(origins: readonly string[]): Readonly<Record<string, string>> {
  return { ...SECURITY_HEADERS, 'content-security-policy': contentPolicy(origins) }
}

const SECURITY_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
})
