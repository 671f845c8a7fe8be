import { type ChildProcess, fork } from 'node:child_process'
import path from 'node:path'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface StartOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly uid?: number
  readonly cwd?: string
  /** What comes in; left out: nothing does. */
  readonly input?: string
}

/** One call of the program. */
export interface HostedCall {
  readonly program: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly input: string | undefined
}

/** Commands that go on until somebody stops them, or that are about the process that they are. */
const ALONE = ['acp', 'demo', 'mcp', 'open', 'serve', 'worker']
const FOLLOWS = ['-f', '--follow']
/** Once loaded, the code of a user stays, and so does what it left behind. */
const MODULE = /\.[cm]?[jt]s$/
/** Generous: only a test that fails waits so long. */
export const PATIENCE_MS = 20_000

/** Whether a call may run in the process of the calls before it, which ended by themselves. In full each has its own. */
export function isHosted(args: readonly string[], { uid, env = {} }: StartOptions): boolean {
  // Node reads its options when it starts.
  const isOwn = uid !== undefined || env['NODE_OPTIONS'] !== process.env['NODE_OPTIONS']
  if (isOwn || process.env['LEGATE_FULL'] === '1') return false
  return !args.some((arg) => ALONE.includes(arg) || FOLLOWS.includes(arg) || MODULE.test(arg))
}

let host: ChildProcess | undefined
let last: Promise<unknown> = Promise.resolve()

/** Calls come one after the other, as each has the environment and the outputs of the process for itself. */
export function callHost(call: HostedCall): Promise<Ended> {
  const ended = last.then(() => answerOf(call))
  last = ended.catch(() => undefined)
  return ended
}

function answerOf(call: HostedCall): Promise<Ended> {
  host ??= startHost()
  const asked = host
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      asked.kill('SIGKILL')
      host = undefined
      reject(new Error(`legate ${call.args.join(' ')} ${why}`))
    }
    const timer = setTimeout(() => fail('did not end'), PATIENCE_MS)
    const onExit = () => fail('took its process with it')
    asked.once('exit', onExit)
    asked.once('message', (ended) => {
      clearTimeout(timer)
      asked.off('exit', onExit)
      resolve(ended as Ended)
    })
    asked.send(call)
  })
}

function startHost(): ChildProcess {
  const started = fork(path.join(import.meta.dirname, '../programs/host.mjs'), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  started.unref()
  started.channel?.unref()
  return started
}
