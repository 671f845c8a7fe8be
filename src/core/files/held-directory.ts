import type { Stats } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, stat, unlink } from 'node:fs/promises'
import path from 'node:path'
import { isLegateError, type LegateError, ToolError } from '../base/error.ts'
import { nodeFs } from '../base/node-system.ts'
import { isOwn, isOwnName, type SeenFolder } from '../base/system/own-files.ts'
import {
  conflict,
  denied,
  type FileOperation,
  fileNotFound,
  IS_DIRECTORY,
  invalidPath,
  NO_DIRECTORY,
} from './failure.ts'

const { constants, existsSync, fstatSync } = nodeFs

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK
/** Never waits for a pipe or a device, and never makes one the terminal of this process. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** With /proc a name is looked up in the held directory itself, even if the path to it has changed. */
export const HAS_PROC: boolean = existsSync('/proc/self/fd')

/** The held directory or file is not, or no longer, at its place. */
class MovedError extends Error {}

/** It is no plain file: a link, a pipe, a device, or a file that has a second name. */
class NotPlainError extends Error {}

/** The area is a folder of the runtime, such as that of its store. */
class OwnAreaError extends Error {}

/**
 * A directory held open. It reaches only names directly below it and follows no link: a path is walked one held
 * directory at a time, so nobody can swap a part of it. The runtime's own files are not in it: this is the one place of the
 * file domain that asks for them, before and after it opens anything.
 */
export class HeldDirectory implements SeenFolder {
  /** The path where it must be. */
  readonly path: string
  private readonly handle: FileHandle
  private readonly hasProc: boolean

  private constructor(place: string, handle: FileHandle, hasProc: boolean) {
    this.path = place
    this.handle = handle
    this.hasProc = hasProc
  }

  /** `place` contains no links: it was resolved when the area was made, and must still be that place. */
  static async open(place: string, hasProc: boolean): Promise<HeldDirectory> {
    const directory = new HeldDirectory(place, await open(place, DIRECTORY), hasProc)
    if (!isOwn(directory.stat())) return directory.checked()
    await directory.close()
    throw new OwnAreaError()
  }

  /** Opens the directory of this name below, and releases this one. */
  async enter(
    name: string,
    { make, mode }: { readonly make: boolean; readonly mode?: number },
  ): Promise<HeldDirectory> {
    try {
      this.refuseOwn(name)
      if (make) await this.makeDirectory(name, mode)
      return await this.open(name)
    } finally {
      await this.close()
    }
  }

  /** Opens the directory of this name below. */
  async open(name: string): Promise<HeldDirectory> {
    this.refuseOwn(name)
    const inner = new HeldDirectory(path.join(this.path, name), await this.openDirectory(name), this.hasProc)
    if (!isOwn(inner.stat())) return this.hasProc ? inner : await inner.checked()
    await inner.close()
    throw new OwnFileError()
  }

  private async openDirectory(name: string): Promise<FileHandle> {
    try {
      return await open(this.at(name), DIRECTORY)
    } catch (error) {
      await this.find(name)
      throw error
    }
  }

  /** The path of a name in it, for one system call. */
  at(name: string): string {
    return this.hasProc ? `/proc/self/fd/${this.handle.fd}/${name}` : path.join(this.path, name)
  }

  /** The path of the directory itself. */
  get self(): string {
    return this.hasProc ? `/proc/self/fd/${this.handle.fd}` : this.path
  }

  /** The path of the directory for another process, valid while it is held. */
  get forOthers(): string {
    return this.hasProc ? `/proc/${process.pid}/fd/${this.handle.fd}` : this.path
  }

  /**
   * Finds the entry of this name without following links; undefined when there is none. Throws as the system does for a
   * missing file when it is the runtime's own: nothing may take its place either.
   */
  async find(name: string): Promise<Stats | undefined> {
    this.refuseOwn(name)
    try {
      return notOwn(await lstat(this.at(name)))
    } catch (error) {
      if (!(error instanceof OwnFileError) && codeOf(error) === 'ENOENT') return undefined
      throw error
    }
  }

  /** As `find`, for those who only look. */
  async look(name: string): Promise<Stats | undefined> {
    try {
      return await this.find(name)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    }
  }

