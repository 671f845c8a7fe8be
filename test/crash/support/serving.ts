import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ClientError, connect, type LegateClient } from 'legate/client'
import { CrashCase, type KillPoint, type OutsideCounter, type WorkerProcess } from 'legate/testing'
import { programFile } from './program.ts'

/** What a process of `programs/serving` is. */
export interface ServingRole {
  /** Where it listens; null: it does not. */
  readonly port: number | null
  readonly tokenFile: string
  readonly workers: number
  /** True: the engine has its usual times, as in a program of a user. */
  readonly isUsual?: boolean
}

const POST_MS = 5_000

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => {
    server.close(resolve)
  })
  return port
}

/** Processes that serve one store, and clients of theirs. */
export class ServingCase {
  readonly crash: CrashCase
  private readonly tokenFile: string

  constructor(counter: OutsideCounter, folder: string) {
    this.crash = new CrashCase({ program: programFile('serving'), counter, maxWorkers: 10_000, timeoutMs: 120_000 })
    this.tokenFile = path.join(folder, `${path.basename(this.crash.folder)}.token`)
  }

  /** Starts a process, and resolves when it serves, or is gone. */
  async start(given: Omit<ServingRole, 'tokenFile'>, killAt?: KillPoint): Promise<WorkerProcess> {
    const role = JSON.stringify({ ...given, tokenFile: this.tokenFile })
    const worker = this.crash.start(killAt === undefined ? { role } : { role, killAt })
    await worker.hears('serving')
    return worker
  }

  /** Ends processes as an operator does. */
  async stop(...workers: readonly WorkerProcess[]): Promise<void> {
    for (const worker of workers) worker.signal('SIGTERM')
    for (const worker of workers) await this.crash.ended(worker)
  }

  /** A client of the server at this port, or at whichever port the function gives at the time. */
  client(port: number | (() => number)): LegateClient {
    const portOf = typeof port === 'number' ? () => port : port
    const fetch = (url: string, init: RequestInit) => {
      const to = new URL(url)
      to.port = String(portOf())
      // A request that was under way when the server was killed may never end: whoever changes something asks again.
      const limit = init.method === 'POST' ? { signal: AbortSignal.timeout(POST_MS) } : {}
      return globalThis.fetch(to, { ...init, ...limit })
    }
    return connect({ url: 'http://127.0.0.1', token: readFileSync(this.tokenFile, 'utf8').trim(), fetch })
  }
}

/** Does it again until a server has answered. */
export async function untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!mayPass(error)) throw error
      await sleep(10 + Math.random() * 40)
    }
  }
}

/** No server is there, it went while it answered, or it is about to go. */
function mayPass(error: unknown): boolean {
  return error instanceof ClientError && (error.status === 0 || error.status === 503)
}
