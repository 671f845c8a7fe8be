import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { dist, toJavaScript } from '../../support/program.ts'
import { tempFolder } from '../../support/temp-folder.ts'

/** A server in a process of its own, with a small heap. */
export interface SmallServer {
  readonly url: string
  readonly token: string
  /** Undefined while it lives; else its exit code, or the signal that ended it. */
  readonly end: string | number | undefined
  request(path: string, given?: SmallRequest): Promise<Response>
  /** What was asked and answered as JSON. */
  json<Answer>(path: string, given?: SmallRequest): Promise<Answer>
  /** A token of this machine's owner makes one for another. */
  tokenFor(principal: object): Promise<string>
  stop(): Promise<void>
}

export interface SmallRequest {
  readonly token?: string
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface SmallOptions {
  /** Where rows.db is, or shall be. */
  readonly place: string
  /** Megabytes. */
  readonly heap?: number
  /** What stands in the program before the server: it may define `agents`, `options` and `store`. */
  readonly source?: string
}

const HEAD = `
  import { agent, createRuntime, tool } from 'legate'
  import { serve } from 'legate/server'
  import { memoryStore } from 'legate/store/memory'
  import { sqliteStore } from 'legate/store/sqlite'
  const { LEGATE_PLACE: place } = process.env
  const said = (text) => ({
    id: 'test/model',
    async *stream() {
      yield { type: 'text-delta', text: typeof text === 'function' ? text() : text }
      yield { type: 'finish', reason: 'stop', usage: null }
    },
  })
  let store = () => sqliteStore(place + '/rows.db')
  let agents = [agent({ name: 'greeter', instructions: 'Greet.', model: said('Hello.') })]
  let options = {}
`
const TAIL = `
  const runtime = createRuntime({ store: store(), agents })
  const server = await serve(runtime, { port: 0, localTokenFile: place + '/token', report: () => undefined, ...options })
  console.log(JSON.stringify({ url: server.url, token: server.token }))
`

/** Starts it from the built package. It is stopped when the test has finished. */
export async function startSmall({ place, heap = 512, source = '' }: SmallOptions): Promise<SmallServer> {
  const folder = tempFolder(onTestFinished, dist)
  const file = path.join(folder, 'server.mjs')
  writeFileSync(file, toJavaScript(HEAD + source + TAIL))
  const child = spawn(process.execPath, [`--max-old-space-size=${heap}`, file], {
    env: { ...process.env, LEGATE_PLACE: place },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const state: { end?: string | number; errors: string } = { errors: '' }
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    state.errors = (state.errors + text).slice(-4_000)
  })
  child.once('exit', (code, signal) => {
    state.end = code ?? signal ?? 0
  })
  onTestFinished(() => stop(child))
  const line = await firstLine(child)
  if (line === undefined) throw new Error(`The server did not start: ${state.errors}`)
  const { url, token } = JSON.parse(line) as { url: string; token: string }
  const request = (at: string, { token: own = token, body, headers, ...init }: SmallRequest = {}) =>
    fetch(url + at, {
      ...init,
      method: init.method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        authorization: `Bearer ${own}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const json = async <Answer>(at: string, given?: SmallRequest) => {
    const answer = await request(at, given)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${at} ${answer.status} ${text.slice(0, 500)}`)
    return JSON.parse(text) as Answer
  }
  return {
    url,
    token,
    request,
    json,
    get end() {
      return state.end
    },
    tokenFor: async (principal) => (await json<{ token: string }>('/v1/tokens', { body: { principal } })).token,
    stop: () => stop(child),
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
}

async function firstLine(child: ChildProcess): Promise<string | undefined> {
  if (child.stdout === null) return undefined
  for await (const line of createInterface({ input: child.stdout })) return line
  return undefined
}

/** Asks for nothing again and again while work is done: the longest that an answer took, in milliseconds. */
export async function longestWait<Done>(server: SmallServer, work: Promise<Done>): Promise<{ ms: number; done: Done }> {
  const state = { isOver: false, ms: 0 }
  const asking = (async () => {
    while (!state.isOver) {
      const began = performance.now()
      await (await fetch(`${server.url}/health`)).arrayBuffer()
      state.ms = Math.max(state.ms, performance.now() - began)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })()
  try {
    const done = await Promise.race([work, asking.then(() => work)])
    return { ms: state.ms, done }
  } finally {
    state.isOver = true
    await asking.catch(() => undefined)
  }
}
