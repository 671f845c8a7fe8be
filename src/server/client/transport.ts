// One request: its address, its headers, and its answer or error.

import { ClientError, errorOf } from './error.ts'
import { readJson } from './read-json.ts'

/** How to reach a server. */
export interface ConnectOptions {
  /** The address of the server, with or without a path: `https://example.com/legate`. */
  readonly url: string | URL
  /** The token, or a function that gives it for each request. Left out where none is needed, such as behind a proxy. */
  readonly token?: string | (() => string | Promise<string>)
  /** Headers of each request, or a function that gives them: for a program that knows its callers by a header of its own. */
  readonly headers?: HeaderList | (() => HeaderList | Promise<HeaderList>)
  /** Your `fetch`. Default: that of the platform. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
}

type HeaderList = Readonly<Record<string, string>>

/** Values of a query; those that are undefined are left out, and lists become words with commas. */
export interface QueryValues {
  readonly [name: string]: string | number | boolean | readonly string[] | undefined
}

/** The parts of a request. */
export interface RequestParts {
  /** The method. Default `GET`. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The values of the query. */
  readonly query?: QueryValues | undefined
  /** The body, sent as JSON. */
  readonly body?: unknown
  /** A body of lines instead of JSON. */
  readonly lines?: string
  /** Headers beside the usual ones. */
  readonly headers?: Readonly<Record<string, string>>
  /** Gives the request up. */
  readonly signal?: AbortSignal | undefined
}

/** Sends requests to one server. */
export class ServerRequests {
  private readonly base: string
  private readonly token: ConnectOptions['token']
  private readonly headers: ConnectOptions['headers']
  private readonly fetch: NonNullable<ConnectOptions['fetch']>

  constructor({ url, token, headers, fetch }: ConnectOptions) {
    const { origin, pathname } = addressOf(url)
    this.base = origin + pathname.replace(/\/+$/, '')
    this.token = token
    this.headers = headers
    this.fetch = fetch ?? ((to, init) => globalThis.fetch(to, init))
  }

  /** The answer, whatever its status. Throws a `ClientError` where there is none, and the reason of the signal. */
  async send(path: string, parts: RequestParts = {}): Promise<Response> {
    const { method = 'GET', signal } = parts
    const url = this.base + path + queryOf(parts.query)
    const body = parts.lines ?? (parts.body === undefined ? undefined : JSON.stringify(parts.body))
    const init: RequestInit = { method, headers: await this.headersOf(parts), redirect: 'error' }
    try {
      return await this.fetch(url, {
        ...init,
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
      })
    } catch (error) {
      signal?.throwIfAborted()
      const message = `${this.base} cannot be reached: ${reasonOf(error)}.`
      throw new ClientError(message, { status: 0, code: 'unreachable' }, error)
    }
  }

  /** The answer of a request that succeeded; else a `ClientError`. */
  async success(path: string, parts: RequestParts = {}): Promise<Response> {
    const response = await this.send(path, parts)
    if (response.ok) return response
    throw await errorOf(response)
  }

  /** The text of an answer. */
  async text(path: string, parts: RequestParts = {}): Promise<string> {
    return (await this.read(path, parts)).text
  }

  private async read(path: string, parts: RequestParts): Promise<{ readonly text: string; readonly status: number }> {
    const response = await this.success(path, parts)
    try {
      return { text: await response.text(), status: response.status }
    } catch (error) {
      parts.signal?.throwIfAborted()
      throw new ClientError(`${this.base} was lost in the middle of its answer.`, { status: 0, code: 'cut' }, error)
    }
  }

  /** The JSON of an answer. */
  async json<Answer>(path: string, parts: RequestParts = {}): Promise<Answer> {
    const { text, status } = await this.read(path, parts)
    const value = text === '' ? null : readJson(text)
    if (value !== undefined) return value as Answer
    const message = `The answer of ${path} is not JSON: is ${this.base} the address of a Legate server?`
    throw new ClientError(message, { status, code: 'no_json' })
  }

  private async headersOf({ headers, body, lines }: RequestParts): Promise<Record<string, string>> {
    const token = typeof this.token === 'function' ? await this.token() : this.token
    const own = typeof this.headers === 'function' ? await this.headers() : this.headers
    return {
      accept: 'application/json',
      ...own,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(lines === undefined ? {} : { 'content-type': 'application/x-ndjson' }),
      ...headers,
    }
  }
}

function addressOf(url: string | URL): URL {
  const address = URL.canParse(String(url)) ? new URL(url) : undefined
  if (address?.protocol === 'http:' || address?.protocol === 'https:') return address
  const message = `connect({ url }): ${JSON.stringify(String(url))} is not an address. Write it with http:// or https:// in front.`
  throw new ClientError(message, { status: 0, code: 'invalid_url' })
}

/** Why nothing answered. Browsers do not say more than that. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = Reflect.get(Object(cause), 'code')
  const known = typeof code === 'string' ? REASONS[code] : undefined
  if (known !== undefined) return known
  const said = (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, '')
  return said === '' ? (typeof code === 'string' ? code : 'nothing says why') : said
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no server listens there (ECONNREFUSED)',
  ENOTFOUND: 'its name is not known (ENOTFOUND)',
  EAI_AGAIN: 'its name could not be looked up (EAI_AGAIN)',
  ETIMEDOUT: 'it did not answer in time (ETIMEDOUT)',
  ECONNRESET: 'it closed the connection (ECONNRESET)',
}

function queryOf(query: QueryValues = {}): string {
  const words = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    words.append(name, Array.isArray(value) ? value.join(',') : String(value))
  }
  const text = words.toString()
  return text === '' ? '' : `?${text}`
}

/** A path of which each `{}` stands for one value. */
export function pathOf(pattern: string, ...values: readonly string[]): string {
  let at = 0
  return pattern.replaceAll('{}', () => encodeURIComponent(values[at++] ?? ''))
}
