import type { Principal } from './principal.ts'

/** A token as it is listed: everything but its secret. */
export interface TokenInfo {
  readonly id: string
  readonly name: string
  readonly principal: Principal
  readonly createdAt: number
  /** When it ends, in milliseconds since 1970; null: never. */
  readonly expiresAt: number | null
  /** To the minute; null: never used. */
  readonly lastUsedAt: number | null
  /** The token that made it. */
  readonly parent: string | null
}

/** A token that was just made. Its text is shown once. */
export interface MadeToken {
  readonly token: string
  readonly info: TokenInfo
}

/** The tokens that were revoked, and the runs that were asked to stop with them. */
export interface RevokedTokens {
  readonly revoked: readonly string[]
  /** The ids of the runs. */
  readonly cancelled: readonly string[]
}
