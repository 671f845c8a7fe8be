import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../base/error.ts'
import { sha256 } from '../base/hash.ts'
import { codeOf } from './json/error.ts'

const ENDING = '.json'
/** Also on systems where upper and lower case are one, and some words are devices. */
const PLAIN = /^(?!(?:con|prn|aux|nul|com\d|lpt\d)$)[0-9a-z][0-9a-z_-]{0,99}$/

/** The file of a session: its id where that is a plain name, else a digest of it. Never a path. */
export function sessionFile(folder: string, id: string): string {
  return join(folder, `${PLAIN.test(id) ? id : `~${sha256(id)}`}${ENDING}`)
}

export function isSessionFile(name: string): boolean {
  const stem = name.endsWith(ENDING) ? name.slice(0, -ENDING.length) : ''
  return PLAIN.test(stem) || /^~[0-9a-f]{64}$/.test(stem)
}

/** A reader finds the old document or the new one, whatever happens meanwhile. */
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
export function readSessionFile(file: string): string | undefined {
  return reading(file, (descriptor, size) => {
    if (size <= MOST_BYTES) return readFileSync(descriptor, 'utf8')
    const message = `${file} has ${size} bytes; a session has at most ${MOST_BYTES}.`
    throw new StoreError('store', message, { details: { path: file } })
  })
}

/** The beginning of it; empty when there is none. */
export function readSessionHead(file: string): string {
  const head = Buffer.alloc(HEAD)
  return reading(file, (descriptor) => head.toString('utf8', 0, readSync(descriptor, head, 0, HEAD, 0))) ?? ''
}

/** A pipe or a device in its place would never end, and is not waited for. */
function reading<T>(file: string, read: (descriptor: number, size: number) => T): T | undefined {
  let descriptor: number
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
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

/** No larger file is taken for a session. */
export const MOST_BYTES = 64_000_000

const HEAD = 512
