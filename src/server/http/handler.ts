import type { Runtime } from '../../index.ts'
import { type Authenticator, programAuthenticator } from '../identity/authenticator.ts'
import { jwtAuthenticator } from '../identity/jwt.ts'
import { LOCAL_TOKEN_NAME } from '../identity/local-token.ts'
import { Tokens } from '../identity/tokens.ts'
import { checkHandlerOptions, type HandlerOptions } from './options.ts'
import { toResponse } from './send.ts'
import { Service } from './service.ts'

/** Answers requests of any host that speaks `Request` and `Response`: Next, Express, Bun, a Hono app. */
export type Handler = (request: Request) => Promise<Response>

/**
 * The server as one function, for a program that listens itself: `export const GET = handler(runtime)`. It has the routes of
 * `serve`. The program says who asks with `authenticate`, or callers bring tokens.
 */
export function handler(runtime: Runtime, options: HandlerOptions = {}): Handler {
  checkHandlerOptions(options)
  const tokens = tokensOf(runtime)
  const service = new Service({
    runtime,
    options,
    tokens,
    ways: waysOf(options, tokens.authenticator(LOCAL_TOKEN_NAME)),
    port: undefined,
  })
  return async (request) => {
    const address = options.behindProxy === true ? forwardedFor(request.headers) : ''
    const answer = await service.answer({ request, url: new URL(request.url), address, isSocket: false })
    return toResponse(answer, service.streams)
  }
}

/** The ways to say who somebody is, beside the socket: tokens, a provider's, the program's own. */
export function waysOf({ oidc, authenticate }: HandlerOptions, tokens: Authenticator): readonly Authenticator[] {
  return [
    tokens,
    ...(oidc === undefined ? [] : [jwtAuthenticator(oidc)]),
    ...(authenticate === undefined ? [] : [programAuthenticator(authenticate)]),
  ]
}

/** The address that the nearest proxy saw. What stands before it in the header, the caller may have written himself. */
export function forwardedFor(headers: Headers): string {
  return headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? ''
}

/** The tokens of the runtime's store. */
export function tokensOf({ store }: Pick<Runtime, 'store'>): Tokens {
  return new Tokens(store.registry)
}
