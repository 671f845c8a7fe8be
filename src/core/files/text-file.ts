import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from 'node:fs'
import { type FileHandle, open, readlink, realpath } from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../base/error.ts'
import { isOwnPath } from '../base/system/own-files.ts'

export interface TextFileOptions {
  readonly mostBytes: number
  /** The folder that the file must be in, links followed. */
  readonly inside?: string | undefined
  /** Hides files that rules keep from the reader, links followed. */
  readonly isKept?: ((place: string) => boolean) | undefined
  /** Refuses a file with a second name (a hard link), which may be of a file elsewhere. */
  readonly hasOneName?: boolean | undefined
}

/** The reason why the text of a file cannot be read. */
export class TextFileTrouble extends Error {
  readonly kind: 'unreadable' | 'too_large' | 'outside'
  readonly hint: string | undefined

  constructor(
    kind: TextFileTrouble['kind'],
    message: string,
    more: { hint?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.kind = kind
    this.hint = more.hint
  }
}

/** Never waits for a pipe or a device. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * Reads the text of a plain UTF-8 file of bounded size. Anything else throws a TextFileTrouble. It checks the opened
 * file, not the name.
 */
export async function readTextFile(file: string, options: TextFileOptions): Promise<string> {
  const { mostBytes, inside, isKept, hasOneName = false } = options
  let handle: FileHandle | undefined
  try {
    const real = await realpath(path.resolve(file))
    if (inside !== undefined && !isInside(real, await realpath(path.resolve(inside)))) throw outside()
    if (isKept?.(real) === true) throw new TextFileTrouble('unreadable', `cannot be read: ${MISSING}`)
    handle = await open(real, FLAGS)
    if (inside !== undefined || isKept !== undefined) await checkOpened(handle, real)
    const stats = await handle.stat({ bigint: true })
    checkStats(stats, { real, mostBytes })
    if (hasOneName && stats.nlink > 1n) throw new TextFileTrouble('unreadable', SECOND_NAME, { hint: COPY })
    return decode(await handle.readFile())
  } catch (error) {
    throw troubleOf(error)
  } finally {
    await handle?.close()
  }
}

/** Reads a text synchronously, for many small files: no thread is needed for each. */
export function readTextFileNow(file: string, { mostBytes, inside }: TextFileOptions): string {
  let descriptor: number | undefined
  try {
    const real = realpathSync(path.resolve(file))
    if (inside !== undefined && !isInside(real, realpathSync(path.resolve(inside)))) throw outside()
    descriptor = openSync(real, FLAGS)
    if (inside !== undefined) checkPlace(openedNow(descriptor) ?? real, real)
    checkStats(fstatSync(descriptor, { bigint: true }), { real, mostBytes })
    return decode(readFileSync(descriptor))
  } catch (error) {
    throw troubleOf(error)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

const SECOND_NAME = 'it has a second name (a hard link)'
const COPY = 'Replace it by a copy.'
const UTF_8 = 'Give a YAML, JSON, TOML or Markdown file in UTF-8.'

/** Refuses an image or a program, which is not a text. */
function decode(bytes: Uint8Array): string {
  if (bytes.subarray(0, 8_192).includes(0)) {
    throw new TextFileTrouble('unreadable', 'this is a binary file, not text', { hint: UTF_8 })
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new TextFileTrouble('unreadable', 'the file is not UTF-8 text', { hint: UTF_8, cause })
  }
}

/** Takes two real paths, links followed. */
export function isInside(real: string, folder: string): boolean {
  const relative = path.relative(folder, real)
  return relative !== '' && relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative)
}

async function checkOpened(handle: FileHandle, real: string): Promise<void> {
  checkPlace(await readlink(`/proc/self/fd/${handle.fd}`).catch(() => real), real)
}

/** Undefined where the system does not tell. */
function openedNow(descriptor: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  }
}

function checkPlace(opened: string, real: string): void {
  if (opened !== real) throw outside()
}

function outside(): TextFileTrouble {
  return new TextFileTrouble('outside', 'the file is outside the folder that it must be in')
}

/** A file of the runtime itself looks like a missing one: the error has the same words. */
function checkStats(stats: BigIntStats, { real, mostBytes }: { real: string; mostBytes: number }): void {
  if (isOwnPath(real, stats)) throw Object.assign(new Error(MISSING), { code: 'ENOENT' })
  if (stats.isDirectory()) {
    throw new TextFileTrouble('unreadable', 'it is a folder, not a file', { hint: 'Name a file in it.' })
  }
  if (!stats.isFile()) {
    throw new TextFileTrouble('unreadable', 'it is no plain file', { hint: 'A pipe or a device is not read.' })
  }
  if (stats.size <= BigInt(mostBytes)) return
  const hint = `A file may have ${mostBytes} bytes. Move long texts into files of their own.`
  throw new TextFileTrouble('too_large', `the file has ${stats.size} bytes`, { hint })
}

/** Translates an error of the system into words. Other errors pass through. */
function troubleOf(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (code === undefined || error instanceof TextFileTrouble) return error
  const message = `cannot be read: ${TROUBLES.get(code) ?? messageOf(error)}`
  return new TextFileTrouble('unreadable', message, { hint: HINTS.get(code), cause: error })
}

const MISSING = 'there is no such file'
const TROUBLES: ReadonlyMap<string, string> = new Map([
  ['ENOENT', MISSING],
  ['ENOTDIR', MISSING],
  ['EACCES', 'permission is denied'],
  ['EPERM', 'permission is denied'],
  ['EISDIR', 'it is a folder, not a file'],
  ['ELOOP', 'its symbolic links lead in a circle'],
  ['ENAMETOOLONG', 'its path is too long'],
  ['ERR_INVALID_ARG_VALUE', 'its name has a character that no path may have'],
])

const HINTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'Check the path; it is taken from the current folder.'],
  ['ENOTDIR', 'Check the path; it is taken from the current folder.'],
  ['EISDIR', 'Name a file in it.'],
  ['EACCES', 'Change the permissions of the file.'],
])
