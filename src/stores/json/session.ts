import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { StoreError } from '../../core/base/error.ts'
import { sha256 } from '../../core/base/hash.ts'
import { OWN_TEXT, parseJson } from '../../core/base/json.ts'
import { ownFolder } from '../../core/base/system/own-files.ts'
import { storeFileError, systemErrorCode } from '../../core/store/file-presence.ts'
import type { SessionStore } from '../../core/store/session-store.ts'

const ENDING = '.json'
/** A name that is safe also on systems that ignore case, or reserve some words for devices. */
const PLAIN = /^(?!(?:con|prn|aux|nul|com\d|lpt\d)$)[0-9a-z][0-9a-z_-]{0,99}$/

/** The file of a session: its id where that is a plain name, else a digest of it. Never a path. */
export function sessionFile(folder: string, id: string): string {
  return join(folder, `${PLAIN.test(id) ? id : `~${sha256(id)}`}${ENDING}`)
}

export function isSessionFile(name: string): boolean {
  const stem = name.endsWith(ENDING) ? name.slice(0, -ENDING.length) : ''
  return PLAIN.test(stem) || /^~[0-9a-f]{64}$/.test(stem)
}

/** Replaces the file at once: a reader finds the old document or the new one. */
export function writeSessionFile(file: string, text: string): void {
  const fresh = `${file}.${process.pid}-${randomBytes(4).toString('hex')}.new`
  try {
    writeFileSync(fresh, text, { mode: 0o600, flag: 'wx' })
    renameSync(fresh, file)
  } catch (error) {
    rmSync(fresh, { force: true })
    throw error
  }
}

/** Undefined when there is none. */
function readSessionFile(file: string): string | undefined {
  return reading(file, (descriptor, size) => {
    if (size <= MOST_BYTES) return readFileSync(descriptor, 'utf8')
    const message = `${file} has ${size} bytes; a session has at most ${MOST_BYTES}.`
    throw new StoreError('store', message, { details: { path: file } })
  })
}

/** The first bytes of the file; empty when there is none. */
export function readSessionHead(file: string): string {
  const head = Buffer.alloc(HEAD)
  return reading(file, (descriptor) => head.toString('utf8', 0, readSync(descriptor, head, 0, HEAD, 0))) ?? ''
}

/** Refuses a pipe or a device in its place, which would never end. */
function reading<T>(file: string, read: (descriptor: number, size: number) => T): T | undefined {
  let descriptor: number
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    const found = fstatSync(descriptor)
    if (!found.isFile()) throw new StoreError('store', `${file} is not a file.`, { details: { path: file } })
    return read(descriptor, found.size)
  } finally {
    closeSync(descriptor)
  }
}

/** A larger file is not a session. */
const MOST_BYTES = 64_000_000

const HEAD = 512

export interface JsonSession extends SessionStore {
  /** The ids of all sessions in the folder. */
  list(): string[]
  /** False when there was none. */
  delete(sessionId: string): boolean
}

/** Keeps each session as one document in a folder: `<folder>/<session_id>.json`. */
export function jsonSession(folder: string): JsonSession {
  if (typeof folder !== 'string' || folder === '') {
    throw new StoreError('store', 'jsonSession() needs the path of a folder: jsonSession("sessions").')
  }
  const home = resolve(folder)
  ownFolder(home, 'copies of sessions')
  const within = <T>(file: string, use: () => T): T => {
    try {
      return use()
    } catch (error) {
      throw storeFileError(error, file)
    }
  }
  const fileOf = (id: string) => sessionFile(home, id)
  return {
    save: (session) => {
      const file = fileOf(session.session_id)
      within(file, () => {
        mkdirSync(home, { recursive: true, mode: 0o700 })
        ownFolder(home, 'copies of sessions')
        writeSessionFile(file, `${JSON.stringify(session, null, 2)}\n`)
      })
    },
    load: (id) => read(fileOf(id)),
    list: () => within(home, () => filesIn(home).flatMap((name) => idIn(join(home, name)))),
    delete: (id) => {
      const file = fileOf(id)
      return within(file, () => {
        const isThere = lstatSync(file, { throwIfNoEntry: false }) !== undefined
        rmSync(file, { force: true })
        return isThere
      })
    },
  }
}

const LIMITS = { ...OWN_TEXT, maxBytes: MOST_BYTES, maxDepth: 100 }

function read(file: string): unknown {
  const text = readSessionFile(file)
  if (text === undefined) return undefined
  const parsed = parseJson(text, LIMITS)
  if (parsed.ok) return parsed.value
  throw new StoreError('store', `The session in ${file} cannot be read: ${parsed.error}`, { details: { path: file } })
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(isSessionFile).sort()
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** Ignores files that are not sessions. */
function idIn(file: string): string[] {
  try {
    const document = read(file) as { readonly session_id?: unknown } | null | undefined
    const id = document?.session_id
    return typeof id === 'string' && sessionFile(resolve(file, '..'), id) === file ? [id] : []
  } catch {
    return []
  }
}
