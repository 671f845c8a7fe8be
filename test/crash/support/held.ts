import { tmpdir } from 'node:os'
import path from 'node:path'

/** While this file is there, the worker stands still. */
export function heldFile(pid: number): string {
  return path.join(tmpdir(), `legate-held-${pid}`)
}
