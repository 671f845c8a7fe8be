// Operations of tokens. A token makes only narrower ones, and goes with the one that made it.

import type { MadeToken, RevokedTokens, TokenInfo } from '../grant/token-info.ts'
import type { Page } from './form/page.ts'
import type { TokenRequest } from './form/server-port.ts'
import { serverOperation } from './operation.ts'
import { bodySchema, OBJECT, SHORT } from './schemas.ts'

const TEXTS = { type: 'array', items: SHORT, maxItems: 1_000 }

const PRINCIPAL = {
  type: 'object',
  additionalProperties: false,
  description: 'What the token may do. Every part can only be narrower than yours.',
  required: ['scopes'],
  properties: {
    id: { ...SHORT, description: 'The owner of what it starts. Only an admin may name another one than his own.' },
    scopes: TEXTS,
    agents: TEXTS,
    grant: OBJECT,
    budget: OBJECT,
    perDay: OBJECT,
    sees: { anyOf: [{ enum: ['own', 'all'] }, TEXTS] },
    mayApprove: OBJECT,
  },
}

export const TOKENS = {
  /** Your token and those made with it; with the scope `admin` all of owners that you see. Secrets are never shown again. */
  tokens: serverOperation({
    summary:
      'Your token and those made with it; with the scope `admin` all of owners that you see. Secrets are never shown again.',
    scope: 'any',
    http: 'GET /v1/tokens',
    gives: ['Tokens', 'The tokens.'],
    serve: async ({ tokens }): Promise<Page<'tokens', TokenInfo>> => ({
      tokens: (await tokens.list()).map(withoutMakers),
      next: null,
    }),
  }),

  /** Makes a token that may no more than yours. Its text is in the answer, this once. */
  addToken: serverOperation({
    summary: 'Makes a token that can do at most what yours can. Its text is shown once.',
    scope: 'any',
    http: 'POST /v1/tokens',
    body: bodySchema(
      {
        name: { ...SHORT, description: 'For people who look at the list.' },
        expiresAt: { type: 'integer', minimum: 0, description: 'When it ends, in milliseconds since 1970.' },
        principal: PRINCIPAL,
      },
      ['principal'],
    ),
    gives: ['MadeToken', 'The token and what is known of it.'],
    status: 201,
    example: { body: { name: 'reader', principal: { scopes: ['read'] } } },
    serve: async ({ tokens }, request: TokenRequest): Promise<MadeToken> => {
      const made = await tokens.make(request)
      return { ...made, info: withoutMakers(made.info) }
    },
  }),

  /** Revokes a token and all that were made with it; with `cancel` also the open runs of their owners. */
  revokeToken: serverOperation({
    summary: 'Revokes a token and all that were made with it. Their streams end within 5 seconds; runs go on.',
    description:
      'You may revoke your own, those made with it, and with the scope `admin` all of owners that you see. Another process of the store takes a revoked token for up to a second more.',
    scope: 'any',
    of: 'token',
    http: 'DELETE /v1/tokens/{id}',
    query: { cancel: { type: 'boolean', description: 'Also cancels the open runs of their owners. Needs `cancel`.' } },
    gives: ['RevokedTokens', 'The ids of the tokens that are gone, and of the runs that were cancelled.'],
    serve: (who, id: string, { cancel = false }: { readonly cancel?: boolean } = {}): Promise<RevokedTokens> =>
      who.tokens.revoke(id, cancel),
  }),
} as const

/** Leaves out the principals above, with all they may do and see: `parent` names the token that an admin finds in the list. */
function withoutMakers(info: TokenInfo): TokenInfo {
  const { within: _, ...principal } = info.principal
  return { ...info, principal }
}
