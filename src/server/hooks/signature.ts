import { createHmac, randomBytes } from 'node:crypto'

const PREFIX = 'whsec_'

/** A new secret in the form of Standard Webhooks. */
export function makeSecret(): string {
  return PREFIX + randomBytes(32).toString('base64')
}

/** The headers of Standard Webhooks: who gets the message can prove that it is ours, and when it was sent. */
export function signedHeaders(
  secret: string,
  {
    id,
    timestamp,
    body,
  }: {
    readonly id: string
    /** In seconds since 1970. */
    readonly timestamp: number
    readonly body: string
  },
): Readonly<Record<string, string>> {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': `v1,${signature}` }
}
