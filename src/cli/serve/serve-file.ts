// The file `serve.json` beside a store, or in the user's state folder for a database: how other commands find the server of the store.
// It has a line for each server of the folder, the newest last.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
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

/** Adds a server to the file, which only its user can read. */
export function writeServeFile(server: RunningServer): void {
  const file = fileBeside(server.store)
  if (isPostgresUrl(server.store)) mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeServers(file, [...othersIn(file), server])
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

/** Removes this process from the file; the last one removes the file. */
export function removeServeFile(store: string): void {
  const file = fileBeside(store)
  writeServers(file, othersIn(file))
  rmSync(join(dirname(file), LEADING), { force: true })
}

/** Finds the server of a store, of several the one that was started last; undefined if none runs. */
export function findServer(store: string): RunningServer | undefined {
  return readServers(fileBeside(store)).findLast((one) => one.store === placeOf(store) && isAlive(one.pid))
}

/** The servers of other processes that live. */
function othersIn(file: string): RunningServer[] {
  return readServers(file).filter(({ pid }) => pid !== process.pid && isAlive(pid))
}

/** A file that is there would keep its mode: a new one takes its place at once. */
function writeServers(file: string, servers: readonly RunningServer[]): void {
  if (servers.length === 0) return rmSync(file, { force: true })
  const written = `${file}.${process.pid}`
  rmSync(written, { force: true })
  writeFileSync(written, servers.map((server) => `${JSON.stringify(server)}\n`).join(''), { mode: 0o600 })
  renameSync(written, file)
}

function placeOf(store: string): string {
  return isPostgresUrl(store) ? store : resolve(store)
}

function fileBeside(store: string): string {
  if (!isPostgresUrl(store)) return join(dirname(resolve(store)), 'serve.json')
  return join(stateFolder(process.env), `serve-${encodeURIComponent(store).replaceAll('%', '_').slice(0, 200)}.json`)
}

function readServers(file: string): RunningServer[] {
  try {
    return readFileSync(file, 'utf8').split('\n').flatMap(serverIn)
  } catch {
    return []
  }
}

function serverIn(line: string): RunningServer[] {
  const read = parseJson(line)
  const { url, pid, store } = Object(read.ok ? read.value : null) as Partial<RunningServer>
  const isWhole = typeof url === 'string' && typeof pid === 'number' && typeof store === 'string'
  return isWhole ? [{ url, pid, store }] : []
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
