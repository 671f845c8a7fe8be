// Operations of webhooks: of a token and those below it, or with the scope `admin` of all owners that it sees.

import type { Id } from '../graph/rows.ts'
import { cursorAfter, type LimitQuery, type Page } from './form/page.ts'
import {
  HOOK_TYPES,
  type MadeWebhook,
  type WebhookDelivery,
  type WebhookInfo,
  type WebhookRequest,
} from './form/webhook-info.ts'
import { serverOperation } from './operation.ts'
import { bodySchema, LIMIT, SHORT } from './schemas.ts'

export const WEBHOOKS = {
  /** The webhooks of your token and of those made with it; with the scope `admin` all of owners that you see. */
  webhooks: serverOperation({
    summary:
      'The webhooks of your token and of those made with it; with the scope `admin` all of owners that you see. Secrets are never shown again.',
    scope: 'read',
    http: 'GET /v1/webhooks',
    gives: ['Webhooks', 'The webhooks.'],
    serve: async ({ webhooks }): Promise<Page<'webhooks', WebhookInfo>> => ({
      webhooks: await webhooks.list(),
      next: null,
    }),
  }),

  /** Makes a webhook. Its secret is in the answer, this once. */
  addWebhook: serverOperation({
    summary: 'Makes a webhook, which hears of runs that you may read. Its secret is shown once.',
    description:
      'Needs the scope `read` too. The server posts a signed message for each event: see the guide on webhooks. A webhook ends with the token or login that made it.',
    scope: ['start', 'read'],
    http: 'POST /v1/webhooks',
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
    gives: ['MadeWebhook', 'The webhook and its secret.'],
    status: 201,
    example: { body: { url: 'https://hooks.example/legate', types: ['run.ended'] } },
    serve: (who, request: WebhookRequest): Promise<MadeWebhook> => who.webhooks.make(request),
  }),

  /** One webhook: where it goes, and whether it was disabled. */
  webhook: serverOperation({
    summary: 'One webhook: where it goes, and whether it was disabled.',
    scope: 'read',
    of: 'webhook',
    http: 'GET /v1/webhooks/{id}',
    gives: ['Webhook', 'The webhook.'],
    serve: (who, id: string): Promise<WebhookInfo> => who.webhooks.info(id),
  }),

  /** Deletes a webhook and its deliveries. */
  removeWebhook: serverOperation({
    summary: 'Deletes a webhook and its deliveries. What is being sent now may still arrive.',
    scope: 'start',
    of: 'webhook',
    http: 'DELETE /v1/webhooks/{id}',
    serve: (who, id: string): Promise<void> => who.webhooks.remove(id),
  }),

  /** Its deliveries about runs that you may read, the newest first. `before`: the `next` of the page before. */
  deliveries: serverOperation({
    summary:
      'The deliveries of a webhook about runs that you may read, the newest first: those that wait, and the latest that are over.',
    scope: 'read',
    of: 'webhook',
    http: 'GET /v1/webhooks/{id}/deliveries',
    query: { before: { type: 'string', description: 'The `next` of the page before.' }, limit: LIMIT },
    gives: ['Deliveries', 'The deliveries.'],
    serve: async (
      who,
      id: string,
      query: LimitQuery & { readonly before?: Id } = {},
    ): Promise<Page<'deliveries', WebhookDelivery>> => {
      const { limit = 50, before } = query
      const deliveries = await who.webhooks.deliveries(id, { limit, before })
      return { deliveries, next: cursorAfter(deliveries, query, (last) => last.id) }
    },
  }),

  /** Delivers once more what a webhook was sent. */
  deliverAgain: serverOperation({
    summary: 'Sends a delivery once more, under the same id. A webhook that was disabled is enabled again.',
    scope: 'start',
    of: 'webhook',
    http: 'POST /v1/webhooks/{id}/deliveries/{delivery}/again',
    body: bodySchema({}),
    gives: ['Delivery', 'The delivery.'],
    status: 202,
    example: { body: {} },
    serve: (who, id: string, delivery: string): Promise<WebhookDelivery> => who.webhooks.again(id, delivery),
  }),
} as const
