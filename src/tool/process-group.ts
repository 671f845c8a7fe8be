import type { ChildProcessByStdio } from 'node:child_process'
import path from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { messageOf, ToolError } from '../base/error.ts'
import type { ProgramRequest } from '../grant/request.ts'

export type GroupedChild = ChildProcessByStdio<Writable, Readable, Readable>

export interface GroupOptions {
  readonly cwd?: string | undefined
  /** Instead of the environment of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

/**
 * The leader of a process group: runs the program and gives its exit code. Beside it something waits for the other end of
 * fd 3 to close, which it does when this process dies, however it dies; then the whole group is killed. It hears of no end
 * itself, from its first line on: the program may be asked to end as soon as it runs. `exec` starts programs only: a name
 * that the shell has a command of its own for is looked for like any other.
 */
const LEADER = `trap : TERM
exec 4<&0
exec "$@" <&4 3<&- 4<&- &
program=$!
(trap '' TERM; read _ <&3; kill -s KILL -- -$$) </dev/null >/dev/null 2>&1 4<&- &
watcher=$!
exec </dev/null >/dev/null 2>&1 3<&- 4<&-
wait $program; code=$?
while kill -0 $program; do wait $program; code=$?; done
kill -s KILL $watcher; wait $watcher
exit $code`

/**
 * The one place where a program is started: the argv of a request, which whoever asks for it has decided. In a process
 * group of its own, which dies with this process, however that dies. Linux and macOS.
 */
export async function startGroup({ argv }: ProgramRequest, { cwd, env }: GroupOptions): Promise<GroupedChild> {
  if (process.platform === 'win32') throw new ToolError('tool', 'Programs can be run on Linux and macOS only.')
  const { spawn } = await import('node:child_process')
  try {
    const child = spawn('/bin/sh', ['-c', LEADER, 'sh', ...argv], {
      detached: true, // a group of its own
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      ...(cwd === undefined ? {} : { cwd }),
      env: withSafePath(env ?? process.env),
    }) as unknown as GroupedChild
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    return child
  } catch (error) {
    const where = cwd === undefined ? '' : ` in ${cwd} (is that folder there?)`
    const message = `${argv[0]} could not be started${where}: ${messageOf(error)}`
    throw new ToolError('tool', message, { cause: error })
  }
}

/** Programs are looked for in folders that do not depend on where this one runs: a name means the same everywhere. */
function withSafePath(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PATH } = env
  if (PATH === undefined) return env
  const safe = PATH.split(path.delimiter).filter((folder) => path.isAbsolute(folder))
  // An empty PATH is the current folder.
  return { ...env, PATH: safe.length === 0 ? USUAL_PATH : safe.join(path.delimiter) }
}

const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin'

/** To all of the group. */
export function signalGroup({ pid }: GroupedChild, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // Nobody of the group is left.
  }
}
