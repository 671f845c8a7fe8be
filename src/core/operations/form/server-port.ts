// What operations need of a server beside its runtime: tokens, webhooks, and settings of owners.

import type { Principal } from '../../grant/principal.ts'
import type { MadeToken, RevokedTokens, TokenInfo } from '../../grant/token-info.ts'
import type { MadeWebhook, WebhookDelivery, WebhookInfo, WebhookRequest } from './webhook-info.ts'

/** A token to make: it can do at most what yours can. */
export interface TokenRequest {
  /** Who holds it, and what it may do. Its id is yours unless you are an admin. */
  readonly principal: Omit<Principal, 'id' | 'within'> & { readonly id?: string }
  /** For people who look at the list. */
  readonly name?: string
  /** When it ends, in milliseconds since 1970. Default: never. */
  readonly expiresAt?: number
}

/** How long trees of an owner are kept, in days after their last activity. */
export interface KeptOwner {
  readonly owner: string
  readonly keepDays: number | null
}

/** A caller of a server whose scopes have been checked, and what the server does for it. */
export interface ServerCaller {
  readonly principal: Principal
  readonly tokens: {
    list(): Promise<readonly TokenInfo[]>
    make(request: TokenRequest): Promise<MadeToken>
    /** Revokes a token and all below it; with `cancel` it also cancels the open runs of their owners. */
    revoke(id: string, cancel: boolean): Promise<RevokedTokens>
  }
  readonly webhooks: {
    list(): Promise<readonly WebhookInfo[]>
    make(request: WebhookRequest): Promise<MadeWebhook>
    info(id: string): Promise<WebhookInfo>
    remove(id: string): Promise<void>
    deliveries(
      id: string,
      page: { readonly limit: number; readonly before: string | undefined },
    ): Promise<readonly WebhookDelivery[]>
    again(id: string, delivery: string): Promise<WebhookDelivery>
  }
  readonly owners: {
    get(owner: string): Promise<KeptOwner>
    set(kept: KeptOwner): Promise<KeptOwner>
  }
}
