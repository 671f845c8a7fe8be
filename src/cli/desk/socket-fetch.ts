import { request } from 'node:http'
import { Readable } from 'node:stream'
import type { ConnectOptions } from '../../server/client/index.ts'

/** Sends requests to a server that listens on a Unix socket, as `fetch` does. */
export function socketFetch(socketPath: string): NonNullable<ConnectOptions['fetch']> {
  return (url, { method = 'GET', headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const { pathname, search } = new URL(url)
      const sent = request(
        {
          socketPath,
          path: pathname + search,
          method,
          headers: { ...(headers as Record<string, string>), host: 'localhost' },
          ...(signal == null ? {} : { signal }),
        },
        (answer) => {
          const { statusCode = 500 } = answer
          const isEmpty = statusCode === 204 || statusCode === 304
          const stream = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
          if (isEmpty) answer.resume()
          resolve(new Response(stream, { status: statusCode, headers: answer.headers as Record<string, string> }))
        },
      )
      sent.once('error', reject)
      sent.end(typeof body === 'string' ? body : undefined)
    })
}
