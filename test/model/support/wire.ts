import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { LLMock } from '@copilotkit/aimock'
import { stopMock } from '../../support/mock-provider.ts'

/** What happens to one answer on its way back. `events` are counted as the provider's stream has them. */
export type Fault =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** The connection breaks after so many events. */
  | { readonly dropAfter: number }
  /** The answer ends properly after so many events, as behind a proxy that gave up. */
  | { readonly endAfter: number }
  /** One event is not JSON. */
  | { readonly garbleAt: number }
  /** An event of the provider's own after so many others. */
  | { readonly insertAt: number; readonly event: string }
  | { readonly rewrite: (answer: string) => string }
  /** A few bytes at a time. */
  | { readonly dripMs: number }

export interface WireRequest {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Body
  /** Settles when the client hung up before the answer was complete. */
  readonly hungUp: Promise<void>
}

/** A request body, read by path. */
export interface Body {
  readonly [key: string]: unknown
}

/** A real provider stand-in behind a real proxy, which notes what was sent and spoils what comes back. */
export class Wire {
  readonly mock: LLMock = new LLMock({ port: 0, logLevel: 'silent' })
  readonly requests: WireRequest[] = []
  /** Why a request is refused with 400; undefined lets it through. */
  rules: ((body: Body) => string | undefined) | null = null
  private faults: (Fault | undefined)[] = []
  private readonly server: Server = createServer((request, response) => {
    this.answer(request, response).catch(() => response.destroy())
  })

  static async open(): Promise<Wire> {
    const wire = new Wire()
    await wire.mock.start()
    await new Promise<void>((resolve) => wire.server.listen(0, '127.0.0.1', resolve))
    return wire
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  /** For the next answers, in order; undefined lets one through. */
  spoil(...faults: readonly (Fault | undefined)[]): void {
    this.faults.push(...faults)
  }

  /** The bodies that were sent, in order. */
  get bodies(): Body[] {
    return this.requests.map(({ body }) => body)
  }

  reset(): void {
    this.mock.clearFixtures()
    this.mock.resetMatchCounts()
    this.requests.length = 0
    this.faults = []
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
    await stopMock(this.mock)
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await textOf(request)
    const hungUp = new Promise<void>((resolve) => {
      response.once('close', () => {
        if (!response.writableEnded) resolve()
      })
    })
    const { url: path = '', headers } = request
    this.requests.push({ path, headers, body: JSON.parse(sent || '{}'), hungUp })
    const refusal = this.rules?.(this.requests.at(-1)?.body ?? {})
    const fault = refusal === undefined ? this.faults.shift() : { status: 400, body: refusalBody(refusal) }
    if (fault !== undefined && 'status' in fault) {
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers })
      response.end(fault.body ?? JSON.stringify({ error: { message: `Status ${fault.status}, as asked.` } }))
      return
    }
    const upstream = await fetch(`${this.mock.url}${path}`, {
      method: request.method ?? 'POST',
      headers: { 'content-type': 'application/json' },
      ...(request.method === 'GET' ? {} : { body: sent }),
    })
    response.writeHead(upstream.status, { 'content-type': upstream.headers.get('content-type') ?? '' })
    await send(response, await upstream.text(), fault)
  }
}

function refusalBody(message: string): string {
  return JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', code: 400, status: '', message } })
}

async function send(response: ServerResponse, answer: string, fault: Fault | undefined): Promise<void> {
  const events = answer.split(/(?<=\n\n)/)
  if (fault === undefined) response.end(answer)
  else if ('rewrite' in fault) response.end(fault.rewrite(answer))
  else if ('endAfter' in fault) response.end(events.slice(0, fault.endAfter).join(''))
  else if ('garbleAt' in fault) response.end(garbled(events, fault.garbleAt).join(''))
  else if ('insertAt' in fault) response.end(events.toSpliced(fault.insertAt, 0, fault.event).join(''))
  else if ('dropAfter' in fault) {
    response.write(events.slice(0, fault.dropAfter).join(''))
    await sleep(50)
    response.destroy()
  } else if ('dripMs' in fault) {
    for (let at = 0; at < answer.length && !response.destroyed; at += 24) {
      response.write(answer.slice(at, at + 24))
      await sleep(fault.dripMs)
    }
    response.end()
  }
}

function garbled(events: readonly string[], at: number): string[] {
  return events.map((event, index) => (index === at ? event.replace(/data: .*/, 'data: {"broken": tru') : event))
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
