import { type ChildProcess, fork } from 'node:child_process'
import path from 'node:path'
import type { Ended, StartOptions } from './cli.ts'

/** One call of the program. */
export interface HostedCall {
  readonly program: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly input: string | undefined
}

/** Commands that read a store or files, or write into them, and end. They run no agent and load no module of a user. */
const HOSTED = [
  'answer',
  'approvals',
  'approve',
  'audit',
  'cancel',
  'convert',
  'deny',
  'diff',
  'doctor',
  'edit',
  'export',
  'forget',
  'fork',
  'help',
  'import',
  'inbox',
  'log',
  'prune',
  'ps',
  'retry',
  'settle',
  'show',
  'token',
  'transcript',
  'tree',
  'validate',
  'why',
]
const FOLLOWS = ['-f', '--follow']
const PATIENCE_MS = 20_000

/**
 * Whether a call may run in the process of the calls before it. In full each has its own, and so have commands that run agents,
 * and those that follow a run: others would wait for them.
 */
export function isHosted(args: readonly string[], { uid }: StartOptions): boolean {
  const isAlone = process.env['LEGATE_FULL'] === '1' || uid !== undefined || args.some((arg) => FOLLOWS.includes(arg))
  return !isAlone && HOSTED.includes(args[0] ?? '')
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
