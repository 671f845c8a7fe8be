// The file `serve.json` beside a store, or in the user's state folder for a database: how other commands find the server of the store.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseJson } from '../../base/json.ts'
import { isPostgresUrl } from '../../store/postgres/index.ts'
import { stateFolder } from '../store/open-store.ts'

/** A server that runs on this machine. */
export interface RunningServer {
  /** Its address with the token of this machine; `unix:PATH` where it listens on a socket. */
  readonly url: string
  readonly pid: number
  /** The file of its store, or the address of its database without the password. */
  readonly store: string
}

/** Writes the file, readable only by its user. The newest server of a folder is the one that is found. */
export function writeServeFile(server: RunningServer): void {
  const file = fileBeside(server.store)
  if (isPostgresUrl(server.store)) mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // A file that is there keeps its mode when it is written again.
  rmSync(file, { force: true })
  writeFileSync(file, `${JSON.stringify(server)}\n`, { mode: 0o600 })
}

/**
 * Writes a page beside the store that leads to an address. Whoever lists the processes of this machine sees what a browser is
 * started with: the address holds the token, and the name of a file does not.
 */
export function writeLeadingPage(store: string, url: string): string {
  const file = join(dirname(resolve(store)), LEADING)
  rmSync(file, { force: true })
  const text = url.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${text}">\n`, { mode: 0o600 })
  return file
}

const LEADING = 'serve.html'

/** Removes the file, unless it is another server's by now. */
export function removeServeFile(store: string): void {
  const file = fileBeside(store)
  if (readServer(file)?.pid !== process.pid) return
  rmSync(file, { force: true })
  rmSync(join(dirname(file), LEADING), { force: true })
}

/** Finds the server of a store; undefined if none runs. */
export function findServer(store: string): RunningServer | undefined {
  const found = readServer(fileBeside(store))
  return found !== undefined && found.store === placeOf(store) && isAlive(found.pid) ? found : undefined
}

function placeOf(store: string): string {
  return isPostgresUrl(store) ? store : resolve(store)
}

function fileBeside(store: string): string {
  if (!isPostgresUrl(store)) return join(dirname(resolve(store)), 'serve.json')
  return join(stateFolder(process.env), `serve-${encodeURIComponent(store).replaceAll('%', '_').slice(0, 200)}.json`)
}

function readServer(file: string): RunningServer | undefined {
  try {
    const read = parseJson(readFileSync(file, 'utf8'))
    const { url, pid, store } = Object(read.ok ? read.value : null) as Partial<RunningServer>
    const isWhole = typeof url === 'string' && typeof pid === 'number' && typeof store === 'string'
    return isWhole ? { url, pid, store } : undefined
  } catch {
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
