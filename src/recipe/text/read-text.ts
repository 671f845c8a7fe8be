import { type BigIntStats, closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { type FileHandle, open, readlink, realpath } from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../base/error.ts'
import { type NoticeCode, refuse } from './notice.ts'
import { own } from './own.ts'

/** A definition that is larger is refused: nobody wrote it by hand. */
const MOST_BYTES = 500_000

export interface ReadOptions {
  readonly mostBytes?: number
  /** The folder that the file must be in, links followed. */
  readonly inside?: string
}

/** A pipe or a device must not be waited for. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * The text of a file: plain, UTF-8, of bounded size. Whatever else it is gives a RecipeError that names the file. What is
 * checked is what was opened, not the name.
 */
export async function readText(file: string, options: ReadOptions = {}): Promise<string> {
  const { mostBytes = MOST_BYTES, inside } = options
  const real = await realPlace(file)
  if (inside !== undefined) checkInside(real, await realPlace(inside), file)
  const handle = await open(real, FLAGS).catch((error: unknown) => fail(error, file))
  try {
    if (inside !== undefined) await checkOpened(handle, real, file)
    const stats = await handle.stat({ bigint: true })
    checkStats(stats, mostBytes, file)
    return decode(await handle.readFile(), file)
  } catch (error) {
    return fail(error, file)
  } finally {
    await handle.close()
  }
}

/** The same at once, for many small files: no thread is asked for each. */
export function readTextNow(file: string): string {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, FLAGS)
    checkStats(fstatSync(descriptor, { bigint: true }), MOST_BYTES, file)
    return decode(readFileSync(descriptor), file)
  } catch (error) {
    return fail(error, file)
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** Text of a file that was read, or a refusal: an image or a program is no definition. */
function decode(bytes: Uint8Array, file: string): string {
  const hint = 'Give a YAML, JSON, TOML or Markdown file in UTF-8.'
  if (bytes.subarray(0, 8_192).includes(0)) {
    throw refuse({ code: 'unreadable', message: 'this is a binary file, not text', hint }, file)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refuse({ code: 'unreadable', message: 'the file is not UTF-8 text', hint }, file)
  }
}

/** What the system says when a file cannot be read, in words. */
function fileTrouble(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return (code === undefined ? undefined : own(TROUBLES, code)) ?? messageOf(error)
}

const TROUBLES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EISDIR: 'it is a folder, not a file',
  ELOOP: 'its symbolic links lead in a circle',
  ENAMETOOLONG: 'its path is too long',
  ERR_INVALID_ARG_VALUE: 'its name has a character that no path may have',
}

const HINTS: Readonly<Record<string, string>> = {
  ENOENT: 'Check the path; it is taken from the current folder.',
  ENOTDIR: 'Check the path; it is taken from the current folder.',
  EISDIR: 'Name a file in it.',
  EACCES: 'Change the permissions of the file.',
}

async function realPlace(file: string): Promise<string> {
  try {
    return await realpath(path.resolve(file))
  } catch (error) {
    return fail(error, file)
  }
}

function checkInside(real: string, folder: string, file: string): void {
  const relative = path.relative(folder, real)
  if (relative !== '' && !relative.startsWith(`..${path.sep}`) && relative !== '..' && !path.isAbsolute(relative))
    return
  throw outside(file)
}

async function checkOpened(handle: FileHandle, real: string, file: string): Promise<void> {
  const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => real)
  if (opened !== real) throw outside(file)
}

function outside(file: string): Error {
  const hint = 'Only files in the folder of the recipe and below it may be included.'
  return refuse({ code: 'include', message: 'the file is outside the folder of the recipe', hint }, file)
}

function checkStats(stats: BigIntStats, mostBytes: number, file: string): void {
  const wrong = (code: NoticeCode, message: string, hint: string) => refuse({ code, message, hint }, file)
  if (stats.isDirectory()) throw wrong('unreadable', 'it is a folder, not a file', 'Name a file in it.')
  if (!stats.isFile()) throw wrong('unreadable', 'it is no plain file', 'A pipe or a device is not read.')
  if (stats.size <= BigInt(mostBytes)) return
  const hint = `A file may have ${mostBytes} bytes. Move long texts into files of their own.`
  throw wrong('too_large', `the file has ${stats.size} bytes`, hint)
}

function fail(error: unknown, file: string): never {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (code === undefined || code === 'recipe') throw error
  const hint = own(HINTS, code)
  const finding = { code: 'unreadable', message: `cannot be read: ${fileTrouble(error)}` } as const
  throw refuse(hint === undefined ? finding : { ...finding, hint }, file)
}
