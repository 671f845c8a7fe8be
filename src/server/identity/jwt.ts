// JSON Web Tokens of an OpenID Connect provider.
//
// Stays true:
// - Only RS256, ES256 and EdDSA: a secret that both sides know, or none at all, proves nothing.
// - The owner is issuer and subject together: two providers with the same subject are two owners.
// - The provider's keys are fetched when the first token comes, never before.
// - A provider that does not answer is no mistake of the caller: 503, and the operator hears of it.
// - One key that cannot be used is left out when the keys are read: it stands in nobody's way. See `usable-keys`.

import type { JWTVerifyResult } from 'jose'
import { messageOf } from '../../core/base/error.ts'
import { checkPrincipal, SCOPES, type Scope } from '../../doors/grant.ts'
import type { Principal } from '../../index.ts'
import { DefinitionError } from '../../index.ts'
import { faultOf, Problem, unavailable } from '../http/problem/problem.ts'
import { type Authenticator, identityOf } from './authenticator.ts'
import { refuseLocalId } from './local-token.ts'
import { usableKeys } from './usable-keys.ts'

/** Tokens of a provider that a server takes. A token is taken until 60 seconds after its `exp`: clocks differ. */
export interface OidcOptions {
  /** The provider, by the exact text of its tokens' `iss`. */
  readonly issuer: string
  /** The name of this server in the tokens' `aud`. */
  readonly audience: string
  /** Makes a principal from the claims of a token. Default: the scopes of the claim `scope`, and the id `issuer|subject`. */
  readonly principal?: (claims: Readonly<Record<string, unknown>>) => Principal | null
}

const ALGORITHMS = ['RS256', 'ES256', 'EdDSA']
const SORTS = ['jwt', 'at+jwt']
/** Clocks may differ by this much. */
const SKEW_S = 60
/** How long the provider may take. */
const PATIENCE_MS = 5_000
/** How long a provider that failed is left alone. */
const PAUSE_MS = 3_000
/** The most bytes that are read of an answer of the provider. */
const MOST_BYTES = 1_000_000

/** Recognises tokens in the form of a JWT. */
export function jwtAuthenticator(options: OidcOptions): Authenticator {
  checkIssuer(options.issuer)
  const verify = verifier(options)
  return async ({ bearer }) => {
    if (bearer === null || !/^[\w-]+\.[\w-]+\.[\w-]*$/.test(bearer)) return undefined
    const claims = await verify(bearer)
    if (claims === undefined) return 'no'
    const principal = principalFrom(options, claims)
    return principal === null ? 'no' : identityOf(principal, claims.exp * 1_000, SKEW_S * 1_000)
  }
}

/** A program that makes no principal of good claims is at fault, not the caller. */
function principalFrom({ principal = principalOfClaims }: OidcOptions, claims: Claims): Principal | null {
  try {
    const made = principal(claims)
    return made === null ? null : refuseLocalId(checkPrincipal(made, 'oidc.principal()'), 'oidc.principal()')
  } catch (error) {
    throw faultOf(error)
  }
}

/** The claims of a good token, with those that it must have. */
interface Claims extends Readonly<Record<string, unknown>> {
  readonly exp: number
  readonly sub: string
}

/** Undefined where the claims cannot be meant, or the token is of another sort: one that says who logged out, for example. */
function goodClaims({ payload, protectedHeader }: JWTVerifyResult): Claims | undefined {
  const { exp, sub } = payload
  const isSort = SORTS.includes(String(protectedHeader.typ ?? 'JWT').toLowerCase())
  const isMeant = Number.isSafeInteger(exp) && typeof sub === 'string' && sub.trim() !== '' && sub.isWellFormed()
  return isSort && isMeant ? (payload as Claims) : undefined
}

function checkIssuer(issuer: string): void {
  const { protocol, hostname } = URL.canParse(issuer) ? new URL(issuer) : { protocol: '', hostname: '' }
  if (protocol === 'https:' || (protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname))) return
  throw new DefinitionError('definition', `serve({ oidc }): the issuer must be an https address, not "${issuer}".`)
}

