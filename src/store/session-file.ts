import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readFileSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
  const fresh = `${file}.${randomBytes(4).toString('hex')}.new`
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
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The beginning of it; empty when there is none. */
export function readSessionHead(file: string): string {
  try {
    const descriptor = openSync(file, 'r')
    try {
      const head = Buffer.alloc(HEAD)
      return head.toString('utf8', 0, readSync(descriptor, head, 0, HEAD, 0))
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return ''
    throw error
  }
}

const HEAD = 512
