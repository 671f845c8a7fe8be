import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'

const command = path.resolve(import.meta.dirname, '../../../dist/cli/main.js')
const agents = path.resolve(import.meta.dirname, '../programs/queue-agents.mjs')

export interface CommandWorkerOptions {
  readonly url: string
  /** The queue that wakes it, if any. */
  readonly queue?: string
  /** Where it writes what its tools do. */
  readonly folder: string
}

/** `legate worker`, as somebody would start it. */
export class CommandWorker {
  /** Resolves when it works. */
  readonly ready: Promise<void>
  private readonly child: ChildProcess
  /** Resolves with how it ended. */
  readonly ended: Promise<number | string>
  private said = ''

  constructor({ url, queue, folder }: CommandWorkerOptions) {
    const args = [command, 'worker', '-m', agents, '--store', url, ...(queue === undefined ? [] : ['--queue', queue])]
    const env = { ...process.env, EFFECTS: path.join(folder, 'effects') }
    this.child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    this.ended = once(this.child, 'exit').then(([code, signal]) => code ?? signal)
    this.ready = new Promise((resolve, reject) => {
      const hear = (data: Buffer) => {
        this.said += String(data)
        if (this.said.includes(' works on ')) resolve()
      }
      this.child.stdout?.on('data', hear)
      this.child.stderr?.on('data', hear)
      this.ended.then((how) => reject(new Error(`it ended with ${how}: ${this.said}`)), reject)
    })
    this.ready.catch(() => undefined)
  }

  get output(): string {
    return this.said
  }

  kill(): void {
    this.child.kill('SIGKILL')
  }

  /** Drains it, and gives how it ended. */
  end(): Promise<number | string> {
    this.child.kill('SIGTERM')
    return this.ended
  }
}