/** Gives the claims of a token that is right; undefined of one that is not. Throws where the provider does not answer. */
function verifier({ issuer, audience }: OidcOptions): (token: string) => Promise<Claims | undefined> {
  let keys: Promise<Keys> | undefined
  let failedAt = Number.NEGATIVE_INFINITY
  const unanswered = (error: unknown) => {
    failedAt = performance.now()
    return unavailable(SILENT, error)
  }
  return async (token) => {
    // Callers cannot make the server ask a provider again and again that does not answer.
    if (performance.now() - failedAt < PAUSE_MS) throw new Problem('unavailable', SILENT, { 'retry-after': '5' })
    keys ??= findKeys(issuer).catch((error: unknown) => {
      keys = undefined
      throw unanswered(error)
    })
    const { jose, set } = await keys
    try {
      const wanted = {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: SKEW_S,
        requiredClaims: ['exp', 'sub'],
      }
      return goodClaims(await jose.jwtVerify(token, set, wanted))
    } catch (error) {
      if (error instanceof Unanswered) throw unanswered(error)
      if (error instanceof jose.errors.JOSEError) return undefined
      // Neither the provider is silent nor the token wrong: whoever asks next may be answered.
      throw unavailable('This token cannot be checked now.', error)
    }
  }
}

const SILENT = 'The provider of the tokens does not answer.'

/** The provider does not answer, or not with its keys. */
class Unanswered extends Error {}

interface Keys {
  readonly jose: typeof import('jose')
  readonly set: ReturnType<typeof import('jose')['createRemoteJWKSet']>
}

async function findKeys(issuer: string): Promise<Keys> {
  const jose = await import('jose')
  const place = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const found = await fetchJson(place)
  const address: unknown = Reflect.get(Object(found), 'jwks_uri')
  if (typeof address !== 'string' || Reflect.get(Object(found), 'issuer') !== issuer) {
    throw new DefinitionError('definition', `The provider ${issuer} does not describe itself at ${place}.`)
  }
  checkIssuer(address)
  const warned = new Set<string>()
  const fetchKeys = async (from: string, init: RequestInit) => {
    const { keys, leftOut } = await usableKeys(jose, await fetchSet(from, init), ALGORITHMS)
    for (const key of leftOut) {
      if (!warned.has(key)) process.emitWarning(`${issuer} has a key that cannot be used: ${key}`, WARNING)
      warned.add(key)
    }
    return Response.json({ keys })
  }
  const options = { timeoutDuration: PATIENCE_MS, [jose.customFetch]: fetchKeys }
  return { jose, set: jose.createRemoteJWKSet(new URL(address), options) }
}

const WARNING = { type: 'LegateWarning' }

/** The keys of a provider, as it gives them. */
async function fetchSet(from: string, init: RequestInit): Promise<readonly unknown[]> {
  try {
    const answer = await fetchShort(from, init)
    if (answer.status !== 200) throw new Error(`${from} answers with the status ${answer.status}.`)
    const keys: unknown = Reflect.get(Object(await answer.json()), 'keys')
    if (Array.isArray(keys)) return keys
    throw new Error(`${from} gives no set of keys.`)
  } catch (error) {
    throw new Unanswered(messageOf(error), { cause: error })
  }
}

async function fetchJson(place: string): Promise<unknown> {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(new Error(`${place} does not answer.`)), PATIENCE_MS)
  try {
    const answer = await fetchShort(place, { redirect: 'error', signal: stop.signal })
    return answer.ok ? await answer.json() : undefined
  } finally {
    clearTimeout(timer)
  }
}

function principalOfClaims({ iss, sub, scope }: Readonly<Record<string, unknown>>): Principal {
  const words = typeof scope === 'string' ? scope.split(' ') : Array.isArray(scope) ? scope : []
  const scopes = SCOPES.filter((one): one is Scope => words.includes(one))
  return { id: `${String(iss)}|${String(sub)}`, scopes }
}

/** Fetches an answer whole, if it is not longer than one of a provider can be. */
async function fetchShort(place: string, init: RequestInit): Promise<Response> {
  const { body, status, headers } = await fetch(place, init)
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    bytes += part.byteLength
    if (bytes > MOST_BYTES) throw new Error(`${place} gives more than ${MOST_BYTES} bytes.`)
    parts.push(part)
  }
  return new Response(Buffer.concat(parts), { status, headers })
}