  /** Opens a plain file, and checks that it is in this directory under this name. The caller closes it. */
  async openFile(name: string): Promise<{ readonly handle: FileHandle; readonly size: number }> {
    this.refuseOwn(name)
    checkPlain(notOwn(await lstat(this.at(name))))
    const handle = await open(this.at(name), FILE)
    try {
      const held = notOwn(await handle.stat())
      checkPlain(held)
      await this.checkPlace(path.join(this.path, name), handle)
      return { handle, size: held.size }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** Creates a file under a free name. The caller closes it. */
  async createFile(name: string, mode: number): Promise<FileHandle> {
    this.refuseOwn(name)
    const handle = await open(this.at(name), NEW_FILE, mode)
    try {
      await this.checkPlace(path.join(this.path, name), handle)
      return handle
    } catch (error) {
      await handle.close()
      await unlink(this.at(name)).catch(() => undefined)
      throw error
    }
  }

  /** Puts a file that was created here in the place of another name. */
  async replace(created: string, name: string): Promise<void> {
    await this.find(name)
    await rename(this.at(created), this.at(name))
  }

  async remove(name: string): Promise<void> {
    await this.find(name)
    await unlink(this.at(name))
  }

  /** Throws when this directory is no longer where it must be. */
  async check(): Promise<void> {
    await this.checkPlace(this.path, this.handle)
  }

  async sync(): Promise<void> {
    await this.handle.sync()
  }

  /** The system knows it of an open directory, so nobody waits. */
  stat(): Stats {
    return fstatSync(this.handle.fd)
  }

  async close(): Promise<void> {
    await this.handle.close()
  }

  private async checked(): Promise<this> {
    try {
      await this.check()
      return this
    } catch (error) {
      await this.close()
      throw error
    }
  }

  private refuseOwn(name: string): void {
    if (isOwnName(this, name)) throw new OwnFileError()
  }

  private async makeDirectory(name: string, mode?: number): Promise<void> {
    try {
      await mkdir(this.at(name), { mode })
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
  }

  /**
   * A file that a write replaced meanwhile is still the requested one, unless it has another name left, which is then
   * its place.
   */
  private async checkPlace(expected: string, handle: FileHandle): Promise<void> {
    if (this.hasProc) {
      const place = await readlink(`/proc/self/fd/${handle.fd}`)
      if (place === expected) return
      if (place !== `${expected} (deleted)`) throw new MovedError()
      const held = await handle.stat()
      if (held.isFile() && held.nlink > 0) throw new MovedError()
      return
    }
    if ((await realpath(expected)) !== expected) throw new MovedError()
    // Looks at the name first: a file replaced after that was there, and one replaced before has no name left.
    const named = await stat(expected)
    const held = await handle.stat()
    const isSame = named.ino === held.ino && named.dev === held.dev
    if (!isSame && held.nlink > 0) throw new MovedError()
  }
}

/** Looks like the error of a missing file, because there it is missing. */
class OwnFileError extends Error {
  readonly code = 'ENOENT'
}

function notOwn(found: Stats): Stats {
  if (isOwn(found)) throw new OwnFileError()
  return found
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code
}

/** True for a file with one name whose bytes stay where they are. */
export function isPlain(found: Stats): boolean {
  return found.isFile() && found.nlink <= 1
}

export function checkPlain(found: Stats): void {
  if (isPlain(found)) return
  if (found.isDirectory()) throw systemError('EISDIR')
  if (found.isSymbolicLink()) throw new NotPlainError('it is a symbolic link')
  throw new NotPlainError(found.isFile() ? 'it has a second name (a hard link)' : 'it is no plain file')
}

/** Makes an error like those of the system. */
export function systemError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

const OWN_AREA = 'its area is a folder of the runtime itself, such as that of its store: give either another folder'

/**
 * Translates an error of the system. The message names logical paths only, because the real place of an area is
 * private.
 */
export function diskFailure(error: unknown, operation: FileOperation, path: string): LegateError {
  if (isLegateError(error)) return error
  if (error instanceof NotPlainError) return denied(operation, path, error.message)
  if (error instanceof OwnAreaError) return denied(operation, path, OWN_AREA)
  if (error instanceof MovedError) return conflict(path, 'It was moved or replaced at the same time: try again.')
  const { code = 'unknown' } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ENOENT':
      return fileNotFound(path)
    case 'ENOTDIR':
      return fileNotFound(path, operation === 'list' ? NO_DIRECTORY : '')
    case 'EISDIR':
      return fileNotFound(path, IS_DIRECTORY)
    case 'ELOOP':
    case 'ENXIO':
    case 'ENODEV':
      return denied(operation, path, 'it is no plain file')
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return denied(operation, path, `the system refuses it (${code})`)
    case 'EEXIST':
      return conflict(path, 'It is there already.')
    case 'ENAMETOOLONG':
      return invalidPath(path)
    default:
      return new ToolError('tool', `The ${operation} of ${path} failed: ${code}.`, { details: { path, code } })
  }
}
