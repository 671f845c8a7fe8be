import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Lines of a shell that change something for the process and then become Node, which is `"$@"` there. */
export type Wrapper = readonly string[]

/** Runs what `start` starts with another program of Node: a shell that runs these lines. */
export function startedBy<T>(lines: Wrapper, start: () => T): T {
  const { execPath } = process
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-started-by-'))
  const file = path.join(folder, 'node')
  writeFileSync(file, `#!/bin/sh\nset -- '${execPath}' "$@"\n${lines.join('\n')}\n`, { mode: 0o755 })
  process.execPath = file
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  try {
    return start()
  } finally {
    process.execPath = execPath
  }
}

const MOUNT = 'mount -t proc -o hidepid=invisible proc /proc'
const AS_NOBODY = 'setpriv --reuid=65534 --regid=65534 --clear-groups'

/** Another user, for whom /proc has no processes but its own. */
export const HIDDEN: Wrapper = ['export HOME=/', `exec unshare -m sh -c '${MOUNT} && exec ${AS_NOBODY} "$@"' sh "$@"`]

/** Why no processes can be hidden here; undefined where they can. */
export function noHiding(): string | undefined {
  const look = startedBy(HIDDEN, () => {
    const code = `try { require('fs').statSync('/proc/${process.pid}') } catch (error) { console.log(error.code) }`
    return spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' })
  })
  return look.stdout === 'ENOENT\n' ? undefined : 'to hide processes in /proc needs root on Linux, unshare and setpriv'
}

/** A process that may have so few descriptors. */
export function withDescriptors(most: number): Wrapper {
  return [`ulimit -n ${most}`, 'exec "$@"']
}
