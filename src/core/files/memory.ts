import { InputError } from '../base/error.ts'
import { readOptions, record } from '../base/options.ts'
import type { FileBackend, FileInfo, FileWrite, Range, ReadBytes } from './backend.ts'
import { conflict, fileNotFound, IS_DIRECTORY, NO_DIRECTORY } from './failure.ts'
import { FileDomain, type FileSettings, SETTINGS } from './files.ts'
import { AREAS, type Area, below, type LogicalPath, readFilePath } from './path.ts'

/** The initial files of an area, by their names below it: `{ 'notes/a.txt': 'hello' }`. */
export type MemoryArea = Readonly<Record<string, string | Uint8Array>>

export interface MemoryFilesOptions extends FileSettings {
  /** Files of `/workspace/`. With `owners: 'own'` each owner begins with files of its own that are like these; so of every area. */
  readonly workspace?: MemoryArea
  /** Files of `/userinput/`. */
  readonly userinput?: MemoryArea
  /** Without it there is no `/internal/`. */
  readonly internal?: MemoryArea
}

/** Keeps files in the memory of this process; they end with it. `/workspace/` and `/userinput/` always exist. */
export function memoryFiles(options: MemoryFilesOptions = {}): FileDomain {
  readOptions('memoryFiles()', options, { workspace: record, userinput: record, internal: record, ...SETTINGS })
  const areas = AREAS.filter((area) => area !== 'internal' || options.internal !== undefined)
  const initial = areas.flatMap((area) =>
    Object.entries(options[area] ?? {}).map(
      ([name, data]): InitialFile => [readFilePath(`/${area}/${name}`), Buffer.from(data)],
    ),
  )
  return new FileDomain(new MemoryBackend(areas, initial), options)
}

type InitialFile = readonly [path: LogicalPath, bytes: Uint8Array]

interface MemoryFile {
  readonly bytes: Uint8Array
  readonly modifiedAt: number
}

type MemoryDirectory = Map<string, MemoryFile | MemoryDirectory>

class MemoryBackend implements FileBackend {
  readonly areas: readonly Area[]
  readonly isOnDisk: boolean = false
  private readonly root: MemoryDirectory
  private readonly initial: readonly InitialFile[]
  /** The files of each owner alone. */
  private readonly owned: Map<string, MemoryBackend> = new Map()

  constructor(areas: readonly Area[], initial: readonly InitialFile[]) {
    this.areas = areas
    this.root = new Map(areas.map((area) => [area, new Map()]))
    this.initial = initial
    for (const [path, bytes] of initial) this.put(path, bytes, false)
  }

  async list(path: LogicalPath, keep: (name: string) => boolean): Promise<FileInfo[]> {
    const { directory: parent, name } = this.placeOf(path)
    const directory = path.segments.length === 0 ? this.root : parent.get(name)
    if (directory === undefined) throw fileNotFound(path.text)
    if (!(directory instanceof Map)) throw fileNotFound(path.text, NO_DIRECTORY)
    return [...directory].filter(([name]) => keep(name)).map(([name, found]) => infoOf(below(path, name), found))
  }

  async stat(path: LogicalPath): Promise<FileInfo> {
    const { directory, name } = this.placeOf(path)
    const found = directory.get(name)
    if (found === undefined) throw fileNotFound(path.text)
    return infoOf(path, found)
  }

  async read(path: LogicalPath, { offset, length }: Range): Promise<ReadBytes> {
    const { bytes } = this.fileAt(path)
    return { bytes: Buffer.from(bytes.subarray(offset, offset + length)), size: bytes.length }
  }

  async write(path: LogicalPath, bytes: Uint8Array, { overwrite }: FileWrite): Promise<void> {
    this.put(path, bytes, overwrite)
  }

  async delete(path: LogicalPath): Promise<void> {
    this.fileAt(path)
    const { directory, name } = this.placeOf(path)
    directory.delete(name)
  }

  inDirectory(path: LogicalPath): Promise<never> {
    const message = `${path.text} is kept in memory: no program can run there. Use diskFiles().`
    return Promise.reject(new InputError('invalid_input', message))
  }

  nameOf(): undefined {
    return undefined
  }

  within(inner: readonly string[]): MemoryBackend {
    const key = inner.join('/')
    const known = this.owned.get(key)
    if (known !== undefined) return known
    const made = new MemoryBackend(this.areas, this.initial)
    this.owned.set(key, made)
    return made
  }

  async erase(inner: readonly string[]): Promise<number> {
    const key = inner.join('/')
    const files = countIn(this.owned.get(key)?.root)
    this.owned.delete(key)
    return files
  }

  private put(path: LogicalPath, bytes: Uint8Array, overwrite: boolean): void {
    const { directory, name } = this.placeOf(path, { make: true })
    const found = directory.get(name)
    if (found instanceof Map) throw fileNotFound(path.text, IS_DIRECTORY)
    if (found !== undefined && !overwrite) throw conflict(path.text, 'It is there already.')
    directory.set(name, { bytes: Buffer.from(bytes), modifiedAt: Date.now() })
  }

  private fileAt(path: LogicalPath): MemoryFile {
    const { directory, name } = this.placeOf(path)
    const found = directory.get(name)
    if (found === undefined) throw fileNotFound(path.text)
    if (found instanceof Map) throw fileNotFound(path.text, IS_DIRECTORY)
    return found
  }

  private placeOf(path: LogicalPath, options?: { readonly make: boolean }): Place {
    const directory = this.directoryAt(path, path.segments.slice(0, -1), options)
    return { directory, name: path.segments.at(-1) ?? '' }
  }

  private directoryAt(path: LogicalPath, segments: readonly string[], { make } = { make: false }): MemoryDirectory {
    let directory = this.root
    for (const segment of segments) {
      let next = directory.get(segment)
      if (next === undefined && make) {
        next = new Map()
        directory.set(segment, next)
      }
      if (!(next instanceof Map)) throw fileNotFound(path.text)
      directory = next
    }
    return directory
  }
}

function countIn(directory: MemoryDirectory = new Map()): number {
  return [...directory.values()].reduce((sum, found) => sum + (found instanceof Map ? countIn(found) : 1), 0)
}

interface Place {
  readonly directory: MemoryDirectory
  readonly name: string
}

function infoOf({ text }: LogicalPath, found: MemoryFile | MemoryDirectory): FileInfo {
  if (found instanceof Map) return { path: text, type: 'directory', size: 0, modifiedAt: 0 }
  return { path: text, type: 'file', size: found.bytes.length, modifiedAt: found.modifiedAt }
}
