import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, createRuntime, type Principal, type Runtime, type RuntimeOptions } from 'legate'
import { type ServeOptions, type Server, serve } from 'legate/server'
import { scriptedModel } from 'legate/testing'
import { tokensOf } from '../../../src/server/http/handler.ts'
import { checkAnswer } from './check-answer.ts'

/** An agent that says one thing. */
export const greeter = agent({
  name: 'greeter',
  instructions: 'Greet.',
  model: scriptedModel(() => ({ text: 'Hello there, friend.' })),
})

export interface Setting {
  readonly runtime: Runtime
  readonly server: Server
  /** The token of this machine: may do everything. */
  readonly token: string
  /** Makes a token of a principal. */
  tokenFor(principal: Principal, expiresAt?: number): Promise<string>
  get(path: string, given?: Given): Promise<Response>
  post(path: string, body: unknown, given?: Given): Promise<Response>
  [Symbol.asyncDispose](): Promise<void>
}

export interface Given {
  readonly token?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly signal?: AbortSignal
}

/** A server on a free port, with a token file of its own. */
export async function startServer(options: ServeOptions = {}, runtimeOptions: RuntimeOptions = {}): Promise<Setting> {
  const folder = mkdtempSync(join(tmpdir(), 'legate-server-'))
  const runtime = createRuntime({ agents: [greeter], ...runtimeOptions })
  const reported: unknown[] = []
  const report = (error: unknown) => reported.push(error)
  const server = await serve(runtime, { port: 0, localTokenFile: join(folder, 'serve.token'), report, ...options })
  const own = server.token ?? ''
  const request = async (path: string, given: Given, body?: unknown) => {
    const asked = requestOf({ token: own, ...given }, body)
    const answer = await fetch(`${server.url}${path}`, asked)
    await checkAnswer(asked.method, path.split('?')[0] ?? '', answer)
    return answer
  }
  return {
    runtime,
    server,
    token: own,
    tokenFor: async (principal, expiresAt) =>
      (await tokensOf(runtime).make({ principal, ...(expiresAt === undefined ? {} : { expiresAt }) })).token,
    get: (path, given = {}) => request(path, given),
    post: (path, body, given = {}) => request(path, given, body),
    [Symbol.asyncDispose]: async () => {
      await server.close()
      await runtime.close()
      rmSync(folder, { recursive: true, force: true })
      // Whatever callers are not told of must not go unnoticed here.
      if (reported.length > 0) throw reported[0]
    },
  }
}

function requestOf({ token, headers, method, signal }: Given, body: unknown) {
  const hasBody = body !== undefined
  return {
    method: method ?? (hasBody ? 'POST' : 'GET'),
    headers: {
      ...(typeof token === 'string' ? { authorization: `Bearer ${token}` } : {}),
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(hasBody ? { body: typeof body === 'string' ? body : JSON.stringify(body) } : {}),
    ...(signal === undefined ? {} : { signal }),
  }
}
