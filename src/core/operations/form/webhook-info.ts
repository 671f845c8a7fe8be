import type { Id } from '../../graph/rows.ts'

/** An event that a webhook can ask for. */
export type WebhookType =
  | 'run.ended'
  | 'run.waiting'
  | 'approval.requested'
  | 'question.asked'
  | 'run.stalled'
  | 'budget.reached'

/** Events that a webhook can ask for. */
export const HOOK_TYPES: readonly WebhookType[] = Object.freeze([
  'run.ended',
  'run.waiting',
  'approval.requested',
  'question.asked',
  'run.stalled',
  'budget.reached',
])

/** A webhook to make. */
export interface WebhookRequest {
  /** Where messages go: an https URL outside of private networks. */
  readonly url: string
  /** The events that it hears of. */
  readonly types: readonly WebhookType[]
  /** `outcome`: with what the run said. Default: ids and words of ours only. */
  readonly include?: 'outcome'
  /** For people who look at the list. Default: empty. */
  readonly name?: string
}

/** A webhook as it is listed: everything but its secret. */
export interface WebhookInfo {
  readonly id: string
  readonly url: string
  readonly types: readonly WebhookType[]
  /** `outcome`: messages have what the run said; null: they have ids and words of ours. */
  readonly include: 'outcome' | null
  readonly name: string
  readonly owner: string
  readonly createdAt: number
  /** When and why it gets nothing more; null while it does. */
  readonly disabled: { readonly at: number; readonly reason: string } | null
}

/** A webhook that was just made. Its secret is shown once. */
export interface MadeWebhook {
  readonly webhook: WebhookInfo
  readonly secret: string
}

/** One message of a webhook, and how sending it went. */
export interface WebhookDelivery {
  /** The id of the message: the same at every try. */
  readonly id: string
  readonly type: WebhookType
  readonly rootId: Id
  /** The event that it tells of. */
  readonly seq: number
  readonly attempts: number
  /** When it is tried next; null where it is over. */
  readonly nextAt: number | null
  /** The last try, or why it was dropped; null before the first try. */
  readonly last: { readonly at: number; readonly status: number | null; readonly error: string | null } | null
  /** `dropped`: it was not sent any more, because its tree, or the token of its webhook, is gone. */
  readonly state: 'waiting' | 'delivered' | 'failed' | 'dropped'
}
