// How other commands find the server of a store: `serve-PID.json` in the user's state folder, a file for each server.
//
// Stays true:
// - No token is in it: whoever opens the page of a server reads the token of this machine from its own file.
// - A file counts only where no other user can have written it, and while the very process lives that wrote it.

import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseJson } from '../../core/base/json.ts'
import { isLoopback } from '../../core/base/loopback.ts'
import { ownFile } from '../../core/base/system/own-files.ts'
import { stateFolder } from '../../core/base/system/user-folders.ts'
import { isProvenAlive, type ProcessProof, proveSelf } from '../../core/store/process-proof.ts'
import { isPostgresUrl } from '../../stores/postgres/index.ts'
import type { Call } from '../command/command.ts'

/** A server that runs on this machine. */
export interface RunningServer {
  /** `http://127.0.0.1:4747`, without a token; `unix:PATH` where it listens on a socket. */
  readonly address: string
  /** True: it takes the token of this machine. */
  readonly takesToken: boolean
  /** The file of its store, or the address of its database without the password. */
  readonly store: string
}

type Environment = Call['env']

/** Writes down that this process serves a store. Only its user can read it. */
export function writeServeFile(server: RunningServer, env: Environment): void {
  const file = fileOf(process.pid, env)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  chmodSync(dirname(file), 0o700)
  for (const pid of pidsIn(dirname(file))) removeIfDead(pid, env)
  for (const place of placesOf(server.store, env)) ownFile(place, 'of the server')
  rmSync(file, { force: true })
  writeFileSync(file, `${JSON.stringify({ ...server, ...proveSelf(), at: Date.now() })}\n`, { mode: 0o600, flag: 'wx' })
}

/** Removes what this process wrote. */
export function removeServeFile(env: Environment): void {
  removeFilesOf(process.pid, env)
}

function removeFilesOf(pid: number, env: Environment): void {
  for (const ending of ['json', 'html']) rmSync(fileOf(pid, env, ending), { force: true })
}

/** A process of another container cannot be seen from here. */
function removeIfDead(pid: number, env: Environment): void {
  const wrote = writtenBy(pid, env)
  if (wrote?.bootId === proveSelf().bootId && !isRunning(wrote)) removeFilesOf(pid, env)
}

/**
 * Writes a page that leads to an address. Whoever lists the processes of this machine sees what a browser is started with: the
 * address holds the token, and the name of a file does not.
 */
export function writeLeadingPage({ pid }: FoundServer, url: string, env: Environment): string {
  const file = fileOf(pid, env, 'html')
  rmSync(file, { force: true })
  const text = url.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${text}">\n`, {
    mode: 0o600,
    flag: 'wx',
  })
  return file
}

/** A server by the file that it wrote. */
export interface FoundServer extends RunningServer {
  readonly pid: number
  readonly at: number
}

/** Finds the server of a store, of several the one that was started last; undefined if none runs. */
export function findServer(store: string, env: Environment): FoundServer | undefined {
  const place = isPostgresUrl(store) ? store : resolve(store)
  const found = pidsIn(stateFolder(env)).flatMap((pid) => readServer(pid, env))
  return found
    .filter((one) => one.store === place)
    .sort((a, b) => a.at - b.at)
    .at(-1)
}

/** True for an address that leads to a server of this machine alone. */
export function isLocalAddress(address: string): boolean {
  return isLoopback(new URL(address).hostname.replace(/^\[|\]$/g, ''))
}

/** The address to open: with a token in the fragment, which is never sent. */
export function withToken(address: string, token: string | undefined): string {
  return token === undefined || address.startsWith('unix:') ? address : `${address}/#token=${token}`
}

function fileOf(pid: number, env: Environment, ending = 'json'): string {
  return join(stateFolder(env), `serve-${pid}.${ending}`)
}

/** A version before this one wrote a token beside the store: what it left there is no file for agents either. */
function placesOf(store: string, env: Environment): readonly string[] {
  const beside = isPostgresUrl(store) ? [] : ['serve.json', 'serve.html'].map((name) => join(dirname(store), name))
  return [fileOf(process.pid, env), fileOf(process.pid, env, 'html'), ...beside]
}

function pidsIn(folder: string): readonly number[] {
  try {
    return readdirSync(folder).flatMap((name) => {
      const [, pid] = /^serve-(\d{1,10})\.json$/.exec(name) ?? []
      return pid === undefined ? [] : [Number(pid)]
    })
  } catch {
    return []
  }
}

function readServer(pid: number, env: Environment): readonly FoundServer[] {
  const wrote = writtenBy(pid, env)
  return wrote !== undefined && isRunning(wrote) && isAddress(wrote.address) ? [wrote] : []
}

function writtenBy(pid: number, env: Environment): (FoundServer & ProcessProof) | undefined {
  const read = parseJson(readOwn(fileOf(pid, env)))
  const said = Object(read.ok ? read.value : null) as Partial<FoundServer & ProcessProof>
  const { address, store, at, takesToken, bootId, processStart } = said
  const texts = [address, store, bootId, processStart]
  if (said.pid !== pid || typeof at !== 'number' || !texts.every((one) => typeof one === 'string')) return undefined
  const [where = '', what = '', boot = '', start = ''] = texts as string[]
  return { address: where, store: what, at, takesToken: takesToken === true, pid, bootId: boot, processStart: start }
}

const MOST_BYTES = 16_384

/** The text of a plain file that nobody but this user can have written; else empty. */
function readOwn(file: string): string {
  try {
    const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const { uid, mode, size, nlink } = fstatSync(descriptor)
      const isOurs = process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0)
      const isPlain = (mode & constants.S_IFMT) === constants.S_IFREG && nlink === 1
      return isOurs && isPlain && size <= MOST_BYTES ? readFileSync(descriptor, 'utf8') : ''
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return ''
  }
}

/** The origin of a server and nothing more, or a socket. */
function isAddress(text: string): boolean {
  if (text.startsWith('unix:/')) return !/\p{Cc}/u.test(text)
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text
}

/** False for a process of another user too: no server of ours. */
function isRunning({ pid, ...proof }: ProcessProof): boolean {
  try {
    return process.kill(pid, 0) && isProvenAlive({ pid, ...proof })
  } catch {
    return false
  }
}
