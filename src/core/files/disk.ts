import path from 'node:path'
import { DefinitionError } from '../base/error.ts'
import { nodeFs } from '../base/node-system.ts'
import { readOptions, text } from '../base/options.ts'
import type { FileBackend, FileInfo, FileWrite, GitGuard, Range, ReadBytes } from './backend.ts'
import type { DiskWork } from './disk-work.ts'
import { FileDomain, type FileSettings, SETTINGS } from './files.ts'
import { AREAS, type Area, type LogicalPath } from './path.ts'

export interface DiskFilesOptions extends FileSettings {
  /** The directory behind `/workspace/`. Created when it is missing. */
  readonly workspace?: string
  /** The directory behind `/userinput/`. It must exist. */
  readonly userinput?: string
  /** The directory behind `/internal/`. Created when it is missing. */
  readonly internal?: string
}

/**
 * Keeps files in directories of this machine, each an area. It never uses links, pipes, devices and files with a second
 * name, and never reaches anything outside of the directories, whatever another process does inside them.
 */
export function diskFiles(options: DiskFilesOptions): FileDomain {
  readOptions('diskFiles()', options, { workspace: text, userinput: text, internal: text, ...SETTINGS })
  return new FileDomain(new DiskBackend(resolveAreas(options)), options)
}

export class DiskBackend implements FileBackend {
  readonly areas: readonly Area[]
  readonly isOnDisk: boolean = true
  private readonly directories: ReadonlyMap<Area, string>
  private readonly hasProc: boolean | undefined
  /** The folders below each directory in which the areas are. */
  private readonly inner: readonly string[]
  private loading: Promise<DiskWork> | undefined

  /** `hasProc`: false on a machine without /proc, such as macOS. Default: detected. */
  constructor(directories: ReadonlyMap<Area, string>, hasProc?: boolean, inner: readonly string[] = []) {
    this.areas = AREAS.filter((area) => directories.has(area))
    this.directories = directories
    this.hasProc = hasProc
    this.inner = inner
  }

  async list(at: LogicalPath, keep: (name: string) => boolean): Promise<FileInfo[]> {
    return (await this.work()).list(at, keep)
  }

  async stat(at: LogicalPath): Promise<FileInfo> {
    return (await this.work()).stat(at)
  }

  async read(at: LogicalPath, range: Range): Promise<ReadBytes> {
    return (await this.work()).read(at, range)
  }

  async write(at: LogicalPath, bytes: Uint8Array, options: FileWrite): Promise<void> {
    return (await this.work()).write(at, bytes, options)
  }

  async delete(at: LogicalPath, guard: GitGuard): Promise<void> {
    return (await this.work()).delete(at, guard)
  }

  async inDirectory<T>(at: LogicalPath, work: (directory: string) => Promise<T>): Promise<T> {
    return (await this.work()).inDirectory(at, work)
  }

  /** A file beside the inner folders keeps its name in the whole application, whose rules bind it. */
  nameOf(place: string): LogicalPath | undefined {
    const real = realOf(place)
    if (real === undefined) return undefined
    return this.nameIn(this.inner, real) ?? this.nameIn([], real)
  }

  private nameIn(inner: readonly string[], real: string): LogicalPath | undefined {
    for (const [area, root] of this.directories) {
      const directory = path.join(root, ...inner)
      if (!isWithin(real, directory)) continue
      const segments = [area, ...path.relative(directory, real).split(path.sep)].filter((name) => name !== '')
      return { text: `/${segments.join('/')}`, segments }
    }
    return undefined
  }

  within(inner: readonly string[]): DiskBackend {
    return new DiskBackend(this.directories, this.hasProc, [...this.inner, ...inner])
  }

  async erase(inner: readonly string[]): Promise<number> {
    const { eraseFolder } = await import('./erase-folder.ts')
    let files = 0
    for (const directory of this.directories.values()) {
      files += await eraseFolder(directory, [...this.inner, ...inner], this.hasProc)
    }
    return files
  }

  private work(): Promise<DiskWork> {
    this.loading ??= import('./disk-work.ts').then(
      ({ DiskWork }) => new DiskWork(this.directories, this.hasProc, this.inner),
    )
    return this.loading
  }
}

/**
 * Resolves the real directory of each area. Areas may not contain each other: two names for one file would bypass the
 * rules of one of them.
 */
export function resolveAreas(options: DiskFilesOptions): ReadonlyMap<Area, string> {
  if (process.platform === 'win32') refuse('it needs Linux or macOS. Use memoryFiles().')
  const directories = new Map<Area, string>()
  for (const area of AREAS) {
    const given = options[area]
    if (given === undefined) continue
    const real = resolveArea(area, given)
    for (const [other, place] of directories) {
      if (isWithin(real, place) || isWithin(place, real)) refuse(`${area} and ${other} are in one another.`)
    }
    directories.set(area, real)
  }
  if (directories.size === 0) refuse('name at least one directory: diskFiles({ workspace: "./out" }).')
  return directories
}

function resolveArea(area: Area, given: string): string {
  try {
    if (area !== 'userinput') nodeFs.mkdirSync(given, { recursive: true })
    // The trailing separator makes this throw unless it is a directory.
    return nodeFs.realpathSync.native(`${given}${path.sep}`)
  } catch (cause) {
    throw new DefinitionError('definition', `diskFiles({ ${area} }): ${given} is no directory that can be used.`, {
      cause,
    })
  }
}

/** A file that is gone keeps the path that it had. */
function realOf(place: string): string | undefined {
  try {
    return nodeFs.realpathSync.native(place)
  } catch {
    const above = path.dirname(place)
    const folder = above === place ? undefined : realOf(above)
    return folder === undefined ? undefined : path.join(folder, path.basename(place))
  }
}

function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(outer === path.sep ? outer : `${outer}${path.sep}`)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `diskFiles(): ${message}`)
}
