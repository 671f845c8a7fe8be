import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { Redaction } from './secrets.ts'

/** A server as its tools use it. */
export interface Server {
  readonly redaction: Redaction
  /** How long one call may take. */
  readonly timeoutMs: number
  /** Is the server gone that the last request was sent to? */
  readonly isLost: boolean
  /** One request; the server is started again first where it has ended. */
  request<T>(send: (client: Client, options: RequestOptions) => Promise<T>, options: RequestOptions): Promise<T>
}
