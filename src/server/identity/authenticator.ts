// Who asks: the chain of ways to say so.
//
// Stays true:
// - No cookie, no address and no query string says who somebody is.
// - The ways are tried in a fixed order, and the first that recognises its own credentials decides: a bad token is not
//   tried as something else.

import { checkPrincipal } from '../../doors/grant.ts'
import type { Principal } from '../../index.ts'
import { faultOf, unavailable } from '../http/problem/problem.ts'
import { refuseLocalId } from './local-token.ts'

/** Somebody who has said who he is, and could prove it. */
export interface Identity {
  readonly principal: Principal
  /** The row of the token; null for other ways. */
  readonly tokenId: string | null
  /** When the login ends that proves it, in milliseconds since 1970; null where it does not say. */
  readonly endsAt?: number | null
  /** False as soon as the proof does not hold any more. */
  readonly isStillValid: () => Promise<boolean>
}

/** The facts of a request that may say who asks. */
export interface Caller {
  readonly request: Request
  /** The bearer token of the request; null where there is none. */
  readonly bearer: string | null
  /** True where the request came over the Unix socket. */
  readonly isSocket: boolean
}

/** `no`: these are my credentials, and they are wrong. `expired`: they are right, and their time is over. Undefined: I know nothing of this caller. */
export type IdentityVerdict = Identity | 'no' | 'expired' | undefined

/** One way to say who somebody is. */
export type Authenticator = (caller: Caller) => IdentityVerdict | Promise<IdentityVerdict>

/** Asks one after another. Undefined: nobody knows the caller, or his proof is wrong. */
export async function identify(
  ways: readonly Authenticator[],
  caller: Caller,
): Promise<Identity | 'expired' | undefined> {
  for (const way of ways) {
    const verdict = await way(caller)
    if (verdict === 'no') return undefined
    if (verdict !== undefined) return verdict
  }
  return undefined
}

/** The token of the header `Authorization: Bearer ...`. */
export function bearerOf(headers: Headers): string | null {
  const [, token = null] = /^Bearer +([\w.~+/=-]{1,8192}) *$/i.exec(headers.get('authorization') ?? '') ?? []
  return token
}

/** An identity without a token of ours: for as long as the process lives, or until its login ends. */
export function identityOf(principal: Principal, endsAt: number | null = null, toleranceMs = 0): Identity {
  const isStillValid = async () => endsAt === null || Date.now() < endsAt + toleranceMs
  return { principal, tokenId: null, endsAt, isStillValid }
}

/** Whoever can open the socket file is the local principal: the file's mode says who can. */
export function socketAuthenticator(principal: Principal): Authenticator {
  return ({ isSocket }) => (isSocket ? identityOf(principal) : undefined)
}

/** The way of the program that has the server inside it. What it does wrong is no mistake of the caller. */
export function programAuthenticator(
  authenticate: (request: Request) => Promise<Principal | null> | Principal | null,
): Authenticator {
  return async ({ request }) => {
    const principal = await inTime(async () => {
      const found = await authenticate(request)
      return found === null ? null : refuseLocalId(checkPrincipal(found, 'authenticate()'), 'authenticate()')
    })
    return principal === null ? undefined : identityOf(principal)
  }
}

const PATIENCE_MS = 10_000

async function inTime<Found>(ask: () => Promise<Found>): Promise<Found> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const why = new Error(`authenticate() has not answered within ${PATIENCE_MS / 1_000} seconds.`)
    timer = setTimeout(() => reject(unavailable('The server cannot find out now who you are.', why)), PATIENCE_MS)
  })
  const asked = ask().catch((error: unknown) => {
    throw faultOf(error)
  })
  return Promise.race([asked, late]).finally(() => clearTimeout(timer))
}
