import type { Readable } from 'node:stream'
import { onAbort } from '../base/abort.ts'
import { int, number, type OptionRules, readOptions, record, text } from '../base/options.ts'
import { type ProgramRequest, programRequest } from '../grant/request.ts'
import type { GroupedChild } from './process-group.ts'

export interface ProcessOptions {
  /** Hand in `context.signal` of the tool: when it aborts, the program and all it started are ended. */
  readonly signal: AbortSignal
  /** The folder it runs in. Default: that of this process. */
  readonly cwd?: string
  /** Instead of the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Written to its standard input, which is then closed. */
  readonly input?: string
  /** Default: no limit of its own; the tool has one. */
  readonly timeoutMs?: number
  /** How much of each of its outputs is kept; the rest is thrown away. Default 1 MiB. */
  readonly maxOutputBytes?: number
  /** How long it has to end after it was asked to (SIGTERM) before it is killed. Default 250 ms. */
  readonly killAfterMs?: number
}

export interface ProcessResult {
  /** As a shell says it: 127 for a program that is not there, 128 and the signal's number for one that was killed. */
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** There was more output than was kept. */
  readonly isCut: boolean
  /** It took longer than `timeoutMs` and was ended. */
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
/** A process that left its group may hold the outputs open for ever: nobody waits for it. */
const DRAIN_MS = 100

/**
 * Runs a program that ends with the call that runs it, and so does everything it starts: when it is asked to stop, when it
 * takes too long, when it has ended itself, and when this process is killed. Rejects with the signal's reason after all
 * of it is gone. What gives itself a session of its own (setsid) gets away. Linux and macOS.
 */
export async function runProcess(
  command: string,
  args: readonly string[],
  options: ProcessOptions,
): Promise<ProcessResult> {
  return runProgram(programRequest([command, ...args]), readOptions('runProcess()', options, OPTIONS))
}

/** The same for a request that was decided. */
export async function runProgram(request: ProgramRequest, options: ProcessOptions): Promise<ProcessResult> {
  options.signal.throwIfAborted()
  const group = await groups()
  const child = await group.startGroup(request, options)
  const most = options.maxOutputBytes ?? MAX_OUTPUT_BYTES
  const [stdout, stderr] = [new KeptOutput(child.stdout, most), new KeptOutput(child.stderr, most)]
  child.stdin.on('error', () => undefined) // a program need not read what it is given
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
      signalGroup(child, 'SIGKILL') // what it left running
      const done = () => {
        clearTimeout(draining)
        for (const stream of child.stdio) stream?.destroy()
        resolve({ exitCode: code ?? KILLED, timedOut })
      }
      // Not before the outputs have been looked at once more: this process may have been busy all the time.
      const draining = setTimeout(() => setImmediate(done), DRAIN_MS)
      child.once('close', done)
    })
  })
}

/** What a shell says of a program that was killed by SIGKILL. */
const KILLED = 137

/** The beginning of what a stream gives, as text. The rest is read and thrown away, so that nobody waits for room. */
class KeptOutput {
  isCut = false
  private readonly chunks: Buffer[] = []
  private left: number

  constructor(stream: Readable, maxBytes: number) {
    this.left = maxBytes
    stream.on('data', (chunk: Buffer) => this.keep(chunk))
    stream.on('error', () => undefined) // what came before it is kept
  }

  /** A character that was cut in two is left out. */
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
