import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { onAbort } from '../base/abort.ts'
import { messageOf, ToolError } from '../base/error.ts'
import { KeptOutput } from './kept-output.ts'

export interface ProcessOptions {
  /** Hand in `context.signal` of the tool: when it aborts, the program and all it started are ended. */
  readonly signal: AbortSignal
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
/** A process that left its group may hold the outputs open for ever: nobody waits for it. */
const DRAIN_MS = 100

/**
 * The leader of a process group: runs the program and gives its exit code. Beside it something waits for the other end of
 * fd 3 to close, which it does when this process dies, however it dies; then the whole group is killed.
 */
const LEADER = `exec 4<&0
"$@" <&4 3<&- 4<&- &
program=$!
(trap '' TERM; read _ <&3; kill -s KILL -- -$$) </dev/null >/dev/null 2>&1 4<&- &
watcher=$!
trap : TERM
exec </dev/null >/dev/null 2>&1 3<&- 4<&-
wait $program; code=$?
while kill -0 $program; do wait $program; code=$?; done
kill -s KILL $watcher; wait $watcher
exit $code`

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
  if (process.platform === 'win32') throw new ToolError('tool', 'runProcess needs Linux or macOS.')
  options.signal.throwIfAborted()
  const child = await start(command, args, options)
  const most = options.maxOutputBytes ?? MAX_OUTPUT_BYTES
  const [stdout, stderr] = [new KeptOutput(child.stdout, most), new KeptOutput(child.stderr, most)]
  child.stdin.on('error', () => undefined) // a program need not read what it is given
  child.stdin.end(options.input ?? '')
  const { exitCode, timedOut } = await ended(child, options)
  options.signal.throwIfAborted()
  return { exitCode, stdout: stdout.text(), stderr: stderr.text(), isCut: stdout.isCut || stderr.isCut, timedOut }
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>

async function start(command: string, args: readonly string[], { cwd, env }: ProcessOptions): Promise<Child> {
  const { spawn } = await import('node:child_process')
  try {
    const child = spawn('/bin/sh', ['-c', LEADER, 'sh', command, ...args], {
      detached: true, // a group of its own
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      ...(cwd === undefined ? {} : { cwd }),
      ...(env === undefined ? {} : { env }),
    }) as unknown as Child
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    return child
  } catch (error) {
    const where = cwd === undefined ? '' : ` in ${cwd} (is that folder there?)`
    const message = `${command} could not be started${where}: ${messageOf(error)}`
    throw new ToolError('tool', message, { cause: error })
  }
}

function ended(child: Child, options: ProcessOptions): Promise<Pick<ProcessResult, 'exitCode' | 'timedOut'>> {
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
      const draining = setTimeout(done, DRAIN_MS)
      child.once('close', done)
    })
  })
}

/** What a shell says of a program that was killed by SIGKILL. */
const KILLED = 137

function signalGroup({ pid }: Child, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // Nobody of the group is left.
  }
}
