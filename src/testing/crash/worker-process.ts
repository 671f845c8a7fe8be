import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Readable } from 'node:stream'

/** How a worker process ended. */
export interface WorkerExit {
  readonly pid: number
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Its output on stderr; empty unless something is wrong. */
  readonly errors: string
  /** Whether it exceeded its time and was killed for that. */
  readonly isOverdue: boolean
}

export interface WorkerStart {
  /** A file that Node can run; it calls `crashWorker`. */
  readonly program: string
  readonly argument: string
  /** The log, opened for appending as the worker's descriptor 3. */
  readonly log: string
  readonly nodeOptions: readonly string[]
  /** The time after which a worker is killed. */
  readonly timeoutMs: number
}

/** A worker process as the test sees it from outside. */
export class WorkerProcess {
  readonly pid: number
  readonly ended: Promise<WorkerExit>
  private readonly child: ChildProcess
  private readonly said: string[] = []
  private readonly listeners: Set<() => void> = new Set()
  private rest = ''
  private isOver = false

  constructor({ program, argument, log, nodeOptions, timeoutMs }: WorkerStart) {
    const descriptor = openSync(log, 'a')
    const stdio = ['ignore', 'pipe', 'pipe', descriptor] as const
    this.child = spawn(process.execPath, [...nodeOptions, program, argument], { stdio: [...stdio] })
    closeSync(descriptor)
    outlive(this.child)
    this.pid = this.child.pid ?? 0
    this.child.stdout?.on('data', (data: Buffer) => this.hear(String(data)))
    this.ended = this.end(timeoutMs)
  }

  /** Sends a signal; does nothing if the worker is gone. */
  signal(name: NodeJS.Signals): void {
    this.child.kill(name)
  }

  /** Waits until the worker prints this line or is gone. Returns true if it printed it. */
  async hears(line: string): Promise<boolean> {
    while (!this.said.includes(line) && !this.isOver) {
      await new Promise<void>((resolve) => this.listeners.add(resolve))
    }
    return this.said.includes(line)
  }

  private hear(data: string): void {
    const lines = (this.rest + data).split('\n')
    this.rest = lines.pop() ?? ''
    this.said.push(...lines)
    this.wake()
  }

  private wake(): void {
    for (const listener of this.listeners) listener()
    this.listeners.clear()
  }

  private async end(timeoutMs: number): Promise<WorkerExit> {
    let isOverdue = false
    const timer = setTimeout(() => {
      isOverdue = true
      this.child.kill('SIGKILL')
    }, timeoutMs)
    const errors = textOf(this.child.stderr)
    const exit = await new Promise<Pick<WorkerExit, 'code' | 'signal'>>((resolve, reject) => {
      this.child.once('error', reject)
      this.child.once('close', (code, signal) => resolve({ code, signal }))
    })
    clearTimeout(timer)
    this.isOver = true
    this.wake()
    return { pid: this.pid, ...exit, errors: await errors, isOverdue }
  }
}

const living: Set<ChildProcess> = new Set()

/** Kills the worker when the test process ends, even a stopped one. */
function outlive(child: ChildProcess): void {
  if (living.size === 0) process.once('exit', killLiving)
  living.add(child)
  child.once('exit', () => {
    living.delete(child)
    if (living.size === 0) process.off('exit', killLiving)
  })
}

function killLiving(): void {
  for (const child of living) child.kill('SIGKILL')
}

async function textOf(stream: Readable | null): Promise<string> {
  let text = ''
  for await (const data of stream ?? []) text += String(data)
  return text
}
