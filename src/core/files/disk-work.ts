import type { Stats } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { nodeCrypto } from '../base/hash.ts'
import { plainName } from '../grant/guarded.ts'
import type { FileInfo, FileWrite, GitGuard, Range, ReadBytes } from './backend.ts'
import { conflict, type FileOperation } from './failure.ts'
import { checkPlain, diskFailure, HAS_PROC, HeldDirectory, isPlain, systemError } from './held-directory.ts'
import { type Area, below, type LogicalPath, temporaryName } from './path.ts'

/** Works in the directories of a disk backend. Loaded with the first file. */
export class DiskWork {
  private readonly directories: ReadonlyMap<Area, string>
  private readonly hasProc: boolean
  /** The folders below each directory in which the areas are: made when they are used, for their user alone. */
  private readonly inner: readonly string[]

  constructor(directories: ReadonlyMap<Area, string>, hasProc: boolean = HAS_PROC, inner: readonly string[] = []) {
    this.directories = directories
    this.hasProc = hasProc
    this.inner = inner
  }

  list(at: LogicalPath, keep: (name: string) => boolean): Promise<FileInfo[]> {
    return this.inside({ at, operation: 'list', segments: at.segments }, async (directory) => {
      const names: string[] = []
      for await (const { name } of await opendir(directory.self, { bufferSize: 256 })) if (keep(name)) names.push(name)
      const entries: FileInfo[] = []
      for (let start = 0; start < names.length; start += 64) {
        const some = names
          .slice(start, start + 64)
          .map(async (name) => infoOf(below(at, name), await directory.look(name)))
        entries.push(...(await Promise.all(some)).flatMap((info) => info ?? []))
      }
      await directory.check()
      return entries
    })
  }

  stat(at: LogicalPath): Promise<FileInfo> {
    return this.inParent({ at, operation: 'list' }, async (parent, name) => {
      const info = infoOf(at, name === '' ? parent.stat() : await parent.look(name))
      if (info === undefined) throw systemError('ENOENT')
      return info
    })
  }

  read(at: LogicalPath, { offset, length }: Range): Promise<ReadBytes> {
    return this.inParent({ at, operation: 'read' }, async (parent, name) => {
      const { handle, size } = await parent.openFile(name)
      try {
        const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - offset)))
        let filled = 0
        while (filled < bytes.length) {
          const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, offset + filled)
          if (bytesRead === 0) break
          filled += bytesRead
        }
        return { bytes: bytes.subarray(0, filled), size }
      } finally {
        await handle.close()
      }
    })
  }

  write(at: LogicalPath, bytes: Uint8Array, { overwrite, guard }: FileWrite): Promise<void> {
    return this.inParent({ at, operation: 'write', guard }, async (parent, name) => {
      const found = await parent.find(name)
      if (found !== undefined) checkPlain(found)
      if (found !== undefined && !overwrite) throw conflict(at.text, 'It is there already.')
      const temporary = temporaryName(nodeCrypto().randomBytes(8).toString('hex'))
      const handle = await parent.createFile(temporary, (found?.mode ?? 0o666) & 0o777)
      try {
        if (found !== undefined) await handle.chmod(found.mode & 0o777)
        await handle.writeFile(bytes)
        await handle.datasync()
        await parent.check()
        // Creates the name first: of two writers that may not overwrite, only one can win.
        if (!overwrite) await (await parent.createFile(name, 0o666)).close()
        await parent.replace(temporary, name)
      } catch (error) {
        await parent.remove(temporary).catch(() => undefined)
        throw error
      } finally {
        await handle.close()
      }
      await parent.sync()
    })
  }

  delete(at: LogicalPath, guard: GitGuard): Promise<void> {
    return this.inParent({ at, operation: 'delete', guard }, async (parent, name) => {
      const found = await parent.find(name)
      if (found !== undefined) checkPlain(found)
      await parent.check()
      await parent.remove(name)
    })
  }

  async inDirectory<T>(at: LogicalPath, work: (directory: string) => Promise<T>): Promise<T> {
    const held = await this.hold({ segments: at.segments }).catch((error: unknown) => {
      throw diskFailure(error, 'list', at.text)
    })
    try {
      await held.check().catch((error: unknown) => {
        throw diskFailure(error, 'list', at.text)
      })
      return await work(held.forOthers)
    } finally {
      await held.close()
    }
  }

  /** Runs work with the parent directory of a path and the name in it; the name is empty for the area itself. */
  private inParent<T>(
    { at, ...how }: Pick<Inside, 'at' | 'operation' | 'guard'>,
    work: (parent: HeldDirectory, name: string) => Promise<T>,
  ): Promise<T> {
    const isArea = at.segments.length === 1
    const segments = isArea ? at.segments : at.segments.slice(0, -1)
    const name = isArea ? '' : (at.segments.at(-1) ?? '')
    return this.inside({ at, ...how, segments }, async (parent) => {
      if (how.guard !== undefined) await checkGit(parent, { guard: how.guard, folder: segments.slice(1).at(-1), name })
      return work(parent, name)
    })
  }

  private async inside<T>(place: Inside, work: (held: HeldDirectory) => Promise<T>): Promise<T> {
    const { at, operation } = place
    try {
      const held = await this.hold(place)
      try {
        return await work(held)
      } finally {
        await held.close()
      }
    } catch (error) {
      throw diskFailure(error, operation, at.text)
    }
  }

  private async hold({ segments, operation, guard }: Pick<Partial<Inside>, 'guard' | 'operation'> & Walked) {
    const [area, ...names] = segments
    let held = await HeldDirectory.open(this.directories.get(area as Area) ?? '', this.hasProc)
    for (const name of this.inner) held = await held.enter(name, { make: true, mode: 0o700 })
    for (const [at, name] of names.entries()) {
      if (guard !== undefined) await orClosed(held, checkGit(held, { guard, folder: names[at - 1], name }))
      held = await held.enter(name, { make: operation === 'write' })
    }
    return held
  }
}

interface Walked {
  readonly segments: readonly string[]
}

interface Inside extends Walked {
  readonly at: LogicalPath
  readonly operation: FileOperation
  readonly guard?: GitGuard
}

interface Step {
  readonly guard: GitGuard
  /** The name of the directory that is held; undefined for an area. */
  readonly folder: string | undefined
  /** The path inside of that folder. */
  readonly name: string
}

/** The files of a repository that tell git what to run. A folder with a `HEAD` counts as a repository. */
const STEERS: ReadonlySet<string> = new Set([
  ...['config', 'config.worktree', 'commondir', 'gitdir', 'hooks', 'info', 'modules', 'worktrees'],
])

async function checkGit(held: HeldDirectory, { guard, folder, name }: Step): Promise<void> {
  const plain = plainName(name)
  if (!STEERS.has(plain) || (await held.look('HEAD')) === undefined) return
  const [objects, common] = await Promise.all([held.look('objects'), held.look('commondir')])
  if (objects === undefined && common === undefined) return
  guard(folder === undefined ? [plain] : [plain, plainName(folder)])
}

async function orClosed(held: HeldDirectory, work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    await held.close()
    throw error
  }
}

/** Hides everything that an operation would refuse. */
function infoOf({ text }: LogicalPath, found: Stats | undefined): FileInfo | undefined {
  if (found === undefined) return undefined
  const modifiedAt = Math.floor(found.mtimeMs)
  if (found.isDirectory()) return { path: text, type: 'directory', size: 0, modifiedAt }
  return isPlain(found) ? { path: text, type: 'file', size: found.size, modifiedAt } : undefined
}
