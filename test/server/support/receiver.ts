import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

/** A message that arrived. */
export interface Arrived {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> }
}

/** What a receiver does with a message: a status, or nothing ever. */
export type Manner = (message: Arrived, nth: number) => number | 'silent' | Promise<number | 'silent'>

/** A real HTTP server that takes webhooks. */
export class Receiver {
  readonly arrived: Arrived[] = []
  url = ''
  manner: Manner = () => 204
  /** How many were being answered at the same time, at most. */
  most = 0
  headers: Record<string, string> = {}
  private now = 0
  private readonly http = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', async () => {
      const text = Buffer.concat(parts).toString()
      const message = { path: request.url ?? '', headers: request.headers, text, body: JSON.parse(text) }
      this.arrived.push(message)
      this.most = Math.max(this.most, ++this.now)
      const status = await this.manner(message, this.arrived.length)
      this.now--
      if (status === 'silent') return
      response.writeHead(status, this.headers).end('ok')
    })
  })

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.http.listen(port, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}/hook`
    return this
  }

  async close(): Promise<void> {
    this.http.closeAllConnections()
    await new Promise((resolve) => this.http.close(resolve))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Resolves when so many have arrived. */
  async until(isEnough: (arrived: readonly Arrived[]) => boolean, timeoutMs = 15_000): Promise<readonly Arrived[]> {
    const until = Date.now() + timeoutMs
    while (!isEnough(this.arrived)) {
      if (Date.now() > until)
        throw new Error(
          `Only ${this.arrived.length} came: ${JSON.stringify(this.arrived.map(({ body }) => body)).slice(0, 5_000)}`,
        )
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return this.arrived
  }
}

/** The body of a message, checked by a library of others. Throws where the signature is wrong. */
export function verified(secret: string, { text, headers }: Arrived): Arrived['body'] {
  return new Webhook(secret).verify(text, headers as Record<string, string>) as Arrived['body']
}
