import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Connection } from '../store/sqlite/driver.ts'
import { LOG } from './worker-log.ts'
import type { WorkerExit } from './worker-process.ts'

/** L8: no process of the case is left, and no file beside the database, its write-ahead log and the workers' log. */
export function leftBehind(database: string): string[] {
  const folder = dirname(database)
  const known = ['', '-wal', '-shm'].map((ending) => basename(database) + ending)
  const strays = readdirSync(folder).filter((file) => !known.includes(file) && file !== LOG)
  return [
    ...processesNaming(folder).map((pid) => `L8 the process ${pid} is left`),
    ...strays.map((file) => `L8 the file ${file} is left`),
  ]
}

/** L8: the database can be written at once, and nobody says that he still works on it. */
export function leftLocks(db: Connection): string[] {
  db.exec('PRAGMA busy_timeout = 0')
  db.exec('BEGIN IMMEDIATE')
  db.exec('ROLLBACK')
  const left = db.all('SELECT id FROM engines')
  const claimed = db.all('SELECT id FROM nodes WHERE engine_id IS NOT NULL')
  return [
    ...left.map(([id]) => `L8 the lease of engine ${id} is left`),
    ...claimed.map(([id]) => `L3 node ${id} is claimed by nobody`),
  ]
}

/** L9: a worker was killed, or ended by itself with code 0; it printed no error either way. */
export function brokenExits(exits: readonly WorkerExit[]): string[] {
  return exits.flatMap(({ pid, code, signal, errors }) => [
    ...(signal === 'SIGKILL' || (signal === null && code === 0)
      ? []
      : [`L9 worker ${pid} ended with ${signal ?? code}`]),
    ...(errors === '' ? [] : [`L9 worker ${pid} printed: ${errors.trim()}`]),
  ])
}

/** Workers are told their folder as an argument, so their command line has it. */
function processesNaming(folder: string): string[] {
  if (!existsSync('/proc/self/cmdline')) return []
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(folder))
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
