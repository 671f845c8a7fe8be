import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { agent } from 'legate'
import { mcpServer, type StdioServerOptions } from 'legate/mcp'
import { scriptedModel } from 'legate/testing'
import type { Sources } from 'legate/tools'
import { onTestFinished } from 'vitest'
import { until } from '../../support/process.ts'

const require = createRequire(import.meta.url)

/** The file of a server that was installed. */
export function serverFile(name: 'everything' | 'filesystem' | 'memory'): string {
  return path.join(path.dirname(require.resolve(`@modelcontextprotocol/server-${name}/package.json`)), 'dist/index.js')
}

let marks = 0

/** A word that only the processes of one test have in their command lines. */
export function mark(): string {
  return `legate-mcp-${process.pid}-${marks++}`
}

/** The processes that have a word in their command line and are no zombies. */
export function running(word: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return command.includes(word) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    } catch {
      return false
    }
  })
}

/** Those that are the server itself, not the shell that leads its group. */
export function servers(word: string): string[] {
  return running(word).filter((pid) => {
    try {
      return path.basename(readlinkSync(`/proc/${pid}/exe`)) === 'node'
    } catch {
      return false
    }
  })
}

export function noneRunning(word: string): Promise<true> {
  return until(`no process ${word}`, () => running(word).length === 0)
}

/** One of ours that misbehaves: see programs/server.mjs. */
export function oddServer(mode: string, options: Partial<StdioServerOptions> = {}) {
  const file = path.join(import.meta.dirname, 'programs/server.mjs')
  const { args = [], ...others } = options
  return mcpServer({ command: 'node', args: [file, mode, ...args], startTimeoutMs: 10_000, ...others } as never)
}

export function everything(options: Partial<StdioServerOptions> = {}) {
  const { args = [], ...others } = options
  return mcpServer({ command: 'node', args: [serverFile('everything'), 'stdio', ...args], ...others } as never)
}

export const MAY_START = { use: ['tool:*', 'agent:*', 'model:*', 'exec:node *', 'net:*'] }

/** An agent that makes calls one after the other and then ends. */
export function caller(sources: Sources, calls: readonly [name: string, input: unknown][], grant: object = MAY_START) {
  const turns = calls.map(([name, input]) => ({ calls: [{ name, input: input as never }] }))
  const model = scriptedModel([...turns, 'Done.'])
  return { model, who: agent({ name: 'caller', instructions: 'You call.', model, sources, grant }) }
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** A program that serves HTTP until the test ends; given when it is there. */
export async function startHttp(
  args: readonly string[],
  port: number,
  env: Readonly<Record<string, string>> = {},
): Promise<ChildProcess> {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env, PORT: String(port) }, stdio: 'ignore' })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const url = `http://127.0.0.1:${port}/mcp`
  for (const giveUpAt = Date.now() + 15_000; ; ) {
    const there = await fetch(url).then(
      async (response) => {
        await response.body?.cancel()
        return true
      },
      () => false,
    )
    if (there) return child
    if (Date.now() > giveUpAt) throw new Error(`nothing serves ${url}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

interface Seen {
  readonly path: string
  readonly authorization: string | undefined
}

/** A server of HTTP until the test ends, and what it was asked. */
export async function listen(answer: Parameters<typeof createHttpServer>[1] & object) {
  const seen: Seen[] = []
  const server = createHttpServer((request, response) => {
    seen.push({ path: request.url ?? '', authorization: request.headers.authorization })
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen }
}
