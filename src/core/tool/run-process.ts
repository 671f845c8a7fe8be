import type { Readable } from 'node:stream'
import { onAbort } from '../base/abort.ts'
import { int, number, type OptionRules, readOptions, record, text } from '../base/options.ts'
import { type ProgramRequest, programRequest } from '../grant/request.ts'
import type { GroupedChild } from './process-group.ts'

export interface ProcessOptions {
  /** Pass `context.signal` of the tool: when it aborts, the program and its process group are ended. */
  readonly signal: AbortSignal
  /** The folder it runs in. Default: that of this process. */
  readonly cwd?: string
  /** Replaces the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Written to its standard input, which is then closed. */
  readonly input?: string
  /** How long the program may run. Default: no limit beside the tool's own. */
  readonly timeoutMs?: number
  /** How many bytes of each output to keep; the rest is dropped. Default 1 MiB. */
  readonly maxOutputBytes?: number
  /** How long the program may take to end after SIGTERM before it is killed. Default 250 ms. */
  readonly killAfterMs?: number
}

export interface ProcessResult {
  /** As in a shell: 127 for a program that does not exist, 128 plus the signal's number for one that was killed. */
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** True when the output was longer than the kept part. */
  readonly isCut: boolean
  /** True when it took longer than `timeoutMs` and was ended. */
  readonly timedOut: boolean
}

export const KILL_AFTER_MS = 250
const MAX_OUTPUT_BYTES = 1_048_576
const OPTIONS: OptionRules<ProcessOptions> = {
  signal: record,
  cwd: text,
  env: record,
  input: text,
  timeoutMs: number(0),
  maxOutputBytes: int(0),
  killAfterMs: number(0),
}
/** A process that left its group may hold the outputs open for ever, so nobody waits longer than this. */
const DRAIN_MS = 100

/**
 * Runs a program that ends with the call, together with its process group: when the call is stopped, when it takes
 * too long, when the program itself has ended, and when this process is killed. Rejects with the signal's reason after
 * all of the group is gone. A process that leaves the group (setsid, a daemon) goes on. Linux and macOS.
 */
export async function runProcess(
  command: string,
  args: readonly string[],
  options: ProcessOptions,
): Promise<ProcessResult> {
  return runProgram(programRequest([command, ...args]), readOptions('runProcess()', options, OPTIONS))
}

/** Runs the program of a request that was decided. */
export async function runProgram(request: ProgramRequest, options: ProcessOptions): Promise<ProcessResult> {
  options.signal.throwIfAborted()
  const group = await groups()
  const child = await group.startGroup(request, options)
  const most = options.maxOutputBytes ?? MAX_OUTPUT_BYTES
  const [stdout, stderr] = [new KeptOutput(child.stdout, most), new KeptOutput(child.stderr, most)]
  child.stdin.on('error', () => undefined) // a program need not read its input
  child.stdin.end(options.input ?? '')
  const { exitCode, timedOut } = await ended(child, options, group)
  options.signal.throwIfAborted()
  return { exitCode, stdout: stdout.text(), stderr: stderr.text(), isCut: stdout.isCut || stderr.isCut, timedOut }
}

/** Loaded with the first program. */
const groups = () => import('./process-group.ts')

type Groups = Awaited<ReturnType<typeof groups>>

function ended(
  child: GroupedChild,
  options: ProcessOptions,
  { signalGroup }: Groups,
): Promise<Pick<ProcessResult, 'exitCode' | 'timedOut'>> {
  return new Promise((resolve) => {
    let timedOut = false
    let killing: NodeJS.Timeout | undefined
    const stop = () => {
      signalGroup(child, 'SIGTERM')
      killing ??= setTimeout(() => signalGroup(child, 'SIGKILL'), options.killAfterMs ?? KILL_AFTER_MS)
    }
    const late = () => {
      timedOut = true
      stop()
    }
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(late, options.timeoutMs)
    const forget = onAbort(options.signal, stop)
    child.once('exit', (code) => {
      clearTimeout(timer)
      clearTimeout(killing)
      forget()
      signalGroup(child, 'SIGKILL') // ends what it left running in its group
      const done = () => {
        clearTimeout(draining)
        for (const stream of child.stdio) stream?.destroy()
        resolve({ exitCode: code ?? KILLED, timedOut })
      }
      // Looks at the outputs once more before it gives up: this process may have been busy all the time.
      const draining = setTimeout(() => setImmediate(done), DRAIN_MS)
      child.once('close', done)
    })
  })
}

/** The exit code of a program that was killed by SIGKILL. */
const KILLED = 137

/** Keeps the beginning of a stream as text. It reads and drops the rest, so that the writer never blocks. */
class KeptOutput {
  isCut = false
  private readonly chunks: Buffer[] = []
  private left: number

  constructor(stream: Readable, maxBytes: number) {
    this.left = maxBytes
    stream.on('data', (chunk: Buffer) => this.keep(chunk))
    stream.on('error', () => undefined) // what came before it is kept
  }

  /** Leaves out a character that was cut in two. */
  text(): string {
    return new TextDecoder().decode(Buffer.concat(this.chunks), { stream: this.isCut })
  }

  private keep(chunk: Buffer): void {
    if (chunk.length > this.left) this.isCut = true
    if (this.left === 0) return
    const kept = chunk.subarray(0, this.left)
    this.left -= kept.length
    this.chunks.push(kept)
  }
}
