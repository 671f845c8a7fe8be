import type { TokenInfo } from '../../../doors/grant.ts'
import type { Principal } from '../../../index.ts'
import type { WebhookRequest } from '../../client/index.ts'
import { HOOK_TYPES } from '../../hooks/webhooks.ts'
import type { Maker } from '../../identity/tokens.ts'
import { json, NOTHING, type Route, type RouteCall } from '../table/route.ts'
import { answer, bodyOf, bodySchema, DONE, LIMIT, OBJECT, param, SHORT } from './parts.ts'

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

interface TokenBody {
  readonly name?: string
  readonly expiresAt?: number
  readonly principal: Omit<Principal, 'id' | 'within'> & { readonly id?: string }
}

/** Routes of tokens. A token makes only narrower ones, and goes with the one that made it. */
export const TOKEN_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/tokens',
    scope: 'any',
    summary:
      'Your token and those made with it; with the scope `admin` all of owners that you see. Secrets are never shown again.',
    answers: { 200: answer('Tokens', 'The tokens.') },
    handler: async ({ server, principal, tokenId }) =>
      json({ tokens: (await server.tokens.list(principal, tokenId)).map(withoutMakers), next: null }),
  },
  {
    method: 'POST',
    path: '/v1/tokens',
    scope: 'any',
    summary: 'Makes a token that can do at most what yours can. Its text is shown once.',
    body: bodySchema(
      {
        name: { ...SHORT, description: 'For people who look at the list.' },
        expiresAt: { type: 'integer', minimum: 0, description: 'When it ends, in milliseconds since 1970.' },
        principal: PRINCIPAL,
      },
      ['principal'],
    ),
    answers: { 201: answer('MadeToken', 'The token and what is known of it.') },
    example: { body: { name: 'reader', principal: { scopes: ['read'] } } },
    handler: async (call) => {
      const { principal, tokenId, endsAt, server } = call
      const { principal: wanted, ...rest } = bodyOf<TokenBody>(call)
      const made = await server.tokens.makeNarrower(
        { principal, tokenId, endsAt },
        { ...rest, principal: { ...wanted, id: wanted.id ?? principal.id } },
      )
      return json({ ...made, info: withoutMakers(made.info) }, 201)
    },
  },
  {
    method: 'DELETE',
    path: '/v1/tokens/{id}',
    scope: 'any',
    summary: 'Revokes a token and all that were made with it. Their streams end within 5 seconds; runs go on.',
    description:
      'You may revoke your own, those made with it, and with the scope `admin` all of owners that you see. Another process of the store takes a revoked token for up to a second more.',
    params: { id: 'text' },
    query: { cancel: { type: 'boolean', description: 'Also cancels the open runs of their owners. Needs `cancel`.' } },
    answers: {
      200: answer('RevokedTokens', 'The ids of the tokens that are gone, and of the runs that were cancelled.'),
    },
    handler: async (call) => {
      const { runtime, server, query, principal, tokenId } = call
      const gone = query.flag('cancel')
        ? await server.tokens.revokeWithRuns(param(call), runtime, tokenId)
        : { revoked: await server.tokens.revoke(param(call), principal, tokenId), cancelled: [] }
      await server.streams.recheck()
      return json(gone)
    },
  },
]

/** What those above may do, and whom they see, is not told: `parent` names the token that an admin finds in the list. */
function withoutMakers(info: TokenInfo): TokenInfo {
  const { within: _, ...principal } = info.principal
  return { ...info, principal }
}

/** Routes of webhooks: of a token and those below it, or with the scope `admin` of all owners that it sees. */
export const WEBHOOK_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/webhooks',
    scope: 'read',
    summary:
      'The webhooks of your token and of those made with it; with the scope `admin` all of owners that you see. Secrets are never shown again.',
    answers: { 200: answer('Webhooks', 'The webhooks.') },
    handler: async (call) => json({ webhooks: await call.server.webhooks.list(makerOf(call)), next: null }),
  },
  {
    method: 'POST',
    path: '/v1/webhooks',
    scope: 'start',
    summary: 'Makes a webhook, which hears of runs that you may read. Its secret is shown once.',
    description:
      'Needs the scope `read` too. The server posts a signed message for each event: see the guide on webhooks. A webhook ends with the token or login that made it.',
    body: bodySchema(
      {
        url: {
          type: 'string',
          maxLength: 2_000,
          description: 'Where messages go: an https URL outside of private networks.',
        },
        types: {
          type: 'array',
          items: { enum: [...HOOK_TYPES] },
          minItems: 1,
          maxItems: 20,
          description: `The events: ${HOOK_TYPES.map((type) => `\`${type}\``).join(', ')}.`,
        },
        include: {
          const: 'outcome',
          description: '`run.ended` has the answer of the run. Default: ids and words of ours only.',
        },
        name: { ...SHORT, description: 'For people who look at the list.' },
      },
      ['url', 'types'],
    ),
    answers: { 201: answer('MadeWebhook', 'The webhook and its secret.') },
    example: { body: { url: 'https://hooks.example/legate', types: ['run.ended'] } },
    handler: async (call) => {
      call.runtime.require('read')
      return json(await call.server.webhooks.make(makerOf(call), bodyOf<WebhookRequest>(call)), 201)
    },
  },
  {
    method: 'GET',
    path: '/v1/webhooks/{id}',
    scope: 'read',
    summary: 'One webhook: where it goes, and whether it was disabled.',
    params: { id: 'text' },
    answers: { 200: answer('Webhook', 'The webhook.') },
    handler: async (call) => json(await call.server.webhooks.info(param(call), makerOf(call))),
  },
  {
    method: 'DELETE',
    path: '/v1/webhooks/{id}',
    scope: 'start',
    summary: 'Deletes a webhook and its deliveries. What is being sent now may still arrive.',
    params: { id: 'text' },
    answers: DONE,
    handler: async (call) => {
      await call.server.webhooks.remove(param(call), makerOf(call))
      return NOTHING
    },
  },
  {
    method: 'GET',
    path: '/v1/webhooks/{id}/deliveries',
    scope: 'read',
    summary:
      'The deliveries of a webhook about runs that you may read, the newest first: those that wait, and the latest that are over.',
    params: { id: 'text' },
    query: { before: { type: 'string', description: 'The `next` of the page before.' }, limit: LIMIT },
    answers: { 200: answer('Deliveries', 'The deliveries.') },
    handler: async (call) => {
      const { query, server } = call
      const limit = query.number('limit') ?? 50
      const page = { limit, before: query.text('before') }
      const deliveries = await server.webhooks.listDeliveries(param(call), makerOf(call), page)
      return json({ deliveries, next: deliveries.length < limit ? null : (deliveries.at(-1)?.id ?? null) })
    },
  },
  {
    method: 'POST',
    path: '/v1/webhooks/{id}/deliveries/{delivery}/again',
    scope: 'start',
    summary: 'Sends a delivery once more, under the same id. A webhook that was disabled is enabled again.',
    params: { id: 'text', delivery: 'text' },
    body: bodySchema({}),
    answers: { 202: answer('Delivery', 'The delivery.') },
    example: { body: {} },
    handler: async (call) => {
      const { webhooks } = call.server
      return json(await webhooks.again(param(call), param(call, 'delivery'), makerOf(call)), 202)
    },
  },
]

function makerOf({ principal, tokenId, endsAt }: RouteCall): Maker {
  return { principal, tokenId, endsAt }
}
