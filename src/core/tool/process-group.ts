import type { ChildProcessByStdio } from 'node:child_process'
import path from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { messageOf, ToolError } from '../base/error.ts'
import type { ProgramRequest } from '../grant/request.ts'
import { withNeutralGit } from './git-environment.ts'

export type GroupedChild = ChildProcessByStdio<Writable, Readable, Readable>

export interface GroupOptions {
  readonly cwd?: string | undefined
  /** Replaces the environment of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

/**
 * The script of the group's leader, which runs the program and returns its exit code. Beside it a helper waits for the
 * other end of fd 3 to close, which happens when this process dies in any way; then it kills the whole group. The
 * leader ignores SIGTERM from its first line on, because the program may be asked to end as soon as it runs. `exec`
 * starts programs only: names of shell commands are looked up like any other.
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
 * The one place that starts a program: the argv and the variables of a request that the caller has decided. It runs in its own
 * process group, which dies with this process in every case, and in an environment where git starts nothing that a repository
 * names. Linux and macOS.
 */
export async function startGroup(
  { argv, variables }: ProgramRequest,
  { cwd, env }: GroupOptions,
): Promise<GroupedChild> {
  if (process.platform === 'win32') throw new ToolError('tool', 'Programs can be run on Linux and macOS only.')
  const { spawn } = await import('node:child_process')
  const safeEnv = await withNeutralGit(withSafePath({ ...(env ?? process.env), ...variables }))
  try {
    const child = spawn('/bin/sh', ['-c', LEADER, 'sh', ...argv], {
      detached: true, // a group of its own
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      ...(cwd === undefined ? {} : { cwd }),
      env: safeEnv,
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

/** Removes relative folders from PATH, so that a program's name means the same in every folder. */
function withSafePath(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PATH } = env
  if (PATH === undefined) return env
  const safe = PATH.split(path.delimiter).filter((folder) => path.isAbsolute(folder))
  // An empty PATH would mean the current folder.
  return { ...env, PATH: safe.length === 0 ? USUAL_PATH : safe.join(path.delimiter) }
}

const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin'

/** Sends the signal to the whole group. */
export function signalGroup({ pid }: GroupedChild, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // The whole group has ended.
  }
}
