// The gate: everything that a request must pass before its route sees it.
//
// Owns:      the order of the checks. Host, origin, address, route, who asks, scope, rate, type and size of the body.
// Called by: `server/service`, for every request, whatever host it came through.
// Must stay true:
//   - Nothing of the store but the token is read before all checks have passed.
//   - A refused request has started nothing.

import { hasScope, seesEverything } from '../../doors/grant.ts'
import type { Principal } from '../../index.ts'
import { Problem, unauthenticated } from '../http/problem/problem.ts'
import type { Route, ServerLimits } from '../http/table/route.ts'
import type { Match, Router } from '../http/table/router.ts'
import { type Authenticator, bearerOf, type Identity, identify, identityOf } from '../identity/authenticator.ts'
import { addressKey, Buckets } from './buckets.ts'
import { checkHost, checkOrigin, type OriginRules } from './origin.ts'

/** A request and the facts that the host knows of it. */
export interface Arrival {
  readonly request: Request
  readonly url: URL
  /** The address of the caller; empty where the host does not tell. */
  readonly address: string
  readonly isSocket: boolean
}

/** A request that has passed. */
export interface Passed extends Match {
  readonly identity: Identity
}

export interface ServerGateParts {
  readonly router: Router
  readonly ways: readonly Authenticator[]
  readonly rules: Omit<OriginRules, 'isSocket'>
  readonly limits: Required<ServerLimits>
}

export class Gate {
  private readonly parts: ServerGateParts
  private readonly starts: Buckets
  private readonly reads: Buckets
  private readonly addresses: Buckets
  private readonly failures: Buckets

  constructor(parts: ServerGateParts) {
    const { limits } = parts
    this.parts = parts
    this.starts = new Buckets(limits.startsPerMinute)
    this.reads = new Buckets(limits.readsPerMinute)
    this.addresses = new Buckets(limits.perAddressPerMinute)
    this.failures = new Buckets(limits.failuresPerMinute)
  }

  /** Throws the Problem of the first check that fails. */
  async pass(arrival: Arrival): Promise<Passed> {
    this.checkCaller(arrival)
    const match = this.parts.router.find(arrival.request.method, arrival.url.pathname)
    const { route } = match
    if (route.scope === 'none') return { ...match, identity: NOBODY }
    const identity = await this.identify(arrival)
    checkScope(route, identity)
    this.spend(route, identity)
    return { ...match, identity }
  }

  /** The checks that need nothing but the head of the request. */
  checkCaller({ request, url, address, isSocket }: Arrival): void {
    const { headers, method } = request
    const rules = { ...this.parts.rules, isSocket }
    checkHost(headers.get('host') ?? hostOf(url, rules), rules)
    // A request may name a host in its first line too.
    checkHost(url.host, rules)
    const isPublic =
      url.pathname === '/health' || (isFollowed(headers) && this.parts.router.isPage(method, url.pathname))
    checkOrigin(headers, rules, isPublic)
    // Where the host does not tell addresses, one bucket would be everybody's.
    const wait = isSocket || address === '' ? 0 : this.addresses.take(addressKey(address))
    if (wait > 0) throw tooMany('Too many requests from this address.', wait)
  }

  private async identify({ request, isSocket, address }: Arrival): Promise<Identity> {
    const bearer = bearerOf(request.headers)
    const key = addressKey(address)
    const identity = await identify(this.parts.ways, { request, bearer, isSocket }).catch((error: unknown) => {
      throw this.unproven(error, key)
    })
    if (identity !== undefined && identity !== 'expired') return identity
    // Only who fails waits: a stranger at the same address locks nobody out.
    const wait = request.headers.has('authorization') ? this.failures.take(key) : this.failures.wait(key)
    if (wait > 0) throw tooMany('Too many wrong credentials from this address.', wait)
    throw unauthenticated(identity === 'expired' ? EXPIRED : undefined)
  }

  /** Who brings what nobody can check now has failed too: else he could go on for ever. */
  private unproven(error: unknown, key: string): unknown {
    if (!(error instanceof Problem) || error.details.code !== 'unavailable') return error
    const wait = key === '' ? 0 : this.failures.take(key)
    return wait > 0 ? tooMany('Too many credentials from this address that cannot be checked now.', wait) : error
  }

  private spend(route: Route, { principal }: Identity): void {
    if (route.scope === 'start' || route.beginsRun === true) return this.countStart(principal)
    this.countRead(principal)
  }

  /** Counts one more message of a request. Throws where it is one too many. */
  countRead({ id }: Principal): void {
    const wait = this.reads.take(id)
    if (wait > 0) throw tooMany(`Too many requests of ${id}.`, wait)
  }

  /** Counts a run that is about to begin. Throws where it is one too many. */
  countStart({ id }: Principal): void {
    const wait = this.starts.take(id)
    if (wait > 0) throw tooMany(`Too many starts of ${id}.`, wait)
  }
}

const EXPIRED = 'This token has expired. Ask whoever made it for a new one.'

/** Hosts of other makes may hand on no header: the address of the request has the name. */
function hostOf(url: URL, { port }: Pick<OriginRules, 'port'>): string | null {
  return port === undefined ? url.host : null
}

/** Somebody follows a link to a whole page: neither a script nor a frame of another page asks. */
function isFollowed(headers: Headers): boolean {
  return headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document'
}

const NOBODY: Identity = identityOf(Object.freeze({ id: 'nobody', scopes: [] }))

function checkScope({ scope, needsAll }: Route, { principal }: Identity): void {
  if (needsAll === true && !seesEverything(principal)) {
    throw new Problem('denied', `${principal.id} does not see all owners and agents.`)
  }
  if (scope === 'any' || scope === 'none' || hasScope(principal, scope)) return
  throw new Problem('denied', `${principal.id} lacks the scope ${scope}.`)
}

function tooMany(detail: string, seconds: number): Problem {
  return new Problem('too_many', detail, { 'retry-after': String(seconds) })
}
