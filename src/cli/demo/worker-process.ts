import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** The worker as the demo's first process holds it: one at a time, killed at will, never left alone. */
export class WorkerProcess {
  /** A worker ended by itself, and not well. */
  onFailure: (message: string) => void = () => undefined
  private readonly entry: string
  private readonly folder: string
  private child: ChildProcess | undefined
  private gone: Promise<unknown> = Promise.resolve()

  constructor(entry: string, folder: string) {
    this.entry = entry
    this.folder = folder
  }

  /** Resolves when the worker that was started last has ended. */
  get ended(): Promise<unknown> {
    return this.gone
  }

  start(): number {
    const child = fork(this.entry, ['demo-worker', this.folder], {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.child = child
    this.gone = once(child, 'exit')
    child.once('error', ({ message }) => this.onFailure(message))
    child.once('exit', (code, signal) => {
      if (this.child === child && code !== 0) this.onFailure(`its worker ended with ${signal ?? code}.`)
    })
    return child.pid ?? 0
  }

  /** Gives the pid of what was killed. */
  async kill(): Promise<number> {
    const pid = this.child?.pid ?? 0
    this.end()
    await this.gone
    return pid
  }

  end(): void {
    const { child } = this
    this.child = undefined
    child?.kill('SIGKILL')
  }
}
