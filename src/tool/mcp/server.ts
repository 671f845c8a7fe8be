import type { Client, RequestOptions } from '@modelcontextprotocol/client'
import type { Secrets } from '../../base/secrets.ts'

/** A server as its tools use it. */
export interface Server {
  /** What no text of it may show. */
  readonly secrets: Secrets
  /** How long one call may take. */
  readonly timeoutMs: number
  /** Is the server gone that the last request was sent to? */
  readonly isLost: boolean
  /** One request; the server is started again first where it has ended. */
  request<T>(send: (client: Client, options: RequestOptions) => Promise<T>, options: RequestOptions): Promise<T>
}
